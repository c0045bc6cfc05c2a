//! CC803: no answer.
//!
//! Checks for a log with packets sent and none received.
//!
//! Cost: the duration of the log.

use super::QuicRule;
use super::case::finding;
use crate::quic::QuicAnalysis;
use crate::quic::clock::time;
use crate::rules::{Finding, Remedy, count, many};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC803",
    name: "no answer",
    check,
    background: "\
No packet of the peer arrived. Firewalls that block UDP, a server that listens on another address or
port, a path MTU below 1,200 bytes, or a server that discards the packets (unknown connection ID
after a restart, unknown version in a small datagram) look the same to the sender.",
    help: &[
        Remedy::general(
            "capture at the server: tcpdump udp port PORT shows whether the packets arrive",
        ),
        Remedy::general(
            "try TCP to the same host: if that works, UDP is blocked or limited on the path",
        ),
        Remedy::general("check that datagrams of 1,200 bytes pass: ping -M do -s 1172 HOST"),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    if analysis.sent == 0 || analysis.received > 0 || analysis.acks > 0 {
        return None;
    }
    let cost = analysis.duration();
    let title = format!("{} sent in {}, none received", many(analysis.sent, "packet"), time(cost));
    let found = finding(analysis, &RULE, cost, title)
        .with([
            count("packets_sent", analysis.sent, "sent", many(analysis.sent, "packet")),
            count(
                "timeouts",
                analysis.timeouts,
                "timeouts",
                many(analysis.timeouts, "probe timeout"),
            ),
        ])
        .because("UDP is blocked, no host listens, or the peer discards the packets")
        .unseen("where the packets are lost");
    Some(found.failure())
}
