//! What only the publisher of a release knows: `packaging/publisher.toml`.

use std::fs;
use std::path::Path;

use super::Done;

/// Name and address of a maintainer who is not set.
const UNSET: &str = "Unset <unset@example.org>";

/// What the publisher sets; empty until then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Publisher {
    pub(super) repository: String,
    contact: String,
}

impl Publisher {
    pub(super) fn read(root: &Path) -> Done<Self> {
        let path = root.join("packaging/publisher.toml");
        let text = fs::read_to_string(&path).map_err(super::text(&path))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Done<Self> {
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let of = |key: &str| {
            let value = table.get(key).and_then(toml::Value::as_str);
            value.map(|value| value.trim().to_owned()).ok_or_else(|| format!("no text `{key}`"))
        };
        let found = Self { repository: of("repository")?, contact: of("contact")? };
        let is_mail = found.contact.contains('<') && found.contact.ends_with('>');
        if !found.contact.is_empty() && !is_mail {
            return Err(format!("contact {:?} is not of the form Name <address>", found.contact));
        }
        Ok(found)
    }

    /// Maintainer of packages whose format demands one.
    pub(super) fn maintainer(&self) -> &str {
        if self.contact.is_empty() { UNSET } else { &self.contact }
    }

    /// What is not set.
    pub(super) fn unset(&self) -> Vec<&'static str> {
        let all = [("repository", &self.repository), ("contact", &self.contact)];
        all.into_iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_is_one_to_be_set() {
        let of = |contact: &str| {
            Publisher::parse(&format!("repository = \"\"\ncontact = \"{contact}\""))
        };
        assert_eq!(of("").unwrap().unset(), ["repository", "contact"]);
        assert_eq!(of("A <a@b.org>").unwrap().unset(), ["repository"]);
        assert!(of("a@b.org").unwrap_err().contains("Name <address>"));
        assert!(Publisher::parse("contact = \"\"").unwrap_err().contains("`repository`"));
    }
}
