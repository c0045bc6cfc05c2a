//! The rules: one rule, one file.
//!
//! A rule looks at the [`Case`] of one transfer and says what is wrong, what it costs, and what
//! would cure it. What a file's documentation says of the *cost* is the method of its estimate:
//! always against a transfer in which this one thing is not there and all else is as it was.

mod case;
mod cc101;
mod cc102;
mod cc103;
mod cc104;
mod cc105;
mod cc201;
mod cc202;
mod cc203;
mod cc204;
mod cc205;
mod cc206;
mod cc301;
mod cc302;
mod cc303;
mod cc401;
mod cc402;
mod cc403;
mod cc501;
mod cc502;
mod cc503;
mod cc601;
mod cc602;
mod cc603;
mod cc701;
mod cc901;
mod cc902;
mod cc903;
mod cc904;
mod cc905;
#[cfg(test)]
mod tests;

pub use case::{Case, Neighbour, many, percent, rate, size, time};

/// Separate losses from which a rate can be told: the relative error of a count n is 1/sqrt(n).
pub(crate) const ENOUGH_LOSSES: u64 = 10;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; costs less than a tenth of the transfer.
    Note,
    /// Costs a tenth of the transfer or more.
    Warning,
    /// Costs half of the transfer or more.
    Error,
}

impl Severity {
    /// `note`, `warning`, `error`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Note, Self::Warning, Self::Error].into_iter().find(|one| one.name() == name)
    }
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Other causes look the same from here.
    Low,
    /// A part rests on inference.
    Medium,
    /// Seen directly.
    High,
}

impl Confidence {
    /// `low`, `medium`, `high`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A figure a finding rests on.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A measure, in the unit its key names.
    Number(f64),
    /// How many.
    Count(u64),
    /// Several in a row.
    List(Vec<f64>),
}

/// One line of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Its name in JSON, with the unit at the end.
    pub key: &'static str,
    /// The figure.
    pub value: Value,
    /// A few words for the left column of the text; empty to leave it out of the text.
    pub label: &'static str,
    /// The figure in words.
    pub text: String,
}

/// Help for each system: its name, and what to do there.
pub type Help = &'static [(&'static str, &'static str)];

/// What a rule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stable code.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// What is wrong, in one line.
    pub title: String,
    /// What it cost, in ns.
    pub cost: u64,
    /// When, in ns on the clock of the capture.
    pub interval: (u64, u64),
    /// First and last frame.
    pub frames: (u64, u64),
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// Why it happens.
    pub cause: String,
    /// What to do.
    pub help: Help,
    /// What this capture cannot show about it; empty if nothing.
    pub unseen: String,
}

impl Finding {
    /// A display filter of Wireshark that shows it.
    pub fn filter(&self, stream: u32) -> String {
        let (first, last) = self.frames;
        if first == last {
            format!("tcp.stream eq {stream} && frame.number == {first}")
        } else {
            format!("tcp.stream eq {stream} && frame.number in {{{first}..{last}}}")
        }
    }
}

/// A rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// What it finds, in a few words.
    pub name: &'static str,
    /// Looks at a transfer.
    pub check: fn(&Case<'_>) -> Option<Finding>,
    /// Background for `ackclock explain`.
    pub background: &'static str,
    /// What to do.
    pub help: Help,
}

/// All rules, by code.
pub const RULES: &[Rule] = &[
    cc101::RULE,
    cc102::RULE,
    cc103::RULE,
    cc104::RULE,
    cc105::RULE,
    cc201::RULE,
    cc202::RULE,
    cc203::RULE,
    cc204::RULE,
    cc205::RULE,
    cc206::RULE,
    cc301::RULE,
    cc302::RULE,
    cc303::RULE,
    cc401::RULE,
    cc402::RULE,
    cc403::RULE,
    cc501::RULE,
    cc502::RULE,
    cc503::RULE,
    cc601::RULE,
    cc602::RULE,
    cc603::RULE,
    cc701::RULE,
    cc901::RULE,
    cc902::RULE,
    cc903::RULE,
    cc904::RULE,
    cc905::RULE,
];

/// The rule with this code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code.eq_ignore_ascii_case(code))
}

/// All that the rules find, costliest first.
pub fn check(case: &Case<'_>) -> Vec<Finding> {
    // Without data, or without anything that came back, only what the capture hides can be told.
    let told = case.flow.bytes > 0 && case.analysis.seen.iter().all(|&packets| packets > 0);
    let judged = |rule: &&Rule| told || rule.code.starts_with("CC9");
    let rules = RULES.iter().filter(judged);
    let mut findings: Vec<_> = rules.filter_map(|rule| (rule.check)(case)).collect();
    findings.sort_by(|a, b| b.cost.cmp(&a.cost).then(a.code.cmp(b.code)));
    findings
}

/// What limited the transfer: the costliest finding that is more than a note, or that the path was
/// busy, if that is what was found.
pub fn primary(findings: &[Finding]) -> Option<&Finding> {
    let worst = findings.iter().find(|finding| finding.severity > Severity::Note);
    worst.or_else(|| findings.iter().find(|finding| finding.code == cc603::RULE.code))
}
