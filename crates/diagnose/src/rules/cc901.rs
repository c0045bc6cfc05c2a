//! CC901: the opening is not in the capture.
//!
//! Checks for SYN, SYN-ACK and ACK. Without them the window scale, the segment size and the capture
//! point are unknown or estimated.

use units::Duration;

use super::case::DiagnosisCase;
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC901",
    name: "the opening is not in the capture",
    check,
    background: "\
The SYNs carry the scale of the windows (RFC 7323 section 2), the segment size, and whether SACK and
timestamps are in use; their timing shows where the capture was taken. A capture that begins later
leaves the receive window unreadable, and the first slow start unseen.",
    help: &[
        Remedy::freebsd(
            RemedyHost::Elsewhere,
            "start the capture before the transfer: tcpdump -i IF -s 128 -w FILE host HOST",
        ),
        Remedy::linux(
            RemedyHost::Elsewhere,
            "start the capture before the transfer: tcpdump -i IF -s 128 -w FILE host HOST",
        ),
        Remedy::general("start the capture before the transfer"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    if case.analysis.opened || case.analysis.events.never_opened() {
        return None;
    }
    // With a SYN the capture did not begin too late: the answer is missing.
    let begun = case.analysis.observed_syns.iter().any(Option::is_some);
    let (title, cause, unseen) = if begun {
        (
            "only a part of the opening is in the capture",
            "the peer did not answer, the capture sees one direction, or it misses packets",
            "the scale of the windows (the receive window is not judged)",
        )
    } else {
        (
            "the capture begins after the connection was opened",
            "the capture was started late, or it misses packets",
            "the scale of the windows (the receive window is not judged), the first slow start",
        )
    };
    let mut finding = case
        .finding(&RULE, Duration::ZERO, title.into())
        .at(
            (case.analysis.first, case.analysis.first),
            (case.analysis.first_frame, case.analysis.first_frame),
        )
        .because(cause)
        .unseen(unseen);
    finding.confidence = Confidence::High;
    Some(finding)
}
