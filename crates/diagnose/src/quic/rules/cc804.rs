//! CC804: closed by an error or by the idle timeout.
//!
//! Checks the log's report of the end of the connection, or its CONNECTION_CLOSE frame, for an error code or
//! the idle timeout, and how long the peer had been silent.
//!
//! Cost: none that the log shows; the silence before an idle timeout.

use super::QuicRule;
use super::case::finding;
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{Finding, Remedy, RemedyHost, Severity, number};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC804",
    name: "connection closed by an error",
    check,
    background: "\
CONNECTION_CLOSE carries a code: transport errors of RFC 9000 section 20.1 (FLOW_CONTROL_ERROR,
PROTOCOL_VIOLATION, ...), 0x100 and above for TLS alerts (0x12a is bad_certificate, 0x178 is
no_application_protocol), or a code of the application. The idle timeout (RFC 9000 section 10.1) is
the smaller of both sides' max_idle_timeout; it ends a connection silently.",
    help: &[
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quic-go",
            "Config.MaxIdleTimeout, Config.KeepAlivePeriod, Config.HandshakeIdleTimeout",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quinn",
            "TransportConfig::max_idle_timeout, TransportConfig::keep_alive_interval",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quiche",
            "Config::set_max_idle_timeout; Connection::send_ack_eliciting keeps it alive",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "msquic",
            "QUIC_SETTINGS IdleTimeoutMs, KeepAliveIntervalMs, DisconnectTimeoutMs",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "s2n-quic",
            "Limits::with_max_idle_timeout, Limits::with_max_keep_alive_period",
        ),
        Remedy::general(
            "the code and the reason name the cause; the log of the side that closed has more",
        ),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let close = analysis.close.as_ref()?;
    if !close.is_error && !close.idle_timeout {
        return None;
    }
    let by = match close.by_peer {
        Some(true) => "the peer closed the connection",
        Some(false) => "this host closed the connection",
        None => "the connection was closed",
    };
    let title = match (close.idle_timeout, close.by_peer) {
        (true, Some(true)) => "the peer closed the connection after its idle timeout".to_owned(),
        (true, _) => "the connection ended by the idle timeout".to_owned(),
        (false, _) => format!("{by} with the error {}", close.code),
    };
    let mut found = finding(analysis, &RULE, 0, title)
        .at(interval((close.at, close.at)), (close.event, close.event))
        .with([number("at_s", seconds(close.at), "closed at", time(close.at))]);
    found.cause = match (close.reason.is_empty(), close.idle_timeout) {
        (false, _) => format!("the reason in the log: {}", close.reason),
        (true, true) => match analysis.last_received {
            Some(at) => {
                format!("nothing was received for {} before", time(close.at.saturating_sub(at)))
            }
            None => "nothing was ever received".to_owned(),
        },
        (true, false) => "the log has no reason".to_owned(),
    };
    // An idle timeout after the last data, all of them acknowledged, is the usual end.
    let answered = analysis.unanswered == 0 && (analysis.acks > 0 || !analysis.is_sender());
    let in_order = close.idle_timeout && analysis.bytes() > 0 && answered;
    // Nothing can have been transferred.
    let failed = close.is_error && analysis.handshake.complete.is_none();
    found.severity = match (in_order, failed) {
        (true, _) => Severity::Note,
        (_, true) => Severity::Error,
        _ => Severity::Warning,
    };
    // After the handshake the application's codes do not show whether it had what it wanted.
    let is_failure = failed || close.idle_timeout;
    Some(if is_failure { found.failure_above_note() } else { found })
}
