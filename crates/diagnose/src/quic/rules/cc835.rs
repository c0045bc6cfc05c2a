//! CC835: the path is saturated (QUIC).
//!
//! Checks for time in which the window was full and round trips showed a queue, for a quarter of
//! the active time, or the pacer kept the sender at the rate of the bottleneck.
//!
//! A mean queue of at least 200 ms and two round trips is a finding of its own, the kind `bufferbloat`.
//!
//! A link that carries more than the transfer gets while its queue is standing is shared: its rate is that
//! of the spacing of packets.
//!
//! Cost: none; a standing queue delays other traffic. Of a shared link the time in which the sender had data, less what
//! they take at the link's rate by a sender that doubles its window each round trip: others fill the queue, too.

use super::QuicRule;
use super::case::{finding, time_of_others, transport_time};
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{Finding, Remedy, Severity, number, percent, rate};
use crate::timeline::SHARED_FRACTION;

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC835",
    name: "the path is saturated (QUIC)",
    check,
    background: "\
Round trips exceed their minimum while the window is full: the bottleneck has a queue and is busy,
so the transfer is as fast as the path lets it be, or as its share of a shared one. A queue of many
round trips delays everything else on the path (bufferbloat).",
    help: &[Remedy::general(
        "nothing, if the rate is that of the line; against the queue: fq_codel or cake at the bottleneck, ECN, BBR",
    )],
};

/// Mean queue in ns that people notice in all that shares it: twice the 0.1 s that they perceive as no delay.
const BLOAT: u64 = 200_000_000;
/// Mean queue in round trips of the empty path that no controller needs.
const BLOAT_TRIPS: u64 = 2;

/// Time in ns in which a pacer that keeps to the rate of the bottleneck keeps it busy (BBR).
fn busy_by_pacing(analysis: &QuicAnalysis) -> u64 {
    let paced = analysis.budget.of(QuicLimiter::Pacing);
    let bottleneck = analysis.bottleneck.unwrap_or(f64::INFINITY);
    let full = paced.bytes as f64 * 1e9 >= SHARED_FRACTION * bottleneck * paced.ns as f64;
    if full { paced.ns } else { 0 }
}

/// Whether the path was the limit for a quarter of the active time.
fn is_busy(analysis: &QuicAnalysis) -> bool {
    let busy = analysis.budget.of(QuicLimiter::Path).ns + busy_by_pacing(analysis);
    busy + analysis.budget.of(QuicLimiter::Recovery).ns >= analysis.budget.active() / 4
}

/// Whether this finding says that others share the path, and what the queue drops is theirs, too.
pub(super) fn is_shared(analysis: &QuicAnalysis) -> bool {
    analysis.bottleneck.is_some() && is_busy(analysis) && time_of_others(analysis).is_some()
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let bottleneck = analysis.bottleneck?;
    let busy = analysis.budget.of(QuicLimiter::Path);
    let held = busy_by_pacing(analysis);
    if !is_busy(analysis) {
        return None;
    }
    let [min, _, max] = analysis.round_trips?;
    let mean = analysis.mean_rtt.unwrap_or(min);
    let title = format!(
        "the path is busy {} of the time, at {}",
        percent(busy.ns + held, analysis.budget.active()),
        rate(bottleneck)
    );
    let mut found = finding(analysis, &RULE, 0, title)
        .at(interval(busy.interval), busy.events)
        .with([
            number(
                "path_rate_bps",
                bottleneck * 8.0,
                "path",
                format!("carries {}", rate(bottleneck)),
            ),
            number("goodput_bps", analysis.goodput() * 8.0, "goodput", rate(analysis.goodput())),
            number(
                "mean_rtt_s",
                seconds(mean),
                "round trip",
                format!("{} at least, {} on average, {} at most", time(min), time(mean), time(max)),
            ),
        ])
        .because("the sender kept the bottleneck busy, and round trips show its queue");
    let queue = mean.saturating_sub(min);
    if let Some(spacing) = analysis.spacing.filter(|_| is_shared(analysis)) {
        // What they leave is also what makes the window small.
        let cost = transport_time(analysis);
        let (ns, bytes) = spacing.busy;
        let got = bytes as f64 * 1e9 / ns.max(1) as f64;
        let mut found = finding(analysis, &RULE, cost, String::new())
            .at(interval(spacing.interval), busy.events)
            .with(found.evidence)
            .because("the queue is standing, and the link carries more than this transfer gets");
        found.title = format!(
            "others share the path: it carries {}, {} of it for this transfer",
            rate(bottleneck),
            rate(got)
        );
        found.severity = found.severity.min(Severity::Warning);
        return Some(found);
    }
    let is_bloat = queue >= BLOAT && queue >= BLOAT_TRIPS * min;
    found.severity = if is_bloat { Severity::Warning } else { Severity::Note };
    if is_bloat {
        found.kind = "bufferbloat";
        found.title = format!(
            "a queue of {} on average stands at the bottleneck of {}",
            time(queue),
            rate(bottleneck)
        );
        found.cause = "the sender fills a queue that is much longer than the path needs".into();
    }
    Some(found)
}
