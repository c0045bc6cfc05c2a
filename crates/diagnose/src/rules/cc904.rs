//! CC904: offload hides packets.
//!
//! Checks for captured packets longer than a segment. On the sender's host the capture point is
//! before TSO, on the receiver's after LRO or GRO; between the hosts each was several packets.

use units::Duration;

use super::case::{DiagnosisCase, count};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC904",
    name: "offload hides packets",
    check,
    background: "\
A capture on a host with TSO shows bursts of up to 64 KB that the card splits later; one on a host
with LRO or GRO shows merged segments. Sizes above the MTU are no jumbo frames. How packets were
spaced, reordered or lost within such a burst cannot be seen there.",
    help: &[
        Remedy::freebsd(
            RemedyHost::Elsewhere,
            "to see packets: ifconfig IF -tso -lro, or capture on a device between",
        ),
        Remedy::linux(
            RemedyHost::Elsewhere,
            "to see packets: ethtool -K IF tso off gso off gro off lro off, or capture on a device between",
        ),
        Remedy::general("capture on a device between the hosts"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let counts = &case.flow.counts;
    if counts.bursts == 0 {
        return None;
    }
    let title = format!(
        "{} {} longer than a segment, up to {} MSS",
        super::case::many(counts.bursts, "captured packet"),
        if counts.bursts == 1 { "is" } else { "are" },
        counts.longest_burst.div_ceil(case.flow.mss.max(1))
    );
    let mut finding = case
        .finding(&RULE, Duration::ZERO, title)
        .with([
            count("bursts", counts.bursts, "", String::new()),
            count(
                "longest_burst_bytes",
                counts.longest_burst,
                "longest",
                format!("{} bytes", counts.longest_burst),
            ),
        ])
        .because("the capture was taken above TSO at the sender or above LRO/GRO at the receiver")
        .unseen("order, spacing and loss within a burst");
    finding.confidence = Confidence::High;
    Some(finding)
}
