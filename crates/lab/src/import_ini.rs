//! The OMNeT++ way of asking: an ini file of INET's QUIC experiment as a scenario.
//!
//! What is known are the parameters of the example `lossy_link` that the INET wiki shows
//! ("Congestion Avoidance on a lossy link"), with `${…}` sweeps, `[Config …]` sections and
//! `extends`. Everything else is told, with its line and column, and left out.
//!
//! Reading order: `text` (lines, sections, keys and values), `sweep` (`${…}` and its values),
//! `mapping` (what a parameter means here).

mod mapping;
mod sweep;
mod text;

pub use mapping::{Imported, Unmapped};
pub use sweep::Variant;

use crate::scenario::{ScenarioError, nearest};
use sweep::Sweeps;
use text::{Entry, Section};

/// An ini file.
#[derive(Debug, Clone, PartialEq)]
pub struct Ini {
    file: String,
    sections: Vec<Section>,
}

/// Reads an ini file.
///
/// # Errors
/// All lines that are neither a section nor a key with a value, with their places.
pub fn read(text: &str, file: &str) -> Result<Ini, Vec<ScenarioError>> {
    Ok(Ini { file: file.to_owned(), sections: text::sections(text, file)? })
}

impl Ini {
    /// Names of its `[Config …]` sections; `General` if it has none.
    pub fn configs(&self) -> Vec<&str> {
        let named = self.sections.iter().map(|section| section.name.as_str());
        let named: Vec<&str> = named.filter(|name| *name != text::GENERAL).collect();
        if named.is_empty() { vec![text::GENERAL] } else { named }
    }

    /// All combinations of the values that the sweeps of `config` have, the first sweep slowest.
    ///
    /// # Errors
    /// Sweeps that cannot be read; a configuration that is not there.
    pub fn variants(&self, config: &str) -> Result<Vec<Variant>, Vec<ScenarioError>> {
        Sweeps::of(&self.file, &self.entries(config)?)?.variants()
    }

    /// The scenario of variant number `run` of `config`, with a sender of `profile`.
    ///
    /// # Errors
    /// Values that are not what their parameter takes; a variant that is not there.
    pub fn import(
        &self,
        config: &str,
        run: usize,
        profile: &str,
    ) -> Result<Imported, Vec<ScenarioError>> {
        let entries = self.entries(config)?;
        let sweeps = Sweeps::of(&self.file, &entries)?;
        let variants = sweeps.variants()?;
        let Some(variant) = variants.get(run) else {
            let message = format!("[{config}] has no run {run}");
            let hint = format!("runs are 0 to {}", variants.len() - 1);
            return Err(vec![self.error(message, Some(hint))]);
        };
        mapping::import(&self.file, config, &entries, &sweeps, variant, profile)
    }

    /// What holds for `config`, what counts most first: its own, that of those it extends,
    /// `General`.
    fn entries(&self, config: &str) -> Result<Vec<&Entry>, Vec<ScenarioError>> {
        let find = |name: &str| self.sections.iter().find(|section| section.name == name);
        let mut chain: Vec<&Section> = Vec::new();
        let mut next = vec![config.to_owned()];
        while let Some(name) = next.pop() {
            let Some(section) = find(&name) else {
                if name == text::GENERAL {
                    continue;
                }
                let names = self.configs();
                let hint = match nearest(&name, names.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("configurations are {}", names.join(", ")),
                };
                let message = format!("there is no [Config {name}]");
                return Err(vec![self.error(message, Some(hint))]);
            };
            if chain.iter().any(|known| known.name == section.name) {
                continue;
            }
            chain.push(section);
            let extends = section.entries.iter().find(|entry| entry.key == "extends");
            if let Some(extends) = extends {
                let bases = extends.value.split(',').map(|base| base.trim().to_owned());
                next.extend(bases.collect::<Vec<_>>().into_iter().rev());
            }
        }
        if !chain.iter().any(|section| section.name == text::GENERAL) {
            chain.extend(find(text::GENERAL));
        }
        Ok(chain.into_iter().flat_map(|section| &section.entries).collect())
    }

    /// A mistake of no line of its own.
    fn error(&self, message: String, hint: Option<String>) -> ScenarioError {
        ScenarioError {
            file: self.file.clone(),
            line: 1,
            column: 1,
            width: 0,
            source_line: String::new(),
            message,
            found: None,
            expected: None,
            hint,
        }
    }
}

#[cfg(test)]
mod tests;
