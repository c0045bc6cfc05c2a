//! CC832: pacing leaves the window unused.
//!
//! Checks for logs with pacing rates below a window per round trip (pacing_rate * smoothed_rtt /
//! congestion_window, weighted by time), while the pacer was the limit for a quarter of the time.
//! RFC 9002 section 7.7 recommends 1.25 windows per round trip.
//!
//! Cost: the time that the pacer held, less what it takes at the rate of the window.

use super::QuicRule;
use super::case::finding;
use crate::quic::clock::{interval, seconds, time};
use crate::quic::sender::ENOUGH_PACING;
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{Finding, Remedy, RemedyHost, number, percent, rate};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC832",
    name: "pacing leaves the window unused",
    check,
    background: "\
A pacer spreads a window over a round trip. At less than one window per round trip the window never
fills: the pacer is the limit, the controller counts as limited by the application, and its window
does not grow. Causes are a gain of 1 or less, a rate computed from an old or inflated round trip,
timers that fire late (each firing must send all that is due), and a configured maximum.",
    help: &[
        Remedy::stack(
            RemedyHost::Sender,
            "quiche",
            "Config::set_max_pacing_rate, Config::enable_pacing",
        ),
        Remedy::stack(RemedyHost::Sender, "msquic", "QUIC_SETTINGS PacingEnabled"),
        Remedy::stack(RemedyHost::Sender, "lsquic", "es_pace_packets, es_clock_granularity"),
        Remedy::stack(
            RemedyHost::Sender,
            "mvfst",
            "TransportSettings::pacingEnabled, pacingTickInterval",
        ),
        Remedy::general(
            "pace at 1.25 windows per round trip at least, 2 in slow start; allow bursts as long as a timer tick",
        ),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let pacing = &analysis.pacing;
    let span = analysis.budget.of(QuicLimiter::Pacing);
    if pacing.ns == 0 || span.ns < analysis.budget.active() / 4 {
        return None;
    }
    let ratio = pacing.ratio / pacing.ns as f64;
    let used = if pacing.used_ns == 0 { 0.0 } else { pacing.used / pacing.used_ns as f64 };
    // With a queue at the bottleneck the path is busy, as with BBR's window of two BDPs.
    if ratio >= ENOUGH_PACING || analysis.has_standing_queue() {
        return None;
    }
    let cost = (span.ns as f64 * (1.0 - ratio.max(0.0))) as u64;
    let title = format!("the pacer allows {:.0} % of a window per round trip", ratio * 100.0);
    Some(
        finding(analysis, &RULE, cost, title)
            .at(interval(span.interval), span.events)
            .with([
                number(
                    "windows_per_rtt",
                    ratio,
                    "pacing",
                    format!("{ratio:.2} windows per round trip; 1.25 is recommended"),
                ),
                number(
                    "window_used",
                    used,
                    "window",
                    format!("{:.0} % of it used on average", used * 100.0),
                ),
                number(
                    "paced_s",
                    seconds(span.ns),
                    "held",
                    format!("{} ({})", time(span.ns), percent(span.ns, analysis.budget.active())),
                ),
                number(
                    "goodput_bps",
                    analysis.goodput() * 8.0,
                    "goodput",
                    rate(analysis.goodput()),
                ),
            ])
            .because("the pacing rate is below the window divided by the round trip")
            .unseen(
                "the rate of the path: with BBR a window of two bandwidth-delay products is usual",
            ),
    )
}
