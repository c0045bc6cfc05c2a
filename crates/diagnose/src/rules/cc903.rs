//! CC903: the capture missed packets.
//!
//! Checks for data that were acknowledged but not captured. The capture dropped them (its buffer
//! was full), or they took another path; counts and rates are too low by as much.

use units::Duration;

use super::case::{DiagnosisCase, count, percent, size};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC903",
    name: "the capture missed packets",
    check,
    background: "\
A receiver acknowledges only what it got. If the capture does not have it, the capture is incomplete:
tcpdump prints how many packets the kernel dropped when it ends. Retransmissions among the missed ones
are not counted, and a gap may look like a pause.",
    help: &[
        Remedy::freebsd(RemedyHost::Elsewhere, "tcpdump -B 65536 -s 128; net.bpf.maxbufsize"),
        Remedy::linux(RemedyHost::Elsewhere, "tcpdump -B 65536 -s 128, or dumpcap with a larger -B"),
        Remedy::general("a larger capture buffer, a shorter snap length, a filter for this connection"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let flow = case.flow;
    if flow.unseen == 0 {
        return None;
    }
    let title = format!("{} were acknowledged but are not in the capture", size(flow.unseen));
    let mut finding = case
        .finding(&RULE, Duration::ZERO, title)
        .with([count(
            "unseen_bytes",
            flow.unseen,
            "missing",
            format!(
                "{} of {} ({})",
                size(flow.unseen),
                size(flow.bytes),
                percent(flow.unseen, flow.bytes)
            ),
        )])
        .because("the capture lost packets, or sees only a part of the path")
        .unseen("those packets: retransmissions among them, and when they were sent");
    finding.confidence = Confidence::High;
    Some(finding)
}
