//! The rules for QUIC, one per file.
//!
//! A rule checks the [`QuicAnalysis`] of one connection. Frames of a [`Finding`] are indices of the
//! log's events, from 1. Help names stacks, with the option's name there.

mod case;
mod cc801;
mod cc802;
mod cc803;
mod cc804;
mod cc811;
mod cc812;
mod cc813;
mod cc814;
mod cc815;
mod cc821;
mod cc822;
mod cc823;
mod cc831;
mod cc832;
mod cc833;
mod cc834;
mod cc835;
pub(in crate::quic) mod cc836;
pub(in crate::quic) mod cc837;
mod cc838;
mod cc841;
mod cc851;
mod cc852;
pub(in crate::quic) mod cc853;
mod laws;

use super::QuicAnalysis;
use crate::rules::{Finding, Help, Severity};

/// A rule.
#[derive(Debug, Clone, Copy)]
pub struct QuicRule {
    /// Stable code.
    pub code: &'static str,
    /// Short name.
    pub name: &'static str,
    /// Checks a connection.
    pub check: fn(&QuicAnalysis) -> Option<Finding>,
    /// Background for `ackclock explain`.
    pub background: &'static str,
    /// What to do.
    pub help: Help,
}

/// All rules, by code.
pub const QUIC_RULES: &[QuicRule] = &[
    cc801::RULE,
    cc802::RULE,
    cc803::RULE,
    cc804::RULE,
    cc811::RULE,
    cc812::RULE,
    cc813::RULE,
    cc814::RULE,
    cc815::RULE,
    cc821::RULE,
    cc822::RULE,
    cc823::RULE,
    cc831::RULE,
    cc832::RULE,
    cc833::RULE,
    cc834::RULE,
    cc835::RULE,
    cc836::RULE,
    cc837::RULE,
    cc838::RULE,
    cc841::RULE,
    cc851::RULE,
    cc852::RULE,
    cc853::RULE,
];

/// Code of the finding that the path is saturated.
pub(super) const SATURATED: &str = cc835::RULE.code;

/// Code of the finding about slow start.
const SLOW_START: &str = cc834::RULE.code;

/// The rule with this code.
pub fn quic_rule(code: &str) -> Option<&'static QuicRule> {
    QUIC_RULES.iter().find(|rule| rule.code.eq_ignore_ascii_case(code))
}

/// Sorts findings: failures first, then errors, then by cost.
pub(super) fn sort(findings: &mut [Finding]) {
    let rank = |found: &Finding| (found.is_failure, found.severity == Severity::Error, found.cost);
    findings.sort_by(|a, b| rank(b).cmp(&rank(a)).then(a.code.cmp(b.code)));
}

/// Runs all rules; the findings are sorted: failures first, then by severity and cost, highest first.
pub(super) fn check(analysis: &QuicAnalysis) -> Vec<Finding> {
    let mut findings: Vec<_> =
        QUIC_RULES.iter().filter_map(|rule| (rule.check)(analysis)).collect();
    findings.iter_mut().for_each(|found| laws::obey(found, analysis));
    sort(&mut findings);
    laws::obey_together(&mut findings, analysis);
    sort(&mut findings);
    findings
}
