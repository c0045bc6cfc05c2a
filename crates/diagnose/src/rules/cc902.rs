//! CC902: one direction only.
//!
//! Checks whether the capture has packets of both hosts. Without ACKs there are no RTTs and no
//! windows; without data there is nothing to diagnose.

use units::Duration;

use super::case::{DiagnosisCase, count};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC902",
    name: "one direction only",
    check,
    background: "\
Routes are often not the same both ways, and a mirror port may copy one direction. A diagnosis needs
data and ACKs: round trips, windows, and what a sender waited for come from both.",
    help: &[
        Remedy::freebsd(RemedyHost::Elsewhere, "capture at one of the hosts"),
        Remedy::linux(RemedyHost::Elsewhere, "capture at one of the hosts"),
        Remedy::general("capture at a host, or mirror both directions"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let [forward, back] = case.analysis.seen;
    // SYNs alone have no answer: another rule reports it.
    if forward > 0 && back > 0 || case.analysis.events.is_unanswered() {
        return None;
    }
    let mut finding = case
        .finding(
            &RULE,
            Duration::ZERO,
            "only one direction of the connection is in the capture".into(),
        )
        .with([count("frames", forward + back, "packets", (forward + back).to_string())])
        .because("the capture point sees one direction")
        .unseen("round trips, windows, losses: everything that the other direction shows");
    finding.confidence = Confidence::High;
    Some(finding)
}
