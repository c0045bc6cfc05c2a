//! The way of the ACKs, where they wait in a queue: its rate by their spacing, its queue by the longest wait.

use diagnose::capture_point::CapturePoint;
use diagnose::{CapturedPacket, FlowAnalysis};
use packet::{Dir, Flags};
use units::Duration;

/// A slow link on the way of the ACKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WayBackFit {
    /// Rate in bit/s of IP packets.
    pub rate: u64,
    /// Queue in bytes.
    pub buffer: u64,
    /// The longest wait in it, in ns.
    pub wait: u64,
}

/// Fewest ACKs that show a rate.
const FEWEST: usize = 20;
/// Part of the rounds in which ACKs waited.
const ROUNDS: usize = 4;
/// Shortest waits that count: clocks of timestamps have a millisecond.
const SHORTEST: Duration = Duration::from_millis(4);
/// How far gaps of a link differ, and which part of the gaps are alike at least: one of this number.
const TOLERANCE: u64 = 20;
const ALIKE: usize = 3;

impl WayBackFit {
    /// The link that ACKs of the data of `flow` waited for, `headers` bytes each; `None` if they did not wait, or passed
    /// the capture point before they did.
    pub(crate) fn of(
        packets: &[CapturedPacket],
        flow: &FlowAnalysis,
        headers: u64,
    ) -> Option<Self> {
        let waits = flow.rounds.iter().map(|round| round.wait_on_way_back);
        let longest = waits.clone().max()?;
        if waits.filter(|&wait| wait >= SHORTEST).count() * ROUNDS < flow.rounds.len() {
            return None;
        }
        let rate = match flow.point {
            // There the ACKs pass before they wait: the link carries those that it does not drop, at most all.
            CapturePoint::Receiver => rate_of_all(packets, flow.dir.reversed(), headers)?,
            _ => {
                let gap = usual_gap(packets, flow.dir.reversed())?;
                (headers * 8_000_000_000).checked_div(gap)?
            }
        };
        // At least one packet waits.
        let buffer = (longest.as_nanos() as f64 * rate as f64 / 8e9) as u64 + headers;
        Some(Self { rate, buffer, wait: longest.as_nanos() })
    }
}

/// The rate in bit/s of all ACKs of this direction, `headers` bytes each.
fn rate_of_all(packets: &[CapturedPacket], dir: Dir, headers: u64) -> Option<u64> {
    let mut acks = packets.iter().filter(|packet| packet.segment.dir == dir);
    let (first, last) = (acks.next()?.at, acks.next_back()?.at);
    let bits = acks.count() as u64 * headers * 8;
    let rate = units::ratio::scaled(bits, 1_000_000_000, last.since(first).as_nanos().max(1));
    (rate > 0).then_some(rate)
}

/// The gap in ns that most bare ACKs have which follow one another, if none are much nearer.
fn usual_gap(packets: &[CapturedPacket], dir: Dir) -> Option<u64> {
    let is_bare = |packet: &&CapturedPacket| {
        let segment = &packet.segment;
        segment.dir == dir && segment.payload == 0 && !segment.flags.has(Flags::SYN)
    };
    let mut gaps = Vec::new();
    let mut before = None;
    for packet in packets.iter().filter(is_bare) {
        let at = packet.at.as_nanos();
        let gap = before.replace(at).map(|before| at - before);
        // Those with SACK blocks are larger.
        gaps.extend(gap.filter(|_| packet.segment.sack_blocks().is_empty()));
    }
    gaps.retain(|&gap| gap > 0);
    if gaps.len() < FEWEST {
        return None;
    }
    gaps.sort_unstable();
    // The densest range of gaps.
    let (mut best, mut begin) = ((0, 0), 0);
    for (end, &gap) in gaps.iter().enumerate() {
        while gaps[begin] + gaps[begin] / TOLERANCE < gap {
            begin += 1;
        }
        if end + 1 - begin > best.0 {
            best = (end + 1 - begin, begin);
        }
    }
    let (number, begin) = best;
    let is_usual = number * ALIKE >= gaps.len();
    // A queue lets nothing pass faster.
    let is_shortest = begin * TOLERANCE as usize <= gaps.len();
    (is_usual && is_shortest).then(|| gaps[begin + number / 2])
}
