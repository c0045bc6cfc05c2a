//! CC801: slow QUIC handshake.
//!
//! Checks for Retry and version negotiation packets, probe timeouts and repeated CRYPTO data before
//! the handshake is complete, and for a handshake longer than two round trips.
//!
//! Cost: the duration of the handshake less one round trip, the least that TLS 1.3 in QUIC needs
//! (RFC 9001 section 4.1).

use super::QuicRule;
use super::case::{finding, is_significant, return_path_of_handshake};
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{Confidence, Finding, Remedy, RemedyHost, Severity, count, many, number};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC801",
    name: "slow QUIC handshake",
    check,
    background: "\
A QUIC handshake takes one round trip. A Retry packet (RFC 9000 section 8.1.2) and a version
negotiation each cost another one. A lost Initial packet costs a probe timeout, which is three times
the initial RTT of 333 ms at first (RFC 9002 section 6.2.2: 999 ms), because no round trip has been
measured. A ClientHello of more than one datagram (post-quantum key shares) has two chances to be
lost, and a certificate chain above the anti-amplification limit waits for the client (CC802).",
    help: &[
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quic-go",
            "Transport.VerifySourceAddress decides which clients get a Retry",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quinn",
            "Incoming::retry is the application's choice; TransportConfig::initial_rtt on a known path",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quiche",
            "quiche::retry is the application's choice; Config::set_initial_rtt on a known path",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "msquic",
            "QUIC_SETTINGS InitialRttMs on a known path; Retry begins above RetryMemoryLimit",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "s2n-quic",
            "Limits::with_initial_round_trip_time; endpoint_limits with a higher with_inflight_handshake_limit",
        ),
        Remedy::general("offer the version that the server speaks; 0-RTT for repeated connections"),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let handshake = &analysis.handshake;
    let began = handshake.began?;
    let rtt = analysis.round_trips.map(|[min, ..]| min);
    // An unfinished handshake lasts until the end of the log.
    let end = handshake.complete.unwrap_or(analysis.last);
    let lasted = end.saturating_sub(began);
    let cost = lasted.saturating_sub(rtt.unwrap_or(0)).saturating_sub(handshake.amplification.ns);
    // What a slow way back takes for the peer's packets is in its own finding.
    let cost = cost.saturating_sub(return_path_of_handshake(analysis));
    let repeats = handshake.retries + handshake.negotiations + handshake.timeouts;
    // A handshake that an error ended is not slow: CC804 has the error.
    let failed = analysis.close.as_ref().is_some_and(|close| close.is_error);
    if failed && handshake.complete.is_none() {
        return None;
    }
    let unfinished = handshake.complete.is_none() && analysis.received > 0;
    let slow = rtt.is_some_and(|rtt| lasted > 2 * rtt) && is_significant(analysis, cost);
    if analysis.received == 0 || (repeats == 0 && !slow && !unfinished) {
        return None;
    }
    let mut reasons = Vec::new();
    for (n, what) in [
        (handshake.retries, "Retry"),
        (handshake.negotiations, "version negotiation"),
        (handshake.timeouts, "probe timeout"),
    ] {
        if n > 0 {
            reasons.push(if what == "Retry" && n > 1 {
                format!("{n} Retries")
            } else {
                many(n, what)
            });
        }
    }
    let cause = if handshake.timeouts > 0 && handshake.timeouts >= handshake.retries {
        "packets of the handshake were lost or not answered, and only a timer repeated them"
    } else if handshake.retries > 0 {
        "the server validated the client's address with a Retry, which costs a round trip"
    } else if handshake.negotiations > 0 {
        "the server does not speak the first version that the client offered"
    } else if handshake.repeated > 0 {
        "packets of the handshake were lost or late, and were retransmitted"
    } else {
        "the peer or this host took longer than the path: its certificate, its signature, or its scheduler"
    };
    let title = match (unfinished, reasons.is_empty()) {
        (true, _) => format!("the handshake is not complete after {}", time(lasted)),
        (false, true) => format!("the handshake took {}", time(lasted)),
        (false, false) => format!("the handshake took {}: {}", time(lasted), reasons.join(", ")),
    };
    let last = handshake.events.1.max(handshake.events.0);
    let last = if unfinished { analysis.range.1 } else { last };
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval((began, end)), (handshake.events.0, last))
        .with([
            number("handshake_s", seconds(lasted), "handshake", time(lasted)),
            count("retries", handshake.retries, "", String::new()),
            count("version_negotiations", handshake.negotiations, "", String::new()),
            count("handshake_timeouts", handshake.timeouts, "", String::new()),
            count(
                "repeated_crypto_bytes",
                handshake.repeated,
                "retransmitted",
                format!("{} B of CRYPTO frames", handshake.repeated),
            ),
        ])
        .because(cause);
    if let Some(rtt) = rtt {
        // Logs in milliseconds have round trips of 0.
        let text = if rtt == 0 {
            "below the log's resolution; one is the least".to_owned()
        } else {
            let trips = lasted as f64 / rtt as f64;
            format!("{}, so {trips:.1} of them; one is the least", time(rtt))
        };
        found = found.with([number("rtt_s", seconds(rtt), "round trip", text)]);
    } else {
        found.confidence = Confidence::Medium;
        found = found.unseen("the round trip");
    }
    // A connection that mostly rests waits for its users.
    if repeats == 0 && handshake.complete.is_some() && analysis.rests() > analysis.work() {
        found.severity = Severity::Note;
    }
    Some(found)
}
