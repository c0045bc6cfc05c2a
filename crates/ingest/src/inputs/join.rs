//! Compares captures of one transfer at two points on a common clock.
//!
//! The timestamps of a unique packet present at both points differ by the one-way delay plus the
//! offset of the clocks. The smallest difference in each direction is that of a packet without
//! queueing. Half of the difference of these two is the offset, if the propagation delay is the
//! same in both directions, which captures alone cannot show. The drift is the change of the offset
//! over the transfer.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use packet::Dir;
use packet::wire::Endpoints;

use super::connection_key::CaptureSource;
use super::transit::{PacketRecord, TwoPointTransit};

/// Intervals into which a transfer is divided to estimate the drift.
const PARTS: u64 = 16;
/// Fewest packets per direction in an interval.
const ENOUGH: usize = 8;
/// Largest relative difference between the drifts of the two directions.
const AGREED: f64 = 0.25;
/// Smallest drift over a transfer that counts, in nanoseconds.
const MIN_DRIFT: f64 = 10_000.0;

/// A connection at one capture point.
pub(super) struct CapturedSide {
    pub(super) point: CaptureSource,
    pub(super) ends: Endpoints,
    pub(super) isn: [Option<u32>; 2],
    pub(super) seen: [Vec<PacketRecord>; 2],
}

/// Offset and drift of the second capture point's clock relative to the first's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockEstimate {
    /// Nanoseconds by which it is ahead, with both counted from the first packet of their files.
    pub ahead: i64,
    /// Shortest round trip between the points, in nanoseconds: the offset is exact to half of it,
    /// and exact if the delay is the same in both directions.
    pub round_trip: i64,
    /// Matching packets: from the client and to it.
    pub matches: [u64; 2],
    /// Drift in nanoseconds per second; `None` if unknown.
    pub drift: Option<f64>,
}

impl ClockEstimate {
    /// The points of one file share a clock, unless packets arrived before they were sent by it
    /// (merged files).
    fn with_shared_clock(self) -> Self {
        if self.ahead.unsigned_abs() * 2 <= self.round_trip.unsigned_abs() && self.round_trip >= 0 {
            Self { ahead: 0, drift: None, ..self }
        } else {
            self
        }
    }
}

/// A connection present at two capture points.
#[derive(Debug, Clone)]
pub struct CapturePair {
    /// Index in [`Reading::streams`](super::Reading::streams) of the capture point nearer to the
    /// client.
    pub near: usize,
    /// Index of the other one.
    pub far: usize,
    /// The clock at `far` relative to that at `near`; `None` if only packets of one direction
    /// match.
    pub offset: Option<ClockEstimate>,
    /// Outcomes of data packets: from `near` to `far`, and from `far` to `near`.
    pub transits: [TwoPointTransit; 2],
}

/// Finds connections present at two capture points and compares them.
pub(super) fn join(sides: &[CapturedSide]) -> Vec<CapturePair> {
    let mut pairs = Vec::new();
    let mut known = ConnectionIndex::default();
    for (second, side) in sides.iter().enumerate() {
        // The latest connection of another point with the same ISNs or the same addresses.
        let first = known.latest(side, |first| {
            let other = &sides[first];
            other.point != side.point && same(other, side)
        });
        known.add(second, side);
        let Some(first) = first else { continue };
        if let Some(pair) = lay([first, second], [&sides[first], side]) {
            pairs.push(pair);
        }
    }
    pairs
}

/// Index of connections by addresses and by ISNs.
#[derive(Default)]
struct ConnectionIndex {
    by_ends: BTreeMap<[SocketAddr; 2], Vec<usize>>,
    by_isn: BTreeMap<[u32; 2], Vec<usize>>,
}

impl ConnectionIndex {
    fn keys(side: &CapturedSide) -> ([SocketAddr; 2], Option<[u32; 2]>) {
        let Endpoints { src, dst } = side.ends;
        ([src.min(dst), src.max(dst)], side.isn[0].zip(side.isn[1]).map(|(a, b)| [a, b]))
    }

    fn add(&mut self, index: usize, side: &CapturedSide) {
        let (ends, isn) = Self::keys(side);
        self.by_ends.entry(ends).or_default().push(index);
        if let Some(isn) = isn {
            self.by_isn.entry(isn).or_default().push(index);
        }
    }

    /// The latest connection with the same addresses or the same ISNs that is `right`.
    fn latest(&self, side: &CapturedSide, right: impl Fn(usize) -> bool) -> Option<usize> {
        let (ends, isn) = Self::keys(side);
        let by_isn = isn.and_then(|isn| self.by_isn.get(&isn));
        let latest = |of: Option<&Vec<usize>>| of?.iter().rev().copied().find(|&one| right(one));
        latest(self.by_ends.get(&ends)).max(latest(by_isn))
    }
}

/// Whether both are the same connection. With translated addresses (NAT) both ISNs must agree.
fn same(a: &CapturedSide, b: &CapturedSide) -> bool {
    let ends = a.ends == b.ends || a.ends == b.ends.reversed();
    let turned = a.ends == b.ends.reversed();
    let isn = if turned { [b.isn[1], b.isn[0]] } else { b.isn };
    let known = a.isn.iter().zip(isn).filter_map(|(one, other)| Some((*one)? == other?));
    let (same, all) = known.fold((0, 0), |(same, all), one| (same + u32::from(one), all + 1));
    if ends { same == all } else { same == 2 }
}

fn lay(index: [usize; 2], sides: [&CapturedSide; 2]) -> Option<CapturePair> {
    // One capture may have taken the server for the client.
    let turned = sides[0].ends == sides[1].ends.reversed();
    let of = |side: usize, dir: Dir| {
        let dir = if side == 1 && turned { dir.reversed() } else { dir };
        &sides[side].seen[dir as usize][..]
    };
    let forward = matches(of(0, Dir::Forward), of(1, Dir::Forward));
    let backward = matches(of(0, Dir::Reverse), of(1, Dir::Reverse));
    if forward.is_empty() && backward.is_empty() {
        return None;
    }
    // Differences of timestamps, second point minus first, with the time at the first.
    let least = |matches: &[(u64, i64)]| matches.iter().map(|one| one.1).min();
    let most = |matches: &[(u64, i64)]| matches.iter().map(|one| one.1).max();
    // A packet of the reverse direction was at the second point before it was at the first.
    let swap = match (least(&forward), most(&backward)) {
        // The nearer point has a packet first, and its answer last.
        (Some(out), Some(back)) => out < back,
        _ => false,
    };
    let (near, far) = if swap { (1, 0) } else { (0, 1) };
    let seen_from = |matches| if swap { at_second_point(matches) } else { matches };
    let (forward, backward) = (seen_from(forward), seen_from(backward));
    let mut offset = offset(&forward, &backward);
    if sides[0].point.file == sides[1].point.file {
        offset = offset.map(ClockEstimate::with_shared_clock);
    }
    let ahead = offset.map_or_else(
        // One direction alone: assumes that its fastest packet took no time.
        || least(&forward).or_else(|| most(&backward)).unwrap_or(0),
        |offset| offset.ahead,
    );
    let one_way = offset.map_or(0, |offset| offset.round_trip / 2);
    let out = TwoPointTransit::follow(
        Dir::Forward,
        of(near, Dir::Forward),
        of(far, Dir::Forward),
        ahead,
        one_way,
    );
    let back = TwoPointTransit::follow(
        Dir::Reverse,
        of(far, Dir::Reverse),
        of(near, Dir::Reverse),
        -ahead,
        one_way,
    );
    Some(CapturePair { near: index[near], far: index[far], offset, transits: [out, back] })
}

/// Fields that identify a packet.
type PacketFingerprint = (u32, u32, u32, (u32, u32), u16, u8);

/// Packets present exactly once at both points: their time at the first, and the difference to
/// their time at the second.
fn matches(first: &[PacketRecord], second: &[PacketRecord]) -> Vec<(u64, i64)> {
    let mark = |seen: &PacketRecord| -> PacketFingerprint {
        (seen.seq, seen.ack, seen.len, seen.stamps, seen.window, seen.flags)
    };
    let only = |all: &[PacketRecord]| {
        let mut times: BTreeMap<PacketFingerprint, Option<u64>> = BTreeMap::new();
        for seen in all {
            times.entry(mark(seen)).and_modify(|at| *at = None).or_insert(Some(seen.at));
        }
        times
    };
    let there = only(second);
    let mut found: Vec<(u64, i64)> = only(first)
        .into_iter()
        .filter_map(|(mark, at)| {
            let (at, then) = (at?, (*there.get(&mark)?)?);
            Some((at, then.cast_signed() - at.cast_signed()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Converts matches to the times at the second point, in their order.
fn at_second_point(matches: Vec<(u64, i64)>) -> Vec<(u64, i64)> {
    let turn = |(at, difference): (u64, i64)| (at.saturating_add_signed(difference), -difference);
    let mut turned: Vec<_> = matches.into_iter().map(turn).collect();
    // Packets may be reordered, and intervals are looked up by time.
    turned.sort_unstable();
    turned
}

/// The clock of the second point relative to the first, from the packets of both directions: times at the
/// first, sorted, and the differences to the times at the second.
pub(super) fn offset(forward: &[(u64, i64)], backward: &[(u64, i64)]) -> Option<ClockEstimate> {
    let out = forward.iter().map(|one| one.1).min()?;
    // In the reverse direction the second point comes first.
    let back = backward.iter().map(|one| -one.1).min()?;
    Some(ClockEstimate {
        ahead: (out - back) / 2,
        round_trip: out + back,
        matches: [forward.len() as u64, backward.len() as u64],
        drift: drift(forward, backward),
    })
}

/// Drift of the smallest differences, estimated for each direction: a clock drift changes both, a
/// growing queue changes one. Returns their mean, if they agree.
fn drift(forward: &[(u64, i64)], backward: &[(u64, i64)]) -> Option<f64> {
    let all = || forward.iter().chain(backward).map(|one| one.0);
    let span = (all().min()?, all().max()?);
    // The packet with the least queueing has the smallest difference forward and, with these signs,
    // the largest in reverse.
    let out = slope(forward, span, |differences| differences.min())?;
    let back = slope(backward, span, |differences| differences.max())?;
    let (sum, difference) = (out + back, (out - back).abs());
    let moved = sum.abs() / 2.0 * ((span.1 - span.0) as f64 / 1e9);
    (difference <= AGREED * sum.abs() / 2.0 && moved > MIN_DRIFT).then_some(sum / 2.0)
}

/// The median slope between the intervals of a transfer (Theil and Sen), in nanoseconds per second.
fn slope(
    matches: &[(u64, i64)],
    (from, to): (u64, u64),
    pick: impl Fn(&mut dyn Iterator<Item = i64>) -> Option<i64>,
) -> Option<f64> {
    let length = (to - from) / PARTS + 1;
    let mut points = Vec::new();
    for part in 0..PARTS {
        // A damaged timestamp may be at the end of the number range.
        let begin = from.saturating_add(part.saturating_mul(length));
        let end = begin.saturating_add(length);
        let lower = matches.partition_point(|one| one.0 < begin);
        let upper = matches.partition_point(|one| one.0 < end);
        let within = &matches[lower..upper];
        if within.len() >= ENOUGH {
            let picked = pick(&mut within.iter().map(|one| one.1))?;
            points.push((begin.saturating_add(length / 2) as f64 / 1e9, picked as f64));
        }
    }
    if (points.len() as u64) < PARTS / 2 {
        return None;
    }
    let mut slopes = Vec::new();
    for (n, one) in points.iter().enumerate() {
        slopes.extend(points[n + 1..].iter().map(|other| (other.1 - one.1) / (other.0 - one.0)));
    }
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_timestamp_causes_no_panic() {
        let mut matches: Vec<_> = (0..1_000).map(|n| (n * 1_000_000, 5)).collect();
        matches.push((u64::MAX - 1, 5));
        assert_eq!(slope(&matches, (0, u64::MAX - 1), |all| all.min()), None);
    }

    /// Packets in both directions, 1 ms apart for ten seconds: the far clock is `ahead` and gains
    /// `gains` nanoseconds per second; the one-way delay is 20 ms and grows by `queue` per second
    /// forward.
    fn run(ahead: i64, gains: i64, queue: i64) -> Option<ClockEstimate> {
        let way = |sign: i64, queue: i64| -> Vec<(u64, i64)> {
            let packet = |n: i64| {
                let jitter = (n * 7_919) % 1_000;
                let delay = 20_000_000 + queue * n / 1_000 + jitter;
                ((n * 1_000_000) as u64, sign * delay + ahead + gains * n / 1_000)
            };
            (0..10_000).map(packet).collect()
        };
        offset(&way(1, queue), &way(-1, 0))
    }

    #[test]
    fn the_offset_is_half_the_difference_of_the_directions() {
        let found = run(5_000_000_000, 0, 0).unwrap();
        assert_eq!((found.ahead, found.round_trip), (5_000_000_000, 40_000_000));
        assert_eq!((found.matches, found.drift), ([10_000; 2], None));
    }

    #[test]
    fn matches_at_the_second_point_are_in_its_order() {
        let overtaken = vec![(1_000, 9_000), (2_000, 1_000), (3_000, 1_000)];
        assert_eq!(
            at_second_point(overtaken),
            [(3_000, -1_000), (4_000, -1_000), (10_000, -9_000)]
        );
    }

    #[test]
    fn a_drift_changes_both_directions_and_a_queue_one() {
        // 50 parts in a million.
        let drift = run(-7, 50_000, 0).unwrap().drift.unwrap();
        assert!((drift - 50_000.0).abs() < 200.0, "{drift}");
        let drift = run(-7, -50_000, 0).unwrap().drift.unwrap();
        assert!((drift + 50_000.0).abs() < 200.0, "{drift}");
        assert_eq!(run(-7, 0, 1_000_000).unwrap().drift, None);
    }
}
