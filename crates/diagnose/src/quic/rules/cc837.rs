//! CC837: the rate dropped during the transfer.
//!
//! Checks the rate over time, in at most 256 intervals of at least 10 ms: the split with the largest step
//! leaves a fifth of the transfer on either side, the rate after it is below half of that before it, and four
//! fifths of the intervals are on their side.
//!
//! If the spacing of packets shows a lower rate of the bottleneck after it, or a queue was standing for most of the time, the
//! path changed (`rate-drop`).
//!
//! Cost: of a path that changed the time that the bytes after it took longer than at the rate before; else none of its own:
//! what limited the transfer then is in the time budget.

use super::QuicRule;
use super::case::finding;
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::quic::rates::RateDrop;
use crate::rules::{Confidence, EvidenceItem, Finding, Remedy, RemedyHost, Severity, number, rate};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC837",
    name: "the rate dropped during the transfer",
    check,
    background: "\
A transfer that was fast and remains slow met a change: the path (another route, a radio cell, a policer
whose bucket is empty, traffic that began), its window (losses, persistent congestion), flow control (a
reader that fell behind), or the application. What limited it before and after is in the events at that
time: read the log from there.",
    help: &[
        Remedy::stack(RemedyHost::Elsewhere, "path", "captures or pings over the same time show a longer round trip or losses"),
        Remedy::stack(RemedyHost::Elsewhere, "policer", "the rate after the drop is constant: pace below it, or ask the operator"),
        Remedy::stack(RemedyHost::Elsewhere, "receiver", "compare with the flow control findings: a slow reader limits later, not first"),
    ],
};

/// Title of the finding, and its evidence.
pub(in crate::quic) fn facts(drop: &RateDrop) -> (String, [EvidenceItem; 4]) {
    let (before, after) = drop.rates;
    let title =
        format!("the rate falls from {} to {} after {}", rate(before), rate(after), time(drop.at));
    let evidence = [
        number("rate_before_bps", before * 8.0, "before", rate(before)),
        number(
            "rate_after_bps",
            after * 8.0,
            "after",
            format!("{}, until {}", rate(after), time(drop.end)),
        ),
        number("dropped_s", seconds(drop.at), "", String::new()),
        number(
            "slower_s",
            seconds(drop.cost()),
            "slower",
            format!("{} more than at the rate before", time(drop.cost())),
        ),
    ];
    (title, evidence)
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let seen = || analysis.rates.drop(usize::from(!analysis.is_sender()));
    let drop = analysis.path_drop.or_else(seen)?;
    let (title, evidence) = facts(&drop);
    let period = (analysis.first + drop.at, analysis.first + drop.end);
    let of_path = analysis.path_drop == Some(drop);
    let cost = if of_path { drop.cost() } else { 0 };
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(period), analysis.range)
        .with(evidence)
        .because(if of_path {
            "the bottleneck carries less than before: its capacity fell, or other traffic shares it"
        } else {
            "the window, flow control or the application changed"
        });
    if of_path {
        found.kind = "rate-drop";
        found.confidence = Confidence::Medium;
    } else {
        found.severity = Severity::Note;
    }
    Some(found)
}
