//! The background of a code.

use diagnose::quic::rules::QUIC_RULES;
use diagnose::rules::{Help, KINDS, RULES, help_by_system, kinds_of};

/// No finding has this code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCode {
    /// The requested code.
    pub code: String,
    /// The most similar code.
    pub similar: Option<&'static str>,
}

impl core::fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "unknown finding {}", self.code)
    }
}

impl core::error::Error for UnknownCode {}

/// What is common to the rules for TCP and QUIC.
pub(super) struct ExplainedRule {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) background: &'static str,
    pub(super) help: Help,
}

/// All rules, by code.
pub(super) fn all() -> Vec<ExplainedRule> {
    let tcp = RULES.iter().map(|rule| ExplainedRule {
        code: rule.code,
        name: rule.name,
        background: rule.background,
        help: rule.help,
    });
    let quic = QUIC_RULES.iter().map(|rule| ExplainedRule {
        code: rule.code,
        name: rule.name,
        background: rule.background,
        help: rule.help,
    });
    let mut all: Vec<_> = tcp.chain(quic).collect();
    all.sort_by_key(|rule| rule.code);
    all
}

/// Explains a finding: its meaning, its cause and the remedy on each system.
///
/// # Errors
/// [`UnknownCode`] if no finding has this code.
pub fn explain(code: &str) -> Result<String, UnknownCode> {
    let found = all().into_iter().find(|rule| rule.code.eq_ignore_ascii_case(code));
    let Some(ExplainedRule { code, name, background, help }) = found else {
        let likeness = |rule: &ExplainedRule| {
            (strsim::jaro_winkler(rule.code, &code.to_ascii_uppercase()) * 1e6) as u64
        };
        let similar = all().into_iter().max_by_key(likeness).map(|rule| rule.code);
        return Err(UnknownCode { code: code.to_string(), similar });
    };
    let mut text = format!("{code}: {name}\n\n{background}\n\n");
    let kinds: Vec<_> =
        kinds_of(code).map(|kind| format!("  {:<13}{}\n", kind.name, kind.meaning)).collect();
    if !kinds.is_empty() {
        text.push_str(&format!("Kinds:\n{}\n", kinds.concat()));
    }
    text.push_str("What to do:\n");
    let systems = help_by_system(help);
    let width = systems.iter().map(|(system, _)| system.len() + 2).max().unwrap_or(0).max(9);
    for (system, what) in systems {
        text.push_str(&format!("  {:<width$}{what}\n", format!("{system}:")));
    }
    for kind in kinds_of(code).filter(|kind| !kind.help.is_empty()) {
        text.push_str(&format!("What to do about {}:\n", kind.name));
        for (system, what) in help_by_system(kind.help) {
            text.push_str(&format!("  {:<width$}{what}\n", format!("{system}:")));
        }
    }
    Ok(text)
}

/// All codes, one per line.
pub fn list() -> String {
    let codes = all().into_iter().map(|rule| format!("{}  {}\n", rule.code, rule.name));
    let kinds = KINDS
        .iter()
        .map(|kind| format!("{:<13}{} ({})\n", kind.name, kind.meaning, kind.codes.join(", ")));
    codes.chain(["\nkinds of findings\n".to_owned()]).chain(kinds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_help_for_every_system() {
        for rule in RULES {
            let text = explain(rule.code).unwrap();
            for system in ["FreeBSD:", "Linux:", "other:"] {
                assert!(text.contains(system), "{} has no help for {system}", rule.code);
            }
            assert!(text.lines().all(|line| !line.ends_with(' ')), "{}", rule.code);
        }
    }

    #[test]
    fn every_rule_of_quic_has_help_for_any_stack() {
        for rule in QUIC_RULES {
            let text = explain(rule.code).unwrap();
            assert!(
                rule.help.iter().all(|remedy| !remedy.system.is_empty() && !remedy.text.is_empty())
            );
            assert!(text.lines().all(|line| !line.ends_with(' ')), "{}", rule.code);
        }
    }

    #[test]
    fn codes_are_in_order() {
        assert!(all().windows(2).all(|pair| pair[0].code < pair[1].code));
        assert!(QUIC_RULES.windows(2).all(|pair| pair[0].code < pair[1].code));
        assert_eq!(explain("cc101").unwrap(), explain("CC101").unwrap());
        let unknown = explain("CC110").unwrap_err();
        assert_eq!(unknown.to_string(), "unknown finding CC110");
        assert!(unknown.similar.is_some());
    }
}
