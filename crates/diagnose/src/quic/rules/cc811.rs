//! CC811: packet loss in QUIC.
//!
//! Checks for congestion events whose packets never arrived, and the time in which the window
//! limited the sender until it was regained. On a log of the receiver: for packet numbers that
//! never arrived. On a log without events of losses: for packets that were never acknowledged although three later
//! ones were (RFC 9002 section 6.1.1).
//!
//! Those of an outage are CC813's, and those of a queue that others share CC835's.
//!
//! Cost: that time, and that of a window which is still too small afterwards, less the time its bytes take at the rate of the
//! bottleneck. Losses of a
//! saturated path cost little: the path stays busy.

use super::QuicRule;
use super::case::{
    EpisodeSum, bound, episodes, finding, is_spurious, path_rate, regrowth, transport_time,
};
use crate::quic::QuicAnalysis;
use crate::quic::analysis::QuicEpisode;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{
    Confidence, EvidenceItem, Finding, Remedy, RemedyHost, Severity, count, many, number, percent,
    rate, size,
};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC811",
    name: "packet loss in QUIC",
    check,
    background: "\
A loss-based controller (NewReno of RFC 9002, CUBIC of RFC 9438) reduces its window at each
congestion event and needs many round trips to regain it, so even 0.1 % of random loss limits it:
NewReno carries about 1.22 MSS / (RTT sqrt(p)). If the bottleneck's queue overflows the loss is the
usual feedback and costs nothing; if round trips are at their minimum the loss is random (radio,
policers, a short queue) or comes from bursts. Losses that turn out to be reordering are CC812.",
    help: &[
        Remedy::stack(
            RemedyHost::Sender,
            "quiche",
            "Config::set_cc_algorithm_name(\"bbr2_gcongestion\"), enable_pacing(true)",
        ),
        Remedy::stack(
            RemedyHost::Sender,
            "quinn",
            "TransportConfig::congestion_controller_factory with BbrConfig or CubicConfig",
        ),
        Remedy::stack(
            RemedyHost::Sender,
            "msquic",
            "QUIC_SETTINGS CongestionControlAlgorithm = QUIC_CONGESTION_CONTROL_ALGORITHM_BBR; PacingEnabled",
        ),
        Remedy::stack(
            RemedyHost::Sender,
            "picoquic",
            "picoquic_set_default_congestion_algorithm(quic, picoquic_bbr_algorithm)",
        ),
        Remedy::stack(RemedyHost::Sender, "s2n-quic", "provider::congestion_controller::Bbr"),
        Remedy::stack(RemedyHost::Sender, "lsquic", "es_cc_algo = 2 (BBR), es_pace_packets = 1"),
        Remedy::stack(
            RemedyHost::Sender,
            "mvfst",
            "TransportSettings::defaultCongestionController = CongestionControlType::BBR",
        ),
        Remedy::general(
            "larger UDP socket buffers (net.core.rmem_max, net.core.wmem_max): a full one drops packets in the host",
        ),
    ],
};

/// If the log has no window, a loss of one packet in this number is an error: NewReno's window is then
/// 1.22 / sqrt(0.1), below the four datagrams that the packet threshold of three needs, so that each loss
/// waits for a timeout.
const UNPRICED: u64 = 10;

/// Whether a congestion event is one of lost packets, and of no outage.
const fn is_loss(episode: &QuicEpisode) -> bool {
    !is_spurious(episode) && !episode.persistent && !episode.by_ce && !episode.after_outage
}

/// Fewest losses of a path that loses all the time, and fewest timeouts among them.
const HABIT: u64 = 10;

/// Whether the probe timeouts are those of single losses, again and again: in an outage a timer fires several times in a row.
pub(super) fn explains_timeouts(analysis: &QuicAnalysis) -> bool {
    let losses = analysis.episodes.iter().filter(|episode| is_loss(episode)).count() as u64;
    let is_outage = |episode: &QuicEpisode| episode.after_outage || episode.persistent;
    let has_outage = analysis.max_timeouts > 1 || analysis.episodes.iter().any(is_outage);
    !has_outage && losses >= HABIT && analysis.timeouts >= HABIT
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    if !analysis.is_sender() {
        return received(analysis);
    }
    if analysis.passed_over > 0 {
        return Some(passed_over(analysis));
    }
    // Those of a change of the path are CC853's.
    let is_loss =
        |episode: &QuicEpisode| is_loss(episode) && !super::cc853::is_of_change(analysis, episode);
    let sum = episodes(analysis, is_loss)?;
    // A queue that others fill, too, drops packets of both.
    let cost = match super::cc835::is_shared(analysis) {
        true => episodes(analysis, |episode| is_loss(episode) && !episode.is_queued)
            .map_or(0, |sum| sum.cost),
        false => sum.cost + regrowth(analysis, is_loss),
    };
    let cost =
        if explains_timeouts(analysis) { cost + super::cc813::waits(analysis) } else { cost };
    // What a policer drops makes windows small, and timers fire.
    let policed = analysis.policer.map_or(0, |_| transport_time(analysis));
    let cost = cost.max(policed);
    let real = sum.lost - sum.spurious;
    // Packets of a size that vanishes are CC852's.
    if real == 0 || super::cc852::has_vanished(analysis) {
        return None;
    }
    let share = percent(real, analysis.sent);
    let title = format!(
        "{} of {} packets were lost ({share}), in {}",
        real,
        analysis.sent,
        many(sum.count, "congestion event")
    );
    let [min, _, max] = analysis.round_trips.unwrap_or_default();
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(sum.interval), sum.events)
        .with([
            count("lost_packets", real, "lost", format!("{} of {} sent", real, analysis.sent)),
        ])
        .with(limited(&sum))
        .with([
            number(
                "min_rtt_s",
                seconds(min),
                "round trip",
                format!("{} at least, {} at most", time(min), time(max)),
            ),
        ])
        .with(windows(analysis))
        .with(path_rate(analysis))
        .because(if analysis.is_bottleneck_known() {
            "packets were dropped on the path or in a socket buffer"
        } else {
            "packets were dropped without a queue to show for it: random loss, a policer, or a short queue"
        })
        .unseen(if cost > 0 { bound(analysis) } else { "" });
    if let Some(policer) = analysis.policer {
        found.kind = "policer";
        found.title = format!(
            "a policer drops what exceeds {}: {} of {} packets, without a queue",
            rate(policer.rate),
            real,
            analysis.sent
        );
        found.cause = format!(
            "a token bucket of {} and {} drops {} of the {} lost packets, and delays none",
            rate(policer.rate),
            size(policer.burst as u64),
            policer.lost.0,
            policer.lost.1
        );
        found = found.with([number("policer_bps", policer.rate * 8.0, "", String::new())]);
    }
    // Without a window the cost is unknown.
    if analysis.windows.is_none() && real * UNPRICED >= analysis.sent {
        found.severity = Severity::Error;
    }
    Some(found)
}

/// Evidence: the time of the congestion events, and their number.
fn limited(sum: &EpisodeSum) -> [EvidenceItem; 2] {
    let text = format!("the window for {} until it was regained", time(sum.span.ns));
    [
        number("limited_s", seconds(sum.span.ns), "limited", text),
        count("congestion_events", sum.count, "", String::new()),
    ]
}

/// Losses of a log that has no events of them.
fn passed_over(analysis: &QuicAnalysis) -> Finding {
    let lost = analysis.passed_over;
    let share = percent(lost, analysis.sent);
    // The log may have the states of the controller.
    let sum = episodes(analysis, |episode| !episode.persistent);
    let events = sum.map(|sum| format!(", in {}", many(sum.count, "congestion event")));
    let title = format!(
        "{lost} of {} packets were never acknowledged although later ones were ({share}){}",
        analysis.sent,
        events.unwrap_or_default()
    );
    let cost = sum.map_or(0, |sum| sum.cost);
    let mut found = finding(analysis, &RULE, cost, title)
        .with([count("lost_packets", lost, "lost", format!("{lost} of {} sent", analysis.sent))])
        .because("packets were dropped on the path or in a socket buffer")
        .unseen(if cost > 0 { bound(analysis) } else { "" })
        .unseen(match sum {
            Some(_) => "which of them caused a congestion event: the log has no event of a loss",
            None => {
                "when they were declared lost, and what it cost: the log has no event of a loss"
            }
        });
    if let Some(sum) = sum {
        found = found
            .at(interval(sum.interval), sum.events)
            .with(limited(&sum))
            .with(windows(analysis));
    }
    if sum.is_none() && lost.saturating_mul(UNPRICED) >= analysis.sent {
        found.severity = Severity::Error;
    }
    found.confidence = Confidence::Medium;
    found
}

fn windows(analysis: &QuicAnalysis) -> Option<EvidenceItem> {
    let low = analysis.episodes.iter().filter_map(|episode| episode.window_after).min()?;
    let high = analysis.episodes.iter().filter_map(|episode| episode.window_before).max()?;
    let text = format!("{} before a loss at most, {} after one at least", size(high), size(low));
    Some(count("lowest_window_bytes", low, "window", text))
}

fn received(analysis: &QuicAnalysis) -> Option<Finding> {
    let arrivals = &analysis.arrivals;
    let all = arrivals.packets.saturating_add(arrivals.missing);
    // Some senders skip packet numbers (RFC 9000 section 21.4), a few in a thousand.
    if arrivals.missing < all / 200 || arrivals.missing < 3 {
        return None;
    }
    let share = percent(arrivals.missing, all);
    let title = format!("{} of {all} packet numbers never arrived ({share})", arrivals.missing);
    let (from, to) = arrivals.interval?;
    let mut found = finding(analysis, &RULE, 0, title)
        .at(interval((from, to)), arrivals.events)
        .with([
            count("missing_packets", arrivals.missing, "missing", format!("{} numbers", arrivals.missing)),
            count(
                "late_packets",
                arrivals.late,
                "late",
                format!("{}, overtaken by {} at most", many(arrivals.late, "packet"), arrivals.max_overtaken),
            ),
        ])
        .because("packets were dropped on the path to this host or in its socket buffer, or the sender skipped numbers")
        .unseen("what it cost: the log of the sender shows its window");
    // A path whose rate is constant is busy, and loses what does not fit its queue.
    let is_heavy = arrivals.missing.saturating_mul(UNPRICED) >= all;
    if !is_heavy && analysis.rates.is_steady(1) {
        found.severity = Severity::Note;
        found.cause = "the queue of a busy path overflowed: the rate is constant".to_owned();
        found.confidence = Confidence::Medium;
        return Some(found);
    }
    found.severity = match arrivals.missing.saturating_mul(UNPRICED) >= all {
        true => Severity::Error,
        false => Severity::Warning,
    };
    found.confidence = Confidence::Medium;
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::QuicLimiter;

    /// A second of losses, and a second of timers.
    fn analysis(losses: usize, after_outage: bool) -> QuicAnalysis {
        let mut analysis = QuicAnalysis { last: 4_000_000_000, sent: 100, ..Default::default() };
        (analysis.stream_bytes, analysis.timeouts, analysis.max_timeouts) = (1, 12, 1);
        let mut episode = QuicEpisode { lost: 1, after_outage, ..QuicEpisode::default() };
        episode.span.add(0, 1_000_000_000 / losses as u64, 1);
        analysis.episodes = vec![episode; losses];
        let timers = QuicLimiter::Timeout as usize;
        analysis.budget.spans[timers].add(1_000_000_000, 2_000_000_000, 1);
        analysis
    }

    #[test]
    fn timers_that_losses_let_fire_again_and_again_are_theirs() {
        let cost = |analysis: &QuicAnalysis| check(analysis).map(|found| found.cost.as_nanos());
        assert_eq!(cost(&analysis(20, false)), Some(2_000_000_000));
        assert!(explains_timeouts(&analysis(20, false)));
        assert_eq!(cost(&analysis(5, false)), Some(1_000_000_000));
        assert!(!explains_timeouts(&analysis(20, true)));
    }

    #[test]
    fn a_policer_costs_what_it_holds_the_transport() {
        let mut policed = analysis(5, false);
        policed.policer =
            Some(crate::quic::policer::QuicPolicer { rate: 1e5, burst: 1e4, lost: (5, 5) });
        let window = QuicLimiter::Window as usize;
        policed.budget.spans[window].add(2_000_000_000, 4_000_000_000, 1);
        let found = check(&policed).unwrap();
        assert_eq!((found.kind, found.cost.as_nanos()), ("policer", 3_000_000_000));
    }
}
