//! Path estimates from the traffic.

use units::Duration;

use crate::FlowAnalysis;
use crate::capture_point::CapturePoint;
use crate::dispersion::BurstRates;
use crate::episodes::RecoveryTrigger;
use crate::rounds::{Round, RoundOrigin, TimeUse};

/// Estimates for the path of one direction's data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathEstimate {
    /// Shortest RTT: propagation without queues.
    pub base_rtt: Option<Duration>,
    /// Shortest RTT of data: with the time that a full packet takes on the slowest link.
    pub data_rtt: Option<Duration>,
    /// Bottleneck rate in bytes of payload per second: from the spacing of bursts, or from the
    /// throughput while its queue never ran empty; `None` without either.
    pub rate: Option<f64>,
    /// Rate of this flow while the bottleneck's queue never ran empty.
    pub share: Option<f64>,
    /// 90th percentile of the rate over some segments.
    pub burst_rate: Option<f64>,
    /// Largest queue delay.
    pub queue: Duration,
    /// Packets lost per packet sent.
    pub loss: f64,
    /// Loss events (recoveries and timeouts that were not spurious).
    pub loss_events: u64,
    /// Fraction of the packets that were reordered, and the largest extent, in packets.
    pub reordered: f64,
    /// See `reordered`.
    pub extent: u64,
    /// Segments per ACK, on average.
    pub per_ack: f64,
}

/// Least queue delay that differs from other waiting: a sixteenth of the RTT, and half a
/// millisecond for interrupt moderation, polling and GRO flush timers.
pub(crate) fn queue_noise(base: Duration) -> Duration {
    (base / 16).max(Duration::from_micros(500))
}

impl PathEstimate {
    /// Estimates the path of the data of one direction.
    pub fn of(flow: &FlowAnalysis) -> Self {
        let base_rtt = flow.rtt.map(|(min, ..)| min);
        let of_data =
            flow.rounds.iter().map(|round| round.min_rtt).filter(|&rtt| rtt != Duration::MAX);
        let is_sending = |rtt: &Duration| *rtt < base_rtt.unwrap_or_default() + MAX_SENDING;
        let data_rtt = of_data.min().filter(is_sending).max(base_rtt);
        let base = data_rtt.unwrap_or_default();
        let counts = &flow.counts;
        let all = (counts.new + counts.retransmitted).max(1) as f64;
        let needed = flow
            .episodes
            .iter()
            .filter(|e| e.spurious < e.retransmitted || e.trigger == RecoveryTrigger::Inferred);
        let longest = flow.rounds.iter().map(|r| r.rtt).max().unwrap_or_default();
        let (bursts, share) = (flow.dispersion, busy_rate(flow, base));
        // A queue that never ran empty shows more than a few packets.
        let of_path = match bursts {
            Some(rates) if rates.of_short_flights => share.or_else(|| edge(flow, base)),
            _ => edge(flow, base).or(share),
        };
        Self {
            base_rtt,
            data_rtt,
            rate: of_path.map(|rate| at_best(flow, base, rate).max(carried_rate(flow))),
            share,
            burst_rate: bursts.filter(|_| !is_spaced_on_way_back(flow)).map(|rates| rates.most),
            queue: longest.saturating_sub(base_rtt.unwrap_or_default()),
            loss: counts.needed() as f64 / all,
            loss_events: needed.count() as u64 + flow.more_episodes,
            reordered: flow.reordering.packets as f64 / counts.new.max(1) as f64,
            extent: flow.reordering.extent.div_ceil(flow.mss.max(1)),
            per_ack: flow.coverage.mean().unwrap_or(0.0) / flow.mss.max(1) as f64,
        }
    }
}

/// Longest time that the data of an empty path take longer than its SYNs, for their size: a packet of 1,500 bytes at
/// 350 kbit/s. ACKs are delayed by more (Linux: 40 ms).
const MAX_SENDING: Duration = Duration::from_millis(35);

/// Packets in flight that a receiver cannot delay all together: it acknowledges every second one (RFC 9293 section
/// 3.8.6.3).
const MANY_PACKETS: u64 = 8;

/// Fewest ACKs of many packets whose round trips are those of a whole round.
const FEW_ACKS: u64 = 4;

/// Whether the bottleneck was busy throughout the round: its queue never ran empty if even the
/// shortest RTT includes queue delay. If the receive window limited the sender, the delay may be
/// the receiver's. After a rest or a timeout the queue is empty: the RTT of the first flight is longer
/// by the time of the packets that one ACK covers. So it is if a few ACKs cover all flights. And where the ACKs wait
/// longer than the data, their way is the bottleneck.
pub(crate) fn busy(round: &Round, base: Duration, mss: u64) -> bool {
    let waited = round.min_rtt.saturating_sub(base);
    if round.before != RoundOrigin::Round || round.wait_on_way_back > waited.max(WAITS) {
        return false;
    }
    let acks = u64::from(round.acks);
    if acks < FEW_ACKS && round.delivered >= acks.max(1) * MANY_PACKETS * mss {
        return false;
    }
    let reader = round.of(TimeUse::Reader);
    let held = round.of(TimeUse::ReceiveWindow) + reader;
    // Many packets are answered as they arrive, however full the window is: only the path delays all of them.
    let held = if round.flight >= MANY_PACKETS * mss { reader } else { held };
    // What ACKs waited is known to a tick of their timestamps, and was taken off.
    let noise = if round.wait_on_way_back < WAITS { Duration::ZERO } else { WAITS };
    // A packet or two at a time fill no queue: they were answered late.
    round.flight >= 2 * mss
        && round.min_rtt != Duration::MAX
        && round.min_rtt >= base + queue_noise(base).max(noise)
        && held * 2 < round.length()
}

/// Fewest rounds that show whether the delay follows the load.
const MIN_LOADED_ROUNDS: usize = 8;

/// Whether the round trips rise with the data in flight, as those through a queue of this flow's
/// own do; jitter of radio and late answers do not depend on it. A flight that stays within half of
/// its largest size cannot show it, and counts as long as there are enough rounds.
pub(crate) fn delay_follows_load(flow: &FlowAnalysis, base: Duration) -> bool {
    let loaded = |round: &&Round| round.min_rtt != Duration::MAX && round.flight >= flow.mss;
    let mut rounds: Vec<(u64, Duration)> =
        flow.rounds.iter().filter(loaded).map(|round| (round.flight, round.min_rtt)).collect();
    if rounds.len() < MIN_LOADED_ROUNDS || flow.bytes < 64 * flow.mss {
        return false;
    }
    rounds.sort_unstable();
    let third = rounds.len() / 3;
    let (few, many) = (&rounds[..third], &rounds[rounds.len() - third..]);
    let median = |part: &[(u64, Duration)]| {
        let mut trips: Vec<Duration> = part.iter().map(|one| one.1).collect();
        trips.sort_unstable();
        trips[trips.len() / 2]
    };
    let steady = few[third / 2].0 * 2 >= many[third / 2].0;
    steady || median(many) >= median(few) + queue_noise(base) / 2
}

/// Throughput in bytes per second over all rounds in which the bottleneck was busy and only windows limited the sender:
/// a queue that never ran empty leaves at the rate of the path, whichever window holds the sender. `None` for fewer than
/// three rounds with few segments, or a twentieth of the data.
fn busy_rate(flow: &FlowAnalysis, base: Duration) -> Option<f64> {
    let mut rounds = 0;
    let (mut bytes, mut time) = (0, Duration::ZERO);
    // At the receiver the last round ends an RTT after its data.
    let last = match flow.point {
        CapturePoint::Receiver => flow.rounds.iter().rposition(|round| round.sent > 0).unwrap_or(0),
        _ => flow.rounds.len(),
    };
    for round in flow.rounds[..last].iter().filter(|round| busy(round, base, flow.mss)) {
        let windows = round.of(TimeUse::Window) + round.of(TimeUse::ReceiveWindow);
        let recovery = round.of(TimeUse::Recovery);
        // In a recovery of several round trips the queue may run empty between two samples.
        let trips = round.max_rtt * u64::from(flow.rounds_per_entry) * 2;
        let is_mostly_repair = recovery * 2 > round.length();
        // Without SACK it repairs a packet a round trip, whatever the path carries.
        let is_long = is_mostly_repair && (round.length() > trips || flow.duplicates_without_sack);
        if (windows + recovery) * 8 > round.length() * 7 && !is_long {
            rounds += 1;
            bytes += round.delivered;
            time += round.length();
        }
    }
    let are_enough = rounds >= 3 || bytes >= SUSTAINED_SEGMENTS * flow.mss;
    (are_enough && bytes * 20 >= flow.bytes && !time.is_zero())
        .then(|| bytes as f64 * 1e9 / time.as_nanos() as f64)
}

/// Rounds in a row of which the throughput is sustained, their least bytes in segments, and how much more it must be
/// than another estimate to correct that.
const SUSTAINED_ROUNDS: usize = 6;
const SUSTAINED_SEGMENTS: u64 = 40;
const SUSTAINED_EXCESS: f64 = 1.25;
/// Least segments of two rounds in a row that both had a throughput: an ACK of two segments more or less is a fifth of
/// each, which is less than that excess.
const PAIR_SEGMENTS: u64 = 20;

/// The `rate` of the bottleneck, or the highest sustained throughput if that is clearly more: the bottleneck carried it.
/// Data that a recovery makes whole were delivered before, so rounds with retransmissions do not count. Of a session
/// of messages, the rate of some is no estimate of the path.
fn at_best(flow: &FlowAnalysis, base: Duration, rate: f64) -> f64 {
    let full = flow.rounds.iter().filter(|round| busy(round, base, flow.mss));
    if full.map(|round| round.delivered).sum::<u64>() * 2 < flow.bytes {
        return rate;
    }
    let is_plain = |round: &Round| {
        round.retransmission == 0 && round.of(TimeUse::Idle).is_zero() && round.delivered > 0
    };
    let throughput =
        |round: &Round| round.delivered as f64 * 1e9 / round.length().as_nanos().max(1) as f64;
    // Of a path that became slower the throughput of all is not what it carried at first.
    let pairs = flow.rounds.windows(2).filter_map(|rounds| {
        let bytes: u64 = rounds.iter().map(|round| round.delivered).sum();
        let counts = rounds.iter().all(is_plain) && bytes >= PAIR_SEGMENTS * flow.mss;
        counts.then(|| rounds.iter().map(throughput).fold(f64::INFINITY, f64::min))
    });
    let windows = flow.rounds.windows(SUSTAINED_ROUNDS).filter_map(|rounds| {
        let is_plain = rounds.iter().all(is_plain);
        let bytes: u64 = rounds.iter().map(|round| round.delivered).sum();
        let time: Duration = rounds.iter().map(Round::length).sum();
        let counts = is_plain && bytes >= SUSTAINED_SEGMENTS * flow.mss && !time.is_zero();
        counts.then(|| bytes as f64 * 1e9 / time.as_nanos() as f64)
    });
    let best = windows.chain(pairs).fold(0.0, f64::max);
    if best > rate * SUSTAINED_EXCESS { best } else { rate }
}

/// Shortest wait of ACKs that is a queue of theirs: timestamps tick each millisecond.
const WAITS: Duration = Duration::from_millis(4);
/// Part of the rounds in which ACKs waited, if the way back is slow: one of this number.
const OFTEN: usize = 4;

/// Whether ACKs waited on their way to the capture point: then their spacing is that of their own way.
fn is_spaced_on_way_back(flow: &FlowAnalysis) -> bool {
    let waited = flow.rounds.iter().filter(|round| round.wait_on_way_back >= WAITS).count();
    flow.point != CapturePoint::Receiver && waited * OFTEN >= flow.rounds.len().max(1)
}

/// The mean rate in bytes of payload per second while the sender was at work.
fn mean_rate(flow: &FlowAnalysis) -> f64 {
    let at_work: Duration = flow.rounds.iter().map(|r| r.length() - r.of(TimeUse::Idle)).sum();
    flow.bytes as f64 * 1e9 / at_work.as_nanos().max(1) as f64
}

/// A rate that the path carried: the mean of a sender at work. Elsewhere a rest hides a part of the way of the data
/// before it, so all time counts.
fn carried_rate(flow: &FlowAnalysis) -> f64 {
    let is_hidden = flow.point != CapturePoint::Sender;
    let rest = |round: &Round| if is_hidden { Duration::ZERO } else { round.of(TimeUse::Idle) };
    let time: Duration = flow.rounds.iter().map(|round| round.length() - rest(round)).sum();
    if time.is_zero() { 0.0 } else { flow.bytes as f64 * 1e9 / time.as_nanos() as f64 }
}

/// Bottleneck rate from the spacing of bursts. The distribution has an edge: the most frequent rate
/// is nearly the highest. A steady flow has one too, whatever limits it, so the edge counts only if
/// bursts are clearly faster than the average of the flow, or if a queue was seen.
fn edge(flow: &FlowAnalysis, base: Duration) -> Option<f64> {
    let bursts = flow.dispersion.filter(|_| !is_spaced_on_way_back(flow))?;
    let BurstRates { usual, most, .. } = bursts;
    let mean = mean_rate(flow);
    let queued = flow.rounds.iter().filter(|round| {
        let windows = round.of(TimeUse::Window) + round.of(TimeUse::ReceiveWindow);
        busy(round, base, flow.mss) && windows * 2 > round.length()
    });
    (usual >= 0.85 * most && (usual >= 1.5 * mean || queued.count() >= 3)).then_some(usual)
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;

    const MSS: u64 = 1_000;
    const BASE: Duration = Duration::from_millis(20);

    /// A round of a window of `segments` through a queue of 10 ms, with `acks` ACKs.
    fn queued(segments: u64, acks: u32) -> Round {
        let mut round = Round::new(Instant::ZERO, 1, RoundOrigin::Round);
        round.time_by_use[TimeUse::Window as usize] = BASE;
        (round.sent, round.delivered, round.flight) =
            (segments * MSS, segments * MSS, segments * MSS);
        round.acks = acks;
        round.min_rtt = BASE + Duration::from_millis(10);
        round.max_rtt = round.min_rtt;
        round
    }

    #[test]
    fn a_round_with_a_queue_throughout_is_busy() {
        assert!(busy(&queued(40, 20), BASE, MSS));
        assert!(!busy(&Round { min_rtt: BASE, ..queued(40, 20) }, BASE, MSS));
    }

    /// The queue is empty after a rest: a round trip is longer by the time of the packets that one ACK covers.
    #[test]
    fn no_round_after_a_rest_is_busy() {
        for before in [RoundOrigin::Idle, RoundOrigin::Timeout, RoundOrigin::Opening] {
            assert!(!busy(&Round { before, ..queued(40, 20) }, BASE, MSS), "{before:?}");
        }
    }

    #[test]
    fn round_trips_at_the_ends_of_bursts_show_no_queue() {
        assert!(!busy(&queued(120, 2), BASE, MSS));
        assert!(busy(&queued(120, 10), BASE, MSS));
        assert!(busy(&queued(4, 2), BASE, MSS));
    }

    #[test]
    fn a_queue_of_acks_is_not_that_of_the_data() {
        let waits = |ms| Round { wait_on_way_back: Duration::from_millis(ms), ..queued(40, 20) };
        assert!(busy(&waits(5), BASE, MSS));
        assert!(!busy(&waits(30), BASE, MSS));
    }

    /// What two rounds in a row delivered each, the path carried, whatever it carries later.
    #[test]
    fn the_rate_of_a_path_is_that_before_it_became_slower() {
        let round = |segments: u64, ms: u64| {
            let mut round = queued(segments, 20);
            round.time_by_use[TimeUse::Window as usize] = Duration::from_millis(ms);
            round
        };
        let fast = [round(60, 30), round(60, 30)];
        let slow = core::iter::repeat_n(round(60, 120), 10);
        let rounds: Vec<Round> = fast.into_iter().chain(slow).collect();
        let bytes = rounds.iter().map(|round| round.delivered).sum();
        let start = Instant::ZERO;
        let flow = FlowAnalysis { mss: MSS, bytes, rounds, ..FlowAnalysis::empty(start, start) };
        let rate = at_best(&flow, BASE, 500_000.0);
        assert!((rate - 2e6).abs() < 1.0, "{rate}");
    }

    /// At the sender a rest carries nothing; elsewhere it may hide the way of what was sent before it.
    #[test]
    fn a_path_carries_at_least_the_mean() {
        let mut round = queued(20, 10);
        round.time_by_use[TimeUse::Idle as usize] = BASE;
        let start = Instant::ZERO;
        let flow = |point| FlowAnalysis {
            point,
            mss: MSS,
            bytes: 20 * MSS,
            rounds: vec![round],
            ..FlowAnalysis::empty(start, start)
        };
        let near = |flow: &FlowAnalysis, rate: f64| (carried_rate(flow) - rate).abs() < 1.0;
        assert!(near(&flow(CapturePoint::Sender), 1e6));
        assert!(near(&flow(CapturePoint::Receiver), 5e5));
        let empty = FlowAnalysis { rounds: Vec::new(), ..flow(CapturePoint::Sender) };
        assert!(near(&empty, 0.0));
    }
}
