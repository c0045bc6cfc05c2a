//! The stack that wrote a qlog, as far as the log names it.

use logs::qlog::Trace;
use serde_json::{Map, Value};

/// A sender named in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedSender {
    /// Profile, of the stack's newest version that is modelled.
    pub profile: String,
    /// Congestion control, if the log names it.
    pub cc: Option<String>,
    /// The text of the log that names it.
    pub found: String,
}

/// Names of stacks in titles and descriptions of traces, and their profiles. `quic-go` writes its name into
/// the title, quiche `quiche-client qlog`, neqo `neqo-server`; of `quinn` the application chooses it.
const STACKS: [(&str, &str); 6] = [
    ("quic-go", "quic-go-0.61"),
    ("quiche", "quiche-0.29"),
    ("quinn", "quinn-0.11"),
    ("neqo", "neqo-0.30"),
    ("s2n", "s2n-quic-1.88"),
    ("msquic", "msquic-2.6"),
];

impl LoggedSender {
    /// The stack that the title, the description or the name of the vantage point has.
    pub(super) fn of_trace(trace: &Trace) -> Option<Self> {
        [&trace.title, &trace.description, &trace.vantage_name].into_iter().find_map(|text| {
            let lower = text.to_lowercase();
            let (name, profile) = STACKS.iter().find(|(name, _)| lower.contains(name))?;
            Some(Self { profile: (*profile).to_owned(), cc: None, found: (*name).to_owned() })
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
    use super::*;

    #[test]
    fn stacks_are_named_in_titles() {
        let named = |title: &str| {
            let trace = Trace { title: title.into(), ..Trace::default() };
            LoggedSender::of_trace(&trace).map(|sender| sender.profile)
        };
        assert_eq!(named("quiche-client qlog").as_deref(), Some("quiche-0.29"));
        assert_eq!(named("Neqo server").as_deref(), Some("neqo-0.30"));
        assert_eq!(named("upload"), None);
    }
}
