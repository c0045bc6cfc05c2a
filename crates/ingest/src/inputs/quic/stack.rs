//! The stack that wrote a qlog, as far as the log names it.

use logs::qlog::FileInfo;
use serde_json::{Map, Value};

/// A sender named in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedSender {
    /// Profile: the newest that is not newer than the version that the log has; without one, the newest.
    pub profile: String,
    /// Congestion control, if the log names it.
    pub cc: Option<String>,
    /// The text of the log that names it.
    pub found: String,
}

/// Names of stacks in titles and descriptions, and their profiles, the oldest first. `quic-go` writes its name into
/// the title of the file, quiche `quiche-client qlog`, neqo `neqo-server`; of `quinn` the application chooses it.
const STACKS: [(&str, &[&str]); 6] = [
    ("quic-go", &["quic-go-0.61", "quic-go-0.65"]),
    ("quiche", &["quiche-0.29", "quiche-0.30"]),
    ("quinn", &["quinn-0.11"]),
    ("neqo", &["neqo-0.30"]),
    ("s2n", &["s2n-quic-1.88"]),
    ("msquic", &["msquic-2.6"]),
];

/// Major and minor number of a version: those of `v0.65.0`, or of the profile `quic-go-0.65`.
fn version(text: &str) -> Option<(u32, u32)> {
    let number = text.rsplit(['-', ' ']).find_map(|part| {
        let part = part.strip_prefix('v').unwrap_or(part);
        part.starts_with(|first: char| first.is_ascii_digit()).then_some(part)
    })?;
    let mut parts = number.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The profile, of those of a stack, of its code in this version.
fn profile_of(profiles: &[&'static str], code_version: &str) -> Option<&'static str> {
    let newest = profiles.last().copied();
    let Some(logged) = version(code_version) else { return newest };
    let known = profiles.iter().rev().copied();
    let mut known = known.filter(|profile| version(profile).is_some_and(|known| known <= logged));
    known.next().or(profiles.first().copied())
}

impl LoggedSender {
    /// The stack that the title, the description or the name of the vantage point of a trace has, or the title of the
    /// file.
    pub(super) fn of_header(info: &FileInfo) -> Option<Self> {
        let trace = &info.trace;
        let texts = [&trace.title, &trace.description, &trace.vantage_name, &info.title];
        texts.into_iter().find_map(|text| {
            let lower = text.to_lowercase();
            let (name, profiles) = STACKS.iter().find(|(name, _)| lower.contains(name))?;
            let profile = profile_of(profiles, &info.code_version)?.to_owned();
            Some(Self { profile, cc: None, found: (*name).to_owned() })
        })
    }

    /// The sender of a simulated run: `simulation:scenario`.
    pub(super) fn of_scenario(details: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| details.get(name).and_then(Value::as_str);
        let profile = text("profile")?.to_owned();
        let cc = text("cc").map(str::to_owned);
        Some(Self { found: profile.clone(), profile, cc })
    }
}

#[cfg(test)]
mod tests {
    use logs::qlog::{QlogItem, QlogReader};

    use super::*;

    /// The profile of a log that has this header.
    fn of(header: &str) -> Option<String> {
        let log = format!("\x1e{header}\n");
        let info = QlogReader::new(log.as_bytes()).find_map(|item| match item {
            Ok(QlogItem::Header(info)) => Some(info),
            _ => None,
        });
        LoggedSender::of_header(&info.unwrap()).map(|sender| sender.profile)
    }

    #[test]
    fn stacks_are_named_in_titles() {
        let named =
            |title: &str| of(&format!(r#"{{"qlog_version":"0.3","trace":{{"title":"{title}"}}}}"#));
        assert_eq!(named("quiche-client qlog").as_deref(), Some("quiche-0.30"));
        assert_eq!(named("Neqo server").as_deref(), Some("neqo-0.30"));
        assert_eq!(named("upload"), None);
    }

    #[test]
    fn the_header_of_the_file_has_a_title_and_the_version_of_the_code() {
        let named = |version: &str| {
            let file = r#""qlog_version":"0.3","title":"quic-go qlog","#;
            let trace = r#""trace":{"vantage_point":{"type":"server"}}"#;
            of(&format!("{{{file}{version}{trace}}}"))
        };
        for (version, profile) in [
            (r#""code_version":"v0.65.0","#, "quic-go-0.65"),
            (r#""code_version":"v0.64.2","#, "quic-go-0.61"),
            (r#""code_version":"v0.37.4","#, "quic-go-0.61"),
            (r#""code_version":"v1.2.0","#, "quic-go-0.65"),
            (r#""code_version":"(devel)","#, "quic-go-0.65"),
            ("", "quic-go-0.65"),
        ] {
            assert_eq!(named(version).as_deref(), Some(profile), "{version}");
        }
    }
}
