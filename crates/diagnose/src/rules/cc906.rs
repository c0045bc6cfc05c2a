//! CC906: the bare ACKs are not in the capture.
//!
//! Checks for a connection in which both hosts sent packets and one many data, but neither a single
//! ACK without data: a receiver acknowledges every second full segment (RFC 9293 section 3.8.6.3), so
//! a display filter (as `http`) took them out when the capture was saved.

use units::Duration;

use super::case::{DiagnosisCase, count};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC906",
    name: "the bare ACKs are not in the capture",
    check,
    background: "\
Wireshark saves the packets that a display filter shows if it is asked to, and a filter for a protocol
above TCP shows no bare ACKs. Round trips, windows, flights and what a sender waited for are then not
measurable: only bytes, retransmissions and pauses of seconds are.",
    help: &[
        Remedy::freebsd(RemedyHost::Elsewhere, "save all packets of the connection: tcpdump -r IN -w OUT 'host A and port P'"),
        Remedy::linux(RemedyHost::Elsewhere, "save all packets of the connection: tcpdump -r IN -w OUT 'host A and port P'"),
        Remedy::general("Wireshark: File, Export Specified Packets, with the filter tcp.stream eq N"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    if !case.analysis.has_no_bare_acks() {
        return None;
    }
    let packets = case.flow.counts.new;
    let title = format!("{packets} packets of data, and not one ACK without data");
    let mut finding = case
        .finding(&RULE, Duration::ZERO, title)
        .with([count("data_packets", packets, "data", super::case::many(packets, "packet"))])
        .because("the capture was saved through a display filter, which left the bare ACKs out")
        .unseen("round trips, windows, and what the sender waited for");
    finding.confidence = Confidence::High;
    Some(finding)
}
