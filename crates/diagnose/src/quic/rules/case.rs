//! Helpers of the rules.

use units::Duration;

use super::QuicRule;
use crate::quic::analysis::{QuicAnalysis, QuicEpisode};
use crate::quic::budget::{QuicLimiter, QuicSpan};
use crate::quic::clock::interval;
use crate::rules::{Confidence, EvidenceItem, Finding, FindingHelp, Severity, number, rate, size};

/// A finding about the whole connection, with the severity of its cost.
pub(super) fn finding(
    analysis: &QuicAnalysis,
    rule: &QuicRule,
    cost: u64,
    title: String,
) -> Finding {
    Finding {
        code: rule.code,
        kind: "",
        severity: severity(analysis, cost),
        confidence: Confidence::High,
        title,
        cost: Duration::from_nanos(cost),
        interval: interval((analysis.first, analysis.last)),
        frames: analysis.range,
        evidence: Vec::new(),
        cause: String::new(),
        help: FindingHelp::of(rule.help),
        named: None,
        unseen: String::new(),
        is_failure: false,
    }
}

/// Least cost of a warning in ns, as of captures.
pub(super) const MIN_COST: u64 = 50_000_000;

/// Severity by cost: a tenth of the active time is a warning, half of it an error, from 50 ms on.
pub(super) fn severity(analysis: &QuicAnalysis, cost: u64) -> Severity {
    if cost < MIN_COST {
        Severity::Note
    } else if is_at_least(analysis, cost, 2) {
        Severity::Error
    } else if is_at_least(analysis, cost, 10) {
        Severity::Warning
    } else {
        Severity::Note
    }
}

/// Whether the cost is at least a twentieth of the active time.
pub(super) fn is_significant(analysis: &QuicAnalysis, cost: u64) -> bool {
    is_at_least(analysis, cost, 20)
}

/// Whether the cost is at least this part of the active time.
fn is_at_least(analysis: &QuicAnalysis, cost: u64, part: u64) -> bool {
    cost > 0 && cost >= analysis.budget.active().div_ceil(part)
}

/// A note that the cost is an upper bound, if the rate of the bottleneck is unknown.
pub(super) fn bound(analysis: &QuicAnalysis) -> &'static str {
    if analysis.is_bottleneck_known() {
        ""
    } else {
        "the rate of the path, whose queue was never seen, so the cost is an upper bound"
    }
}

/// A receiver's window that holds this many times what a round trip needs at the rate of the transfer is no limit.
const AMPLE: f64 = 3.0;

/// What the first limit of a receiver holds beside the bytes of a round trip while the limit held: both in bytes.
fn window_beside(
    analysis: &QuicAnalysis,
    span: &QuicSpan,
    first: Option<u64>,
) -> Option<(u64, f64)> {
    let rtt = analysis.mean_rtt.or(analysis.round_trips.map(|[min, ..]| min))?;
    let first = first.filter(|&first| first > 0)?;
    // ACKs between the stretches carry what the limit let pass, too.
    let rate = (span.bytes as f64 * 1e9 / span.ns.max(1) as f64).max(analysis.goodput());
    Some((first, rate * rtt as f64 / 1e9))
}

/// The limit of the peer that held the sender for longer, with the first limit of its kind.
fn peer_limit(analysis: &QuicAnalysis) -> (QuicLimiter, Option<u64>) {
    let (connection, stream) = (QuicLimiter::ConnectionFlow, QuicLimiter::StreamFlow);
    match analysis.time(stream) > analysis.time(connection) {
        true => (stream, analysis.flow.first.1),
        false => (connection, analysis.flow.first.0),
    }
}

/// Whether the application of the receiver reads slowly: its limit held the sender, and is not small.
pub(super) fn reads_slowly(analysis: &QuicAnalysis) -> bool {
    let (limiter, first) = peer_limit(analysis);
    let span = analysis.budget.of(limiter);
    let beside = window_beside(analysis, span, first);
    is_significant(analysis, analysis.lost_time(span))
        && beside.is_some_and(|(first, needed)| first as f64 >= AMPLE * needed)
}

/// Time in ns in which an application that reads slowly takes what is left in its window after all has arrived: until its
/// answer to a single message, or, without one, by the rate at which its limit was raised; of the limit that held the sender
/// for longer.
pub(super) fn reading_time(analysis: &QuicAnalysis, limiter: QuicLimiter) -> u64 {
    let remote = analysis.exchange.remote();
    let (own, first) = peer_limit(analysis);
    if own != limiter || !analysis.is_sender() || !reads_slowly(analysis) {
        return 0;
    }
    match remote.count {
        0 => {
            let span = analysis.budget.of(limiter);
            let left = first.unwrap_or(0).min(analysis.stream_bytes);
            let time = left as f64 * span.ns as f64 / span.bytes.max(1) as f64;
            (time as u64).min(analysis.duration())
        }
        1 => remote.total,
        _ => 0,
    }
}

/// Distinguishes a receiver that reads slowly from one that grants too little: by its first limit, beside the bytes of a
/// round trip while the limit held.
pub(super) fn reader(
    analysis: &QuicAnalysis,
    span: &QuicSpan,
    first: Option<u64>,
    found: &mut Finding,
) {
    let Some((first, needed)) = window_beside(analysis, span, first) else {
        let unseen = "whether the receiver's window is small or its application reads slowly";
        found.unseen = match found.unseen.is_empty() {
            true => unseen.to_owned(),
            false => format!("{unseen}; {}", found.unseen),
        };
        return;
    };
    let of_host = if analysis.is_sender() { "the receiver" } else { "this host" };
    if first as f64 >= AMPLE * needed {
        found.kind = "slow-reader";
        found.cause = format!(
            "the application of {of_host} reads slowly: the first limit of {} is {:.0} times what a round trip carries",
            size(first),
            first as f64 / needed.max(1.0)
        );
    } else {
        found.kind = "small-window";
        found.cause = format!("{of_host} grants too little ahead: {} at first", size(first));
    }
}

/// Evidence: the rate of the bottleneck, if it is known.
pub(super) fn path_rate(analysis: &QuicAnalysis) -> Option<EvidenceItem> {
    let bottleneck = analysis.bottleneck?;
    let text = format!("carries {} with a standing queue", rate(bottleneck));
    Some(number("path_rate_bps", bottleneck * 8.0, "path", text))
}

/// Time in ns of bytes at a rate in bytes per second, for a sender that begins with the first window and doubles it each
/// round trip until it fills the path.
pub(super) fn least_time(analysis: &QuicAnalysis, bytes: u64, rate: f64) -> u64 {
    let rtt = analysis.round_trips.map_or(0, |[min, ..]| min) as f64 / 1e9;
    let mut window = analysis.windows.map_or(10 * analysis.datagram, |[first, ..]| first);
    let (mut left, mut time) = (bytes, 0.0);
    while (window as f64) < rate * rtt && left > window {
        time += rtt;
        left -= window;
        window = window.saturating_mul(2).max(1);
    }
    ((time + left as f64 / rate) * 1e9) as u64
}

/// Limits of the transport: all but the applications and the handshake.
const TRANSPORT: [QuicLimiter; 8] = [
    QuicLimiter::SlowStart,
    QuicLimiter::Window,
    QuicLimiter::Recovery,
    QuicLimiter::Timeout,
    QuicLimiter::Pacing,
    QuicLimiter::Path,
    QuicLimiter::ConnectionFlow,
    QuicLimiter::StreamFlow,
];

/// Time in ns in which the sender had data, beyond what they take at the rate of the bottleneck, or at any rate if that is
/// unknown.
pub(super) fn transport_time(analysis: &QuicAnalysis) -> u64 {
    let limited: u64 = TRANSPORT.iter().map(|&limiter| analysis.time(limiter)).sum();
    let carries = analysis.bottleneck.unwrap_or(f64::INFINITY);
    limited.saturating_sub(least_time(analysis, analysis.bytes(), carries))
}

/// What a slow way back costs, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReturnPathCost {
    pub(super) least: u64,
    pub(super) mean: u64,
    pub(super) most: u64,
}

/// Rates of the way there whose costs are averaged, in equal ratios: from what it carried once to ten times that.
const RATES: usize = 9;
const RATIO: f64 = 1.333_521;

/// What a slow way back costs a sender whose ACKs wait there: the time in which it had data, that of the handshake and of the
/// peer's late answers, less what the data take at the rate of the way there. That hardly ever shows: ACKs that wait do not
/// clock what arrives. It carries at least what it once did in a round trip; the mean is over the decade above that.
pub(super) fn return_path_cost(analysis: &QuicAnalysis) -> ReturnPathCost {
    // While round trips are short no ACK waits, and an outage has a finding of its own.
    let has_outage =
        analysis.max_timeouts > 1 || analysis.episodes.iter().any(|one| one.after_outage);
    let is_other = |limiter: &QuicLimiter| match limiter {
        QuicLimiter::Window => true,
        QuicLimiter::Timeout => has_outage,
        _ => false,
    };
    let waiting = TRANSPORT.iter().filter(|limiter| !is_other(limiter));
    // In a log without frames the time between late ACKs may seem to be that of a limit that is not logged.
    let waiting = waiting.chain([&QuicLimiter::Unknown]).map(|&limiter| analysis.time(limiter));
    let elsewhere = [return_path_of_handshake(analysis), late_answers(analysis)];
    let waiting = waiting.chain(elsewhere).fold(0, u64::saturating_add);
    let others = analysis.budget.of(QuicLimiter::Window).bytes;
    let bytes = analysis.bytes().saturating_sub(others);
    let beyond = |rate| waiting.saturating_sub(least_time(analysis, bytes, rate));
    let seen = analysis.largest_rate.unwrap_or(f64::INFINITY);
    let rates = core::iter::successors(Some(seen), |rate| Some(rate * RATIO));
    let mean = rates.take(RATES).map(|rate| beyond(rate) / RATES as u64).sum();
    ReturnPathCost { least: beyond(seen), mean, most: beyond(f64::INFINITY) }
}

/// Most answers of the peer of which each is late by the way back: who answers more often may think.
const FEW_ANSWERS: u64 = 2;

/// Time in ns in which answers of the peer waited on a slow way back among its ACKs, or were lost there.
pub(super) fn late_answers(analysis: &QuicAnalysis) -> u64 {
    let remote = analysis.exchange.remote();
    let is_late = analysis.return_path.is_some() && remote.count <= FEW_ANSWERS;
    if is_late { remote.total } else { 0 }
}

/// Time in ns of the connection that a sender in slow start at first could save: beyond the handshake and what the data
/// take; `None` without the rate of the link: that of deliveries may be the application's.
pub(super) fn avoidable(analysis: &QuicAnalysis) -> Option<u64> {
    let rate = analysis.spacing.map(|spacing| spacing.rate).filter(|&rate| rate > 0.0)?;
    let rtt = analysis.round_trips.map_or(0, |[min, ..]| min);
    let handshake = analysis.handshake.duration().unwrap_or(0).min(rtt);
    let least = least_time(analysis, analysis.bytes(), rate) + handshake;
    Some(analysis.duration().saturating_sub(least))
}

/// Whether others share the bottleneck, by the spacing of packets: the time in which it carried theirs, in ns.
pub(super) fn time_of_others(analysis: &QuicAnalysis) -> Option<u64> {
    // Of a link whose rate changed that is another finding.
    let spacing = analysis.spacing.filter(|spacing| spacing.fell.is_none())?;
    Some(spacing.of_others()).filter(|&ns| is_significant(analysis, ns))
}

/// Time in ns that the peer's packets of the handshake take on a slow way back, at most what the handshake took beyond a
/// round trip.
pub(super) fn return_path_of_handshake(analysis: &QuicAnalysis) -> u64 {
    let Some(back) = analysis.return_path.filter(|&back| back > 0.0) else { return 0 };
    let rtt = analysis.round_trips.map_or(0, |[min, ..]| min);
    let beyond = analysis.handshake.duration().unwrap_or(0).saturating_sub(rtt);
    let bytes = analysis.handshake.bytes_received();
    ((bytes as f64 * 1e9 / back) as u64).min(beyond)
}

/// Totals of congestion events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EpisodeSum {
    pub(super) count: u64,
    pub(super) lost: u64,
    pub(super) spurious: u64,
    /// Lost time in ns.
    pub(super) cost: u64,
    pub(super) span: QuicSpan,
    pub(super) interval: (u64, u64),
    pub(super) events: (u64, u64),
}

/// Sums the congestion events that `keep` selects.
pub(super) fn episodes(
    analysis: &QuicAnalysis,
    keep: impl Fn(&QuicEpisode) -> bool,
) -> Option<EpisodeSum> {
    let mut sum = EpisodeSum::default();
    let mut parts = [QuicSpan::default(); 2];
    let mut stalls = 0;
    for episode in analysis.episodes.iter().filter(|episode| keep(episode)) {
        if sum.count == 0 {
            (sum.interval.0, sum.events.0) = (episode.at, episode.events.0);
        }
        sum.count += 1;
        sum.lost += episode.lost;
        sum.spurious += episode.spurious;
        stalls += episode.stall;
        sum.span.merge(&episode.span);
        sum.interval.1 = sum.interval.1.max(episode.at).max(episode.span.interval.1);
        sum.events.1 = sum.events.1.max(episode.events.1).max(episode.span.events.1);
        // After a drop of its rate the path carries less.
        let is_late = analysis.path_drop_at().is_some_and(|at| episode.at >= at);
        parts[usize::from(is_late)].merge(&episode.span);
    }
    sum.cost = parts.iter().map(|part| analysis.lost_time(part)).sum::<u64>() + stalls;
    (sum.count > 0).then_some(sum)
}

/// Lost time in ns of a window that no congestion event explains, after the first one: without it, slow start would have gone
/// on. It is that of an outage if that was the first; else that of the events that `keep` selects if these are most.
pub(super) fn regrowth(analysis: &QuicAnalysis, keep: impl Fn(&QuicEpisode) -> bool) -> u64 {
    let all = &analysis.episodes;
    let outage = all.first().filter(|first| first.after_outage);
    let is_its = match outage {
        Some(first) => keep(first),
        None => all.iter().filter(|episode| keep(episode)).count() * 2 > all.len(),
    };
    if is_its { analysis.lost_time(&analysis.plain_window) } else { 0 }
}

/// Whether most packets of a congestion event arrived, so that it was spurious.
pub(super) const fn is_spurious(episode: &QuicEpisode) -> bool {
    episode.lost > 0 && episode.spurious * 2 > episode.lost
}
