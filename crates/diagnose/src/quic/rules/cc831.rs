//! CC831: the application is the limit (QUIC).
//!
//! Checks for time in which the window was open, no limit of the peer was reached, the pacer let
//! the next packet leave, and nothing was sent.
//!
//! Cost: that time. Idle time (nothing in flight for longer than a probe timeout) does not count.

use super::QuicRule;
use super::case::{finding, is_significant};
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{
    Confidence, Finding, Remedy, RemedyHost, Severity, count, many, number, percent, rate, size,
};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC831",
    name: "the application is the limit (QUIC)",
    check,
    background: "\
The sender could have sent and had nothing to send: the application produces data slowly, waits for
requests, or its writes are limited by the stack's send buffer. In user space the event loop belongs
to the application: a thread that is busy elsewhere, a lock, or timers of 15 ms on Windows look the
same. A controller must not grow its window meanwhile (RFC 9002 section 7.8), so the transfer stays
slow for a while afterwards.",
    help: &[
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quinn",
            "TransportConfig::send_window; drive the endpoint on its own task",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "msquic",
            "QUIC_SETTINGS SendBufferingEnabled; post the next send before the last completes",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quic-go",
            "write larger chunks: each Stream.Write wakes the connection's goroutine",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quiche",
            "call Connection::send until it returns Done, and stream_send whenever writable",
        ),
        Remedy::stack(RemedyHost::Elsewhere, "s2n-quic", "Limits::with_max_send_buffer_size"),
        Remedy::general("profile the thread that drives the connection"),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let span = analysis.budget.of(QuicLimiter::Application);
    if !analysis.is_sender() || !is_significant(analysis, span.ns) {
        return None;
    }
    let share = percent(span.ns, analysis.budget.active());
    let title = format!("the application had nothing to send {share} of the time");
    let [_, _, window] = analysis.windows.unwrap_or_default();
    let pacing = &analysis.pacing;
    let used = if pacing.used_ns == 0 { 0.0 } else { pacing.used / pacing.used_ns as f64 };
    let mut found = finding(analysis, &RULE, span.ns, title)
        .at(interval(span.interval), span.events)
        .with([
            number("waited_s", seconds(span.ns), "waited", time(span.ns)),
            number(
                "window_used",
                used,
                "window",
                format!(
                    "{:.0} % of it used on average while data were in flight; {} at the end",
                    used * 100.0,
                    size(window)
                ),
            ),
            number("goodput_bps", analysis.goodput() * 8.0, "goodput", rate(analysis.goodput())),
        ])
        .because("the window was open, the peer's limits were not reached, and nothing was sent");
    if analysis.reported_application > 0 {
        let text =
            format!("{} by the controller itself", many(analysis.reported_application, "time"));
        found = found.with([count(
            "application_limited_states",
            analysis.reported_application,
            "reported",
            text,
        )]);
    } else {
        found.confidence = Confidence::Medium;
        found = found.unseen(if pacing.logged {
            "whether the application had no data or the stack did not run"
        } else {
            "whether the application had no data, the stack did not run, or it paced below 1.25 windows per round trip: the log has no pacing rate"
        });
    }
    // Short exchanges within the first window wait for nothing else.
    if analysis.bytes() < 10 * analysis.datagram {
        found.severity = Severity::Note;
    }
    Some(found)
}
