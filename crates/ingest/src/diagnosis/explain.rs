//! The background of a code.

use diagnose::rules::{RULES, Rule, rule};

/// There is no such code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCode {
    /// The code asked for.
    pub code: String,
    /// One that looks like it.
    pub similar: Option<&'static str>,
}

impl core::fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "there is no finding {}", self.code)
    }
}

impl core::error::Error for UnknownCode {}

/// What a finding means, why it happens, and what to do on each system.
///
/// # Errors
/// If there is no such code.
pub fn explain(code: &str) -> Result<String, UnknownCode> {
    let Some(Rule { code, name, background, help, .. }) = rule(code) else {
        let likeness = |rule: &&Rule| {
            (strsim::jaro_winkler(rule.code, &code.to_ascii_uppercase()) * 1e6) as u64
        };
        let similar = RULES.iter().max_by_key(likeness).map(|rule| rule.code);
        return Err(UnknownCode { code: code.to_string(), similar });
    };
    let mut text = format!("{code}: {name}\n\n{background}\n\nWhat to do:\n");
    for (system, what) in *help {
        text.push_str(&format!("  {:<9}{what}\n", format!("{system}:")));
    }
    Ok(text)
}

/// All codes, one a line.
pub fn list() -> String {
    RULES.iter().map(|rule| format!("{}  {}\n", rule.code, rule.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_says_what_to_do_on_both_systems_and_others() {
        for rule in RULES {
            let text = explain(rule.code).unwrap();
            for system in ["FreeBSD:", "Linux:", "other:"] {
                assert!(text.contains(system), "{} has no help for {system}", rule.code);
            }
            assert!(text.lines().all(|line| !line.ends_with(' ')), "{}", rule.code);
        }
    }

    #[test]
    fn codes_are_in_order_and_are_those_of_their_files() {
        assert!(RULES.windows(2).all(|pair| pair[0].code < pair[1].code));
        assert_eq!(explain("cc101").unwrap(), explain("CC101").unwrap());
        let unknown = explain("CC110").unwrap_err();
        assert_eq!(unknown.to_string(), "there is no finding CC110");
        assert!(unknown.similar.is_some());
    }
}
