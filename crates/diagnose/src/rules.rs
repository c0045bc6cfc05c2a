//! The rules, one per file.
//!
//! A rule checks the [`DiagnosisCase`] of one transfer and reports what is wrong, its cost and the
//! remedy. The *cost* in the documentation of a file is the method of its estimate: the difference
//! to the same transfer without this one problem.

mod case;
mod cc001;
mod cc002;
mod cc003;
mod cc004;
mod cc005;
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
mod cc504;
mod cc505;
mod cc506;
mod cc601;
mod cc602;
mod cc603;
mod cc701;
mod cc901;
mod cc902;
mod cc903;
mod cc904;
mod cc905;
mod cc906;
mod held_messages;
mod help;
mod interruptions;
mod kinds;
mod late_accept;
pub(crate) mod laws;
mod loss_process;
mod neighbours;
#[cfg(test)]
mod opening_tests;
mod proven;
mod rate_drop;
mod round_trips;
mod slow_responses;
#[cfg(test)]
mod slow_responses_tests;
mod slow_server;
#[cfg(test)]
mod tests;
mod think_time;
#[cfg(test)]
mod think_time_tests;

use packet::Dir;
use units::{Duration, Instant};

use crate::Analysis;

pub use case::{DiagnosisCase, many, percent, rate, size, time, time_percent};
pub(crate) use case::{count, number};
pub use help::{
    FindingHelp, Help, HelpFacts, MAX_UNSCALED_WINDOW, Remedy, RemedyHost, Setting, help_by_system,
};
pub use kinds::{FindingKind, KINDS, kinds_of};
pub(crate) use late_accept::merge as merge_late_accept;
pub(crate) use laws::obey_together;
pub use loss_process::LossProcess;
pub use neighbours::Neighbours;
pub(crate) use proven::prove;
pub use proven::{FoundLimit, Proof, ProvenCost};

/// Fewest loss events that give a rate: the relative error of a count n is 1/sqrt(n).
pub(crate) const ENOUGH_LOSSES: u64 = 10;

/// Timeouts without an answer after which a path counts as dead: R1 of RFC 9293 section 3.8.3.
pub(crate) const DEAD_PATH: u32 = 3;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Costs less than a tenth of the transfer.
    Note,
    /// Costs a tenth of the transfer or more.
    Warning,
    /// Costs half of the transfer or more, or the connection failed.
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

    /// The severity with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Note, Self::Warning, Self::Error].into_iter().find(|one| one.name() == name)
    }
}

/// Confidence in a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Other causes look the same at this capture point.
    Low,
    /// Partly inferred.
    Medium,
    /// Observed directly.
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

/// A value that supports a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum EvidenceValue {
    /// A measurement, in the unit of its key.
    Number(f64),
    /// A count.
    Count(u64),
    /// A series.
    List(Vec<f64>),
}

/// One line of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceItem {
    /// JSON key, with the unit as its suffix.
    pub key: &'static str,
    /// The value.
    pub value: EvidenceValue,
    /// Label in the text output; empty for values that only the JSON has.
    pub label: &'static str,
    /// The value as text.
    pub text: String,
}

/// A finding of a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Stable code.
    pub code: &'static str,
    /// What it is more exactly, of the codes that cover several causes, as `round-trips` or `policer`: see
    /// [`KINDS`]; empty where the code says all.
    pub kind: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Confidence.
    pub confidence: Confidence,
    /// What is wrong, in one line.
    pub title: String,
    /// Cost.
    pub cost: Duration,
    /// Begin and end on the clock of the capture.
    pub interval: (Instant, Instant),
    /// First and last frame.
    pub frames: (u64, u64),
    /// Evidence.
    pub evidence: Vec<EvidenceItem>,
    /// Cause.
    pub cause: String,
    /// What to do.
    pub help: FindingHelp,
    /// The host that it names, for help that concerns that one.
    pub named: Option<Dir>,
    /// What this capture cannot show about it; empty if nothing is hidden.
    pub unseen: String,
    /// The connection failed: it never opened, was cut off before its data were delivered, or was
    /// never answered again. Only above a note.
    pub is_failure: bool,
}

impl Finding {
    /// Order of findings, the highest first: a failure is before all that only slowed the connection
    /// down.
    pub(crate) const fn rank(&self) -> (bool, Duration) {
        (self.is_failure, self.cost)
    }

    /// Chooses the help by what is known about the hosts.
    pub fn choose_help(&mut self, facts: &HelpFacts) {
        self.help.choose(facts, self.named);
    }

    /// Where the help of systems other than those of the hosts is; `None` if there is none.
    pub fn folded_help(&self) -> Option<String> {
        let others = if self.code.starts_with("CC8") { "other stacks" } else { "other systems" };
        self.help.has_others().then(|| format!("{others}: ackclock explain {}", self.code))
    }

    /// A Wireshark display filter for the finding.
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
pub struct DiagnosisRule {
    /// Stable code.
    pub code: &'static str,
    /// Short name.
    pub name: &'static str,
    /// Checks a transfer.
    pub check: fn(&DiagnosisCase<'_>) -> Option<Finding>,
    /// Background for `ackclock explain`.
    pub background: &'static str,
    /// What to do.
    pub help: Help,
}

/// All rules, by code.
pub const RULES: &[DiagnosisRule] = &[
    cc001::RULE,
    cc002::RULE,
    cc003::RULE,
    cc004::RULE,
    cc005::RULE,
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
    cc504::RULE,
    cc505::RULE,
    cc506::RULE,
    cc601::RULE,
    cc602::RULE,
    cc603::RULE,
    cc701::RULE,
    cc901::RULE,
    cc902::RULE,
    cc903::RULE,
    cc904::RULE,
    cc905::RULE,
    cc906::RULE,
];

/// The rule with this code.
pub fn rule(code: &str) -> Option<&'static DiagnosisRule> {
    RULES.iter().find(|rule| rule.code.eq_ignore_ascii_case(code))
}

/// Runs all rules; the findings are sorted: failures first, then by cost, highest first.
pub fn check(case: &DiagnosisCase<'_>) -> Vec<Finding> {
    let has_account = case.analysis.states.sockets.iter().any(Option::is_some);
    if case.analysis.frames == 0 && has_account {
        // A kernel's account without packets.
        return Vec::new();
    }
    // Without data, with one direction only, or without bare ACKs, only the rules about the opening
    // and the end (CC0xx) and about the capture itself (CC9xx) apply.
    let reported = case.flow.bytes > 0 && shows_both_hosts(case.analysis);
    let judged = |rule: &&DiagnosisRule| {
        reported || rule.code.starts_with("CC0") || rule.code.starts_with("CC9")
    };
    let rules = RULES.iter().filter(judged);
    let mut findings: Vec<_> = rules.filter_map(|rule| (rule.check)(case)).collect();
    if !reported {
        findings.extend(cc204::unanswered(case));
    }
    if case.analysis.options_cut > 0 {
        findings.iter_mut().for_each(|finding| without_options(finding, case));
    }
    findings.iter_mut().for_each(|finding| laws::obey(finding, case));
    sort(&mut findings);
    obey_together(&mut findings, case);
    sort(&mut findings);
    findings
}

/// Sorts findings: failures first, then by cost, highest first.
pub(crate) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| b.rank().cmp(&a.rank()).then(a.code.cmp(b.code)));
}

/// Says of a finding that it is about the direction with less data.
pub(crate) fn of_other_direction(mut finding: Finding, flow: &crate::FlowAnalysis) -> Finding {
    let (host, peer) =
        if flow.dir == Dir::Forward { ("client", "server") } else { ("server", "client") };
    finding.title = format!("to the {peer}: {}", finding.title);
    let text = format!("the {} of the {host}", size(flow.bytes));
    finding.evidence.insert(0, count("direction_bytes", flow.bytes, "data", text));
    finding
}

/// Whether the packets show what both hosts did: those of each, with their bare ACKs.
fn shows_both_hosts(analysis: &Analysis) -> bool {
    analysis.seen.iter().all(|&packets| packets > 0) && !analysis.has_no_bare_acks()
}

/// Whether a connection is judged, so that no finding means that nothing is wrong: its packets show
/// what both hosts did, or that it never opened.
pub fn is_judged(analysis: &Analysis) -> bool {
    shows_both_hosts(analysis) || analysis.events.never_opened()
}

/// Lowers the confidence of what hangs on TCP options that the capture truncated: losses and
/// spurious retransmissions on SACK and timestamps, windows on their scale.
fn without_options(finding: &mut Finding, case: &DiagnosisCase<'_>) {
    if !["CC2", "CC3", "CC4"].iter().any(|group| finding.code.starts_with(group)) {
        return;
    }
    finding.confidence = finding.confidence.min(Confidence::Medium);
    if case.flow.point != crate::capture_point::CapturePoint::Sender {
        finding.confidence = Confidence::Low;
    }
    let cut = many(case.analysis.options_cut, "packet");
    let text = format!(
        "SACK, timestamps and scales in the TCP options of {cut}, which the snap length cut off"
    );
    if !finding.unseen.is_empty() {
        finding.unseen.push_str("; ");
    }
    finding.unseen.push_str(&text);
}

/// The finding that limited the transfer: a failure, else the costliest above a note, else that the
/// path is saturated.
pub fn primary(findings: &[Finding]) -> Option<&Finding> {
    let worst = findings.iter().find(|finding| finding.severity > Severity::Note);
    worst.or_else(|| findings.iter().find(|finding| finding.code == cc603::RULE.code))
}
