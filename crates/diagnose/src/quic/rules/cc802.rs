//! CC802: the anti-amplification limit stops the server.
//!
//! Checks the log of a server for time in which it had sent three times what it had received and
//! had not validated the client's address (RFC 9000 section 8.1), and for CRYPTO data that followed.
//!
//! Cost: the time at the limit.

use super::QuicRule;
use super::case::finding;
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{Confidence, Finding, Remedy, RemedyHost, count, number, size};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC802",
    name: "anti-amplification limit",
    check,
    background: "\
Before a server has validated the client's address it may send at most three times the bytes it has
received (RFC 9000 section 8.1): 3,600 bytes for one Initial of 1,200. A certificate chain that does
not fit waits for the client's next packet, a round trip later; if that packet is lost, both sides
wait for the client's probe timeout.",
    help: &[
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quiche",
            "Config::set_max_amplification_factor, at the risk of amplification attacks",
        ),
        Remedy::general(
            "a shorter certificate chain (ECDSA, no superfluous intermediates, RFC 8879 compression)",
        ),
        Remedy::general(
            "a token from NEW_TOKEN or Retry, or session resumption, validates the address at once",
        ),
        Remedy::general(
            "client: pad all Initial datagrams to the path MTU, which raises the limit",
        ),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let handshake = &analysis.handshake;
    let (received, sent) = handshake.limited_at?;
    let wait = handshake.amplification;
    // The limit matters when the server had more to send: when it sent more at the next packet. Without such
    // data the time is the handshake's.
    let rtt = analysis.round_trips.map_or(0, |[min, ..]| min);
    let stopped = wait.ns > 0 && sent + 1_200 > 3 * received;
    if !stopped || wait.ns < rtt / 2 || handshake.repeated + handshake.packets == 0 {
        return None;
    }
    let title = format!("the server waited {} at the anti-amplification limit", time(wait.ns));
    let mut found = finding(analysis, &RULE, wait.ns, title)
        .at(interval(wait.interval), wait.events)
        .with([
            number("limited_s", seconds(wait.ns), "waited", time(wait.ns)),
            count("received_bytes", received, "received", size(received)),
            count(
                "sent_bytes",
                sent,
                "sent",
                format!("{}; the limit is {}", size(sent), size(3 * received)),
            ),
        ])
        .because("the server's first flight is larger than three times the client's");
    if !handshake.is_stopped_for_certain() {
        found.confidence = Confidence::Medium;
        found = found.unseen("whether the server had more to send at once");
    }
    Some(found)
}
