//! Captures of one transfer at two points, on one clock.
//!
//! A packet that both points saw and that is the only one of its kind gives a difference of
//! stamps: the delay between the points, more or less the offset of their clocks. The least
//! difference each way is that of a packet that waited nowhere. Half of what these two differ by is
//! the offset, if the way takes as long in one direction as in the other: captures alone cannot
//! tell whether it does. Drift shows in how the offset changes from one piece of the transfer to
//! the next.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use packet::Dir;
use packet::wire::Endpoints;

use super::crossing::{Crossing, Seen};
use super::table::Point;

/// Pieces into which a transfer is cut to see a drift.
const PIECES: u64 = 16;
/// Packets each way that a piece needs.
const ENOUGH: usize = 8;
/// What the two ways may say of a drift differs by at most this part of it.
const AGREED: f64 = 0.25;
/// A clock that moves by less than this over a transfer, in nanoseconds, may as well not.
const LEAST_MOVED: f64 = 10_000.0;

/// A connection at a point, before it is joined.
pub(super) struct Side {
    pub(super) point: Point,
    pub(super) ends: Endpoints,
    pub(super) isn: [Option<u32>; 2],
    pub(super) seen: [Vec<Seen>; 2],
}

/// How the clock of the second point stands to that of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offset {
    /// Nanoseconds by which it is ahead, where both count from the first packet of their files.
    pub ahead: i64,
    /// Least round trip between the points, in nanoseconds: the offset is within half of it for
    /// certain, and exact if the way takes as long in one direction as in the other.
    pub round_trip: i64,
    /// Packets that both saw, from who opened the connection and to it.
    pub matches: [u64; 2],
    /// Nanoseconds a second by which it runs faster; `None` if that cannot be told.
    pub drift: Option<f64>,
}

impl Offset {
    /// The points of one file have one clock, unless packets came before they left by it (files that
    /// were merged).
    fn of_one_clock(self) -> Self {
        if self.ahead.unsigned_abs() * 2 <= self.round_trip.unsigned_abs() && self.round_trip >= 0 {
            Self { ahead: 0, drift: None, ..self }
        } else {
            self
        }
    }
}

/// A connection that two points saw.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Index in [`Reading::streams`](super::Reading::streams) of the point nearer to who opened
    /// the connection.
    pub near: usize,
    /// And of the other one.
    pub far: usize,
    /// The clock at `far` beside that at `near`; `None` if packets of one direction only match.
    pub offset: Option<Offset>,
    /// What became of packets with payload: from `near` to `far`, and from `far` to `near`.
    pub crossings: [Crossing; 2],
}

/// Finds the connections that two capture points have, and lays them side by side.
pub(super) fn join(sides: &[Side]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut known = Known::default();
    for (second, side) in sides.iter().enumerate() {
        // The latest connection of another point with the same numbers, or the same ends.
        let first = known.like(side).into_iter().rev().find(|&first| {
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

/// Connections by what shows that one of another point is the same.
#[derive(Default)]
struct Known {
    by_ends: BTreeMap<[SocketAddr; 2], Vec<usize>>,
    by_isn: BTreeMap<[u32; 2], Vec<usize>>,
}

impl Known {
    fn keys(side: &Side) -> ([SocketAddr; 2], Option<[u32; 2]>) {
        let Endpoints { src, dst } = side.ends;
        ([src.min(dst), src.max(dst)], side.isn[0].zip(side.isn[1]).map(|(a, b)| [a, b]))
    }

    fn add(&mut self, index: usize, side: &Side) {
        let (ends, isn) = Self::keys(side);
        self.by_ends.entry(ends).or_default().push(index);
        if let Some(isn) = isn {
            self.by_isn.entry(isn).or_default().push(index);
        }
    }

    /// Those with the same ends or the same initial sequence numbers, in their order.
    fn like(&self, side: &Side) -> Vec<usize> {
        let (ends, isn) = Self::keys(side);
        let by_isn = isn.and_then(|isn| self.by_isn.get(&isn));
        let mut found: Vec<usize> =
            self.by_ends.get(&ends).into_iter().chain(by_isn).flatten().copied().collect();
        found.sort_unstable();
        found
    }
}

/// Are these the same connection? Addresses may have been translated on the way: then both initial
/// sequence numbers must agree.
fn same(a: &Side, b: &Side) -> bool {
    let ends = a.ends == b.ends || a.ends == b.ends.back();
    let turned = a.ends == b.ends.back();
    let isn = if turned { [b.isn[1], b.isn[0]] } else { b.isn };
    let known = a.isn.iter().zip(isn).filter_map(|(one, other)| Some((*one)? == other?));
    let (same, all) = known.fold((0, 0), |(same, all), one| (same + u32::from(one), all + 1));
    if ends { same == all } else { same == 2 }
}

fn lay(index: [usize; 2], sides: [&Side; 2]) -> Option<Pair> {
    // One point may have taken the other end for who opened it.
    let turned = sides[0].ends == sides[1].ends.back();
    let of = |side: usize, dir: Dir| {
        let dir = if side == 1 && turned { dir.back() } else { dir };
        &sides[side].seen[dir as usize][..]
    };
    let forward = matches(of(0, Dir::Forward), of(1, Dir::Forward));
    let backward = matches(of(0, Dir::Reverse), of(1, Dir::Reverse));
    if forward.is_empty() && backward.is_empty() {
        return None;
    }
    // Differences of stamps, second point less first, at the time at the first.
    let least = |matches: &[(u64, i64)]| matches.iter().map(|one| one.1).min();
    let most = |matches: &[(u64, i64)]| matches.iter().map(|one| one.1).max();
    // Seen from the first point, a packet that comes back left the second before it got here.
    let swap = match (least(&forward), most(&backward)) {
        // Nearer is who sees a packet first, and its answer last.
        (Some(out), Some(back)) => out < back,
        _ => false,
    };
    let (near, far) = if swap { (1, 0) } else { (0, 1) };
    let seen_from = |matches| if swap { from_second(matches) } else { matches };
    let (forward, backward) = (seen_from(forward), seen_from(backward));
    let mut offset = offset(&forward, &backward);
    if sides[0].point.file == sides[1].point.file {
        offset = offset.map(Offset::of_one_clock);
    }
    let ahead = offset.map_or_else(
        // One direction alone: as if its fastest packet had taken no time.
        || least(&forward).or_else(|| most(&backward)).unwrap_or(0),
        |offset| offset.ahead,
    );
    let one_way = offset.map_or(0, |offset| offset.round_trip / 2);
    let out = Crossing::follow(
        Dir::Forward,
        of(near, Dir::Forward),
        of(far, Dir::Forward),
        ahead,
        one_way,
    );
    let back = Crossing::follow(
        Dir::Reverse,
        of(far, Dir::Reverse),
        of(near, Dir::Reverse),
        -ahead,
        one_way,
    );
    Some(Pair { near: index[near], far: index[far], offset, crossings: [out, back] })
}

/// What makes a packet the only one of its kind.
type Mark = (u32, u32, u32, (u32, u32), u16, u8);

/// Packets that both points saw exactly once: their time at the first, and by how much later their
/// stamp at the second is.
fn matches(first: &[Seen], second: &[Seen]) -> Vec<(u64, i64)> {
    let mark = |seen: &Seen| -> Mark {
        (seen.seq, seen.ack, seen.len, seen.stamps, seen.window, seen.flags)
    };
    let only = |all: &[Seen]| {
        let mut times: BTreeMap<Mark, Option<u64>> = BTreeMap::new();
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

/// The same matches with their times at the second point, in the order of these.
fn from_second(matches: Vec<(u64, i64)>) -> Vec<(u64, i64)> {
    let turn = |(at, difference): (u64, i64)| (at.saturating_add_signed(difference), -difference);
    let mut turned: Vec<_> = matches.into_iter().map(turn).collect();
    // Packets overtake each other, and pieces of the transfer are looked up by time.
    turned.sort_unstable();
    turned
}

fn offset(forward: &[(u64, i64)], backward: &[(u64, i64)]) -> Option<Offset> {
    let out = forward.iter().map(|one| one.1).min()?;
    // On the way back the second point comes first.
    let back = backward.iter().map(|one| -one.1).min()?;
    Some(Offset {
        ahead: (out - back) / 2,
        round_trip: out + back,
        matches: [forward.len() as u64, backward.len() as u64],
        drift: drift(forward, backward),
    })
}

/// How fast the least differences move, each way by itself: a drift moves both alike, a queue that
/// grows moves one. Their mean, if they agree.
fn drift(forward: &[(u64, i64)], backward: &[(u64, i64)]) -> Option<f64> {
    let all = || forward.iter().chain(backward).map(|one| one.0);
    let span = (all().min()?, all().max()?);
    // The packet that waited least comes late on the way out and, by these stamps, soon on the way
    // back.
    let out = slope(forward, span, |differences| differences.min())?;
    let back = slope(backward, span, |differences| differences.max())?;
    let (sum, difference) = (out + back, (out - back).abs());
    let moved = sum.abs() / 2.0 * ((span.1 - span.0) as f64 / 1e9);
    (difference <= AGREED * sum.abs() / 2.0 && moved > LEAST_MOVED).then_some(sum / 2.0)
}

/// The median slope between the pieces of a transfer (Theil and Sen), in nanoseconds a second.
fn slope(
    matches: &[(u64, i64)],
    (from, to): (u64, u64),
    pick: impl Fn(&mut dyn Iterator<Item = i64>) -> Option<i64>,
) -> Option<f64> {
    let length = (to - from) / PIECES + 1;
    let mut points = Vec::new();
    for piece in 0..PIECES {
        // A damaged stamp may lie at the end of time.
        let begin = from.saturating_add(piece.saturating_mul(length));
        let end = begin.saturating_add(length);
        let lower = matches.partition_point(|one| one.0 < begin);
        let upper = matches.partition_point(|one| one.0 < end);
        let within = &matches[lower..upper];
        if within.len() >= ENOUGH {
            let picked = pick(&mut within.iter().map(|one| one.1))?;
            points.push((begin.saturating_add(length / 2) as f64 / 1e9, picked as f64));
        }
    }
    if (points.len() as u64) < PIECES / 2 {
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
    fn a_stamp_at_the_end_of_time_is_looked_up_without_a_panic() {
        let mut matches: Vec<_> = (0..1_000).map(|n| (n * 1_000_000, 5)).collect();
        matches.push((u64::MAX - 1, 5));
        assert_eq!(slope(&matches, (0, u64::MAX - 1), |all| all.min()), None);
    }

    /// Packets each way, 1 ms apart for ten seconds: the far clock is `ahead` and gains `gains`
    /// nanoseconds a second; the way takes 20 ms and `queue` more with every second.
    fn run(ahead: i64, gains: i64, queue: i64) -> Option<Offset> {
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
    fn the_offset_is_half_of_what_the_ways_differ_by() {
        let found = run(5_000_000_000, 0, 0).unwrap();
        assert_eq!((found.ahead, found.round_trip), (5_000_000_000, 40_000_000));
        assert_eq!((found.matches, found.drift), ([10_000; 2], None));
    }

    #[test]
    fn seen_from_the_second_point_packets_stand_in_its_order() {
        let overtaken = vec![(1_000, 9_000), (2_000, 1_000), (3_000, 1_000)];
        assert_eq!(from_second(overtaken), [(3_000, -1_000), (4_000, -1_000), (10_000, -9_000)]);
    }

    #[test]
    fn a_drift_moves_both_ways_and_a_queue_one() {
        // 50 parts in a million.
        let drift = run(-7, 50_000, 0).unwrap().drift.unwrap();
        assert!((drift - 50_000.0).abs() < 200.0, "{drift}");
        let drift = run(-7, -50_000, 0).unwrap().drift.unwrap();
        assert!((drift + 50_000.0).abs() < 200.0, "{drift}");
        assert_eq!(run(-7, 0, 1_000_000).unwrap().drift, None);
    }
}
