//! Costs that simulations of the recorded transfer show: how much less it takes without what a finding names.
//!
//! Rules estimate a cost from the time in which a condition held. A transfer of which the recorded sender, simulated,
//! takes the recorded time can be simulated without the condition, too; that difference is the cost by definition.

use units::Duration;

use super::case::{DiagnosisCase, PATH_RATE, seconds};
use super::{
    EvidenceItem, Finding, LossProcess, Severity, late_accept, laws, number, rule, sort, time,
};

/// What a simulation shows of the cost of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvenCost {
    /// Code of the finding.
    pub code: &'static str,
    /// The smallest cost that the recording allows.
    pub least: Duration,
    /// The largest.
    pub most: Duration,
}

/// A limit that no rule found, and that the recorded transfer has only if it is simulated with it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundLimit {
    /// Code of its finding.
    pub code: &'static str,
    /// Its kind; empty where the code says all.
    pub kind: &'static str,
    /// What limits, in one line.
    pub title: String,
    /// The cause in a sentence.
    pub cause: &'static str,
}

/// What simulations of the recorded transfer show of its findings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Proof {
    /// Costs.
    pub costs: Vec<ProvenCost>,
    /// Limits without a finding, with their cost among `costs`.
    pub found: Vec<FoundLimit>,
    /// What the path carries without a limit that slowed it, in bytes of payload per second.
    pub rate: Option<f64>,
    /// The process of the losses, if the transfer has some.
    pub losses: Option<LossProcess>,
}

/// A cost that is less than this, or than this part of what remains, is within the error of a simulation.
const LEAST: Duration = Duration::from_millis(50);
const LEAST_PERCENT: u64 = 3;

/// Makes one finding of the losses of a process, gives findings their costs, ranks them again, and makes notes of those
/// that cost nothing.
pub(crate) fn prove(findings: &mut Vec<Finding>, proof: &Proof, case: &DiagnosisCase<'_>) {
    let Proof { costs, found, losses, rate: _ } = proof;
    let of_rule = |limit: &FoundLimit| {
        let rule = rule(limit.code)?;
        let finding = case.finding(rule, Duration::ZERO, limit.title.clone()).of_kind(limit.kind);
        Some(finding.because(limit.cause))
    };
    // Small messages wait for their users, whoever's clock that is.
    // A host that answers requests writes as they come.
    let requests =
        case.analysis.exchange.as_deref().map_or(0, |exchange| exchange.first_byte.count);
    let is_own_clock = case.is_bulk() && requests <= REQUESTS_OF_TRANSFER;
    let is_limit = |limit: &&FoundLimit| match (limit.code, limit.kind) {
        (APPLICATION, "") => is_own_clock,
        _ => true,
    };
    // A finding that stands there has the cost.
    let is_new = |limit: &&FoundLimit| !findings.iter().any(|found| found.code == limit.code);
    let new: Vec<_> = found.iter().filter(is_limit).filter(is_new).filter_map(of_rule).collect();
    findings.extend(new);
    if let Some(losses) = losses {
        losses.merge(findings, case);
    }
    let whole = case.analysis.last.since(case.analysis.first);
    // A simulation has no queue of new connections.
    let is_shown = |found: &&mut Finding| !found.is_failure && found.kind != late_accept::KIND;
    // They were found with the rate of the capture.
    let named = findings.iter_mut().flat_map(|finding| &mut finding.evidence);
    for item in named.filter(|item| item.key == PATH_RATE) {
        *item = case.path_rate().unwrap_or_else(|| item.clone());
    }
    for finding in findings.iter_mut().filter(is_shown) {
        let Some(proven) = costs.iter().find(|one| one.code == finding.code) else { continue };
        let proven = &completed(*proven, case);
        finding.cost = finding.cost.clamp(proven.least, proven.most.max(proven.least));
        finding.evidence.push(evidence(proven));
        laws::obey(finding, case);
        if !matters(proven.most, whole) {
            finding.severity = Severity::Note;
        } else if matters(proven.least, whole) && !waits_for_user(finding, case) {
            finding.severity = case.severity(finding.cost).max(Severity::Warning);
        }
    }
    // Every transfer has slow start; it is the limit where nothing else is shown to be one.
    let is_shown = |found: &Finding| {
        found.severity > Severity::Note && costs.iter().any(|one| one.code == found.code)
    };
    if findings.iter().any(|found| found.code != SLOW_START && is_shown(found)) {
        let slow_start = findings.iter_mut().filter(|found| found.code == SLOW_START);
        slow_start.for_each(|found| found.severity = Severity::Note);
    }
    rank_bounds(findings, costs, case);
    sort(findings);
    laws::obey_together(findings, case);
    sort(findings);
}

/// Ranks a cost that is an upper bound, of a transfer that never reached the rate of the path, below a proven one that is
/// nearly as large: what it estimates may be that one's consequence, as slow growth is of late ACKs.
fn rank_bounds(findings: &mut [Finding], costs: &[ProvenCost], case: &DiagnosisCase<'_>) {
    let is_proven = |found: &Finding| costs.iter().any(|one| one.code == found.code);
    let is_limit = |found: &&Finding| found.severity > Severity::Note && is_proven(found);
    let Some(most) = findings.iter().filter(is_limit).map(|found| found.cost).max() else { return };
    let below = most.saturating_sub(Duration::from_micros(1));
    let is_bound = |found: &&mut Finding| {
        let is_near = found.cost > below && found.cost * 4 <= most * 5;
        is_near && !found.is_failure && !is_proven(found)
    };
    if !case.bound().is_empty() {
        findings.iter_mut().filter(is_bound).for_each(|found| found.cost = below);
    }
}

/// Whether a rule left it at a note that the application sends small messages when its user wants them.
fn waits_for_user(finding: &Finding, case: &DiagnosisCase<'_>) -> bool {
    let is_noted = finding.severity == Severity::Note && finding.kind.is_empty();
    is_noted && finding.code == APPLICATION && !case.is_bulk()
}

/// The cost of a finding with what the simulation does not have.
fn completed(proven: ProvenCost, case: &DiagnosisCase<'_>) -> ProvenCost {
    let ProvenCost { code, least, most } = proven;
    if code == super::cc403::RULE.code {
        // Simulations end with the data.
        let late = super::cc403::late_reading(case);
        return ProvenCost { code, least: least + late, most: most + late };
    }
    // Without the queue of the ACKs the path carries more than it ever showed, unless the fitted one is known to.
    let is_known = case.course.path.rate.is_some() || least == most;
    let is_bound = code == super::cc601::RULE.code && !is_known;
    if is_bound { ProvenCost { most: Duration::MAX, ..proven } } else { proven }
}

/// Most requests of one transfer: those of its opening, and its own.
const REQUESTS_OF_TRANSFER: u64 = 3;
/// The finding that the application has nothing to send.
const APPLICATION: &str = super::cc501::RULE.code;
/// The finding that slow start is most of the transfer.
const SLOW_START: &str = super::cc102::RULE.code;

fn matters(cost: Duration, whole: Duration) -> bool {
    let rest = whole.saturating_sub(cost);
    cost >= LEAST && cost * 100 >= rest * LEAST_PERCENT
}

fn evidence(proven: &ProvenCost) -> EvidenceItem {
    let ProvenCost { least, most, .. } = *proven;
    let text = match most {
        Duration::MAX if least.is_zero() => {
            "what the path carries without it is not known, and so is what it costs".to_owned()
        }
        Duration::MAX => {
            format!("{} less or more without it, if the transfer is simulated", time(least))
        }
        _ => saved(least, most),
    };
    number("simulated_cost_s", seconds(least), "simulated", text)
}

fn saved(least: Duration, most: Duration) -> String {
    match most.saturating_sub(least) {
        Duration::ZERO => format!("{} less without it, if the transfer is simulated", time(least)),
        _ => format!(
            "{} to {} less without it, if the transfer is simulated",
            time(least),
            time(most)
        ),
    }
}
