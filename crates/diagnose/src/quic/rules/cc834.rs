//! CC834: slow start (QUIC).
//!
//! Checks for time in which the window was full before the first congestion event.
//!
//! Cost: that time less the time its bytes take at the rate of the bottleneck.

use super::QuicRule;
use super::case::{bound, finding, is_significant, path_rate};
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{Confidence, Finding, Remedy, RemedyHost, Severity, count, number, size};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC834",
    name: "slow start (QUIC)",
    check,
    background: "\
Slow start begins with ten datagrams (RFC 9002 section 7.2) and doubles per round trip, so a short
transfer over a long path spends most of its time in it. A larger first window, a window remembered
from the last connection or a relay near the client shorten it.
HyStart++ (RFC 9406) ends it at the first sign of a queue; if it ends too early, growth is slow from
then on.",
    help: &[
        Remedy::stack(
            RemedyHost::Sender,
            "quiche",
            "Config::set_initial_congestion_window_packets; Config::enable_hystart",
        ),
        Remedy::stack(
            RemedyHost::Sender,
            "quinn",
            "CubicConfig::initial_window, NewRenoConfig::initial_window",
        ),
        Remedy::stack(
            RemedyHost::Sender,
            "msquic",
            "QUIC_SETTINGS InitialWindowPackets; HyStartEnabled",
        ),
        Remedy::stack(RemedyHost::Sender, "mvfst", "TransportSettings::initCwndInMss"),
        Remedy::general("0-RTT and connection reuse: one connection for many transfers"),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let span = &analysis.slow_start;
    let rtt = analysis.round_trips.map(|[min, ..]| min)?;
    // The first round trip of the data is unavoidable.
    let cost = analysis.lost_time(span).saturating_sub(rtt);
    if !analysis.is_sender() || !is_significant(analysis, cost) || analysis.plateau.ns > span.ns / 2
    {
        return None;
    }
    let [first, largest, _] = analysis.windows?;
    let in_slow_start = analysis.budget.of(QuicLimiter::SlowStart).ns > span.ns / 2;
    let title = format!(
        "{} before the first congestion event, from a window of {}",
        time(span.ns),
        size(first)
    );
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(span.interval), span.events)
        .with([
            number(
                "ramp_s",
                seconds(span.ns),
                "limited",
                format!("{} by the window", time(span.ns)),
            ),
            count(
                "first_window_bytes",
                first,
                "window",
                format!("{} at first, {} at most", size(first), size(largest)),
            ),
            number("rtt_s", seconds(rtt), "round trip", time(rtt)),
        ])
        .with(path_rate(analysis))
        .because(if in_slow_start {
            "the window doubles per round trip from its first value"
        } else {
            "slow start ended without a loss, and the window grew slowly from then on"
        })
        .unseen(bound(analysis));
    if !analysis.is_bottleneck_known() {
        found.confidence = Confidence::Medium;
    }
    // A connection that mostly rests begins anew each time.
    let is_restful = analysis.rests() > analysis.work();
    let most = if is_restful { Severity::Note } else { Severity::Warning };
    found.severity = found.severity.min(most);
    Some(found)
}
