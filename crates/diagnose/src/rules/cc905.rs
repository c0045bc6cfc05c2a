//! CC905: the capture was not taken at the sender.
//!
//! Checks the capture point. Away from the sender, lost copies are missing, and the arrival of ACKs
//! at the sender is inferred from timestamps or from the RTT of the handshake.

use units::Duration;

use super::case::{DiagnosisCase, time};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding};
use crate::capture_point::CapturePoint;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC905",
    name: "the capture was not taken at the sender",
    check,
    background: "\
Only at the sender does a capture show all that was sent, in the order and at the time it was sent.
Elsewhere lost packets are missing, and what the sender knew when it sent has to be inferred: from the
timestamps that data echo (RFC 7323), or from the round trip of the opening.",
    help: &[
        Remedy::freebsd(RemedyHost::Elsewhere, "capture at the host that sends the data"),
        Remedy::linux(RemedyHost::Elsewhere, "capture at the host that sends the data"),
        Remedy::general("capture at the host that sends the data, or at both"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let (place, unseen) = match case.flow.point {
        CapturePoint::Sender => return None,
        // One direction alone does not show the capture point; CC902 reports that.
        CapturePoint::Unknown if case.flow.bytes == 0 || case.analysis.seen.contains(&0) => {
            return None;
        }
        CapturePoint::Receiver => {
            ("at the receiver", "packets lost on the way, and the sender's waits but by inference")
        }
        CapturePoint::Middle => (
            "between the hosts",
            "packets lost before this point, and the sender's waits but by inference",
        ),
        CapturePoint::Unknown => (
            "at a position that cannot be determined",
            "which delays lie on which side; it is judged as if taken at the sender",
        ),
    };
    let mut finding = case
        .finding(&RULE, Duration::ZERO, format!("the capture was taken {place}"))
        .because(match case.course.path.base_rtt {
            Some(base) => {
                format!("the round trip of {} lies on the side of the sender", time(base))
            }
            None => "no round trip could be measured".into(),
        })
        .unseen(unseen);
    if case.flow.point != CapturePoint::Receiver {
        finding.cause = "of the way's parts, both are long, or one is not known".into();
    }
    finding.confidence = Confidence::High;
    Some(finding)
}
