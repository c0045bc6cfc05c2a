//! The path, as far as its traffic shows it.

use crate::Flow;
use crate::episodes::Trigger;
use crate::place::CapturePoint;
use crate::rounds::{Round, Spent};

/// What a capture says about the path of one direction's data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    /// Shortest round-trip time, in ns: the way without queues.
    pub base_rtt: Option<u64>,
    /// Rate of the bottleneck, in bytes of payload per second: of what bursts are spaced to, or
    /// of what passes while its queue never runs empty; `None` if neither was seen.
    pub rate: Option<f64>,
    /// What these data had of it while its queue never ran empty.
    pub share: Option<f64>,
    /// Rate that nine tenths of the bytes stayed below over some segments.
    pub burst_rate: Option<f64>,
    /// Longest wait in queues, in ns.
    pub queue: u64,
    /// Packets lost per packet sent.
    pub loss: f64,
    /// Separate losses (recoveries and timeouts that were needed).
    pub loss_events: u64,
    /// Share of the packets that came late, and the furthest, in packets.
    pub reordered: f64,
    /// See `reordered`.
    pub extent: u64,
    /// Segments per ACK, on average.
    pub per_ack: f64,
}

/// A queue shorter than this cannot be told from other waiting: a sixteenth of the round trip, and
/// half a millisecond, which interrupt moderation, polling and GRO flush timers take.
pub(crate) fn queue_noise(base: u64) -> u64 {
    (base / 16).max(500_000)
}

impl Path {
    /// Of the data of one direction.
    pub fn of(flow: &Flow) -> Self {
        let base_rtt = flow.rtt.map(|(min, ..)| min);
        let base = base_rtt.unwrap_or(0);
        let counts = &flow.counts;
        let all = (counts.new + counts.retransmitted).max(1) as f64;
        let needed = flow
            .episodes
            .iter()
            .filter(|e| e.spurious < e.retransmitted || e.trigger == Trigger::Inferred);
        let longest = flow.rounds.iter().map(|r| r.rtt).max().unwrap_or(0);
        Self {
            base_rtt,
            rate: edge(flow, base).or_else(|| busy_rate(flow, base)),
            share: busy_rate(flow, base),
            burst_rate: flow.dispersion.map(|[_, _, most]| most),
            queue: longest.saturating_sub(base),
            loss: counts.needed() as f64 / all,
            loss_events: needed.count() as u64 + flow.more_episodes,
            reordered: flow.reordering.packets as f64 / counts.new.max(1) as f64,
            extent: flow.reordering.extent.div_ceil(flow.mss.max(1)),
            per_ack: flow.coverage.mean().unwrap_or(0.0) / flow.mss.max(1) as f64,
        }
    }
}

/// Was the bottleneck busy all through this round? Its queue never ran empty if even the shortest
/// round trip had to wait. Where the receiver's window held the sender, the wait may be the
/// receiver's.
pub(crate) fn busy(round: &Round, base: u64) -> bool {
    let held = round.of(Spent::ReceiveWindow) + round.of(Spent::Reader);
    round.min_rtt != u64::MAX
        && round.min_rtt >= base + queue_noise(base)
        && held * 2 < round.length()
}

/// Bytes per second over all rounds in which the bottleneck was busy and nothing else held the
/// sender; none if that was for less than three rounds or a twentieth of what was sent.
fn busy_rate(flow: &Flow, base: u64) -> Option<f64> {
    let mut rounds = 0;
    let (mut bytes, mut ns) = (0, 0);
    // At the receiver the last round ends a way back and forth after its data.
    let last = match flow.point {
        CapturePoint::Receiver => flow.rounds.iter().rposition(|round| round.sent > 0).unwrap_or(0),
        _ => flow.rounds.len(),
    };
    for round in flow.rounds[..last].iter().filter(|round| busy(round, base)) {
        let ours = round.of(Spent::Window) + round.of(Spent::Recovery);
        if ours * 8 > round.length() * 7 {
            rounds += 1;
            bytes += round.delivered;
            ns += round.length();
        }
    }
    (rounds >= 3 && bytes * 20 >= flow.bytes && ns > 0).then(|| bytes as f64 * 1e9 / ns as f64)
}

/// The rate that a bottleneck spaces bursts to. It has an edge: the most usual rate is also
/// nearly the highest. A steady flow has one too, whatever holds it, so the edge counts only if
/// bursts are clearly faster than the flow is on average, or a queue was seen.
fn edge(flow: &Flow, base: u64) -> Option<f64> {
    let [usual, _, most] = flow.dispersion?;
    let at_work: u64 = flow.rounds.iter().map(|r| r.length() - r.of(Spent::Idle)).sum();
    let mean = flow.bytes as f64 * 1e9 / at_work.max(1) as f64;
    let queued = flow
        .rounds
        .iter()
        .filter(|round| busy(round, base) && round.of(Spent::Window) * 2 > round.length());
    (usual >= 0.85 * most && (usual >= 1.5 * mean || queued.count() >= 3)).then_some(usual)
}
