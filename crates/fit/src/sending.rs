//! Estimates the rate of a bottleneck that is never busy for long, from how much longer larger messages take.
//!
//! On an empty path a packet takes the delay of the path and, on the slowest link, the time to send it and what was
//! sent just before it (Jacobson, "pathchar", 1997; Lindley's recursion for a queue of several). At the right rate the
//! rest of all round trips is the same, whatever their packets' sizes. Of equal bursts the shortest counts: the others
//! waited for something else.

use std::collections::{BTreeMap, VecDeque};

use diagnose::CapturedPacket;
use diagnose::capture_point::CapturePoint;
use packet::{Dir, Flags};

use crate::losses::SequenceUnwrapper;

/// Rates that are tried: from this many bit/s up to that, each a fiftieth higher than the one before.
const RATES: (f64, f64) = (1e5, 1e10);
const STEP: f64 = 1.02;
/// Rests that are the same differ by no more ns: the noise of hosts that answer at once.
const NEAR: i64 = 100_000;
/// Fewest round trips, and most that are used; most packets among which they are.
const FEWEST: usize = 8;
const MOST: usize = 4_000;
const MOST_SENT: usize = 20_000;
/// Packets of a burst at most.
const LONGEST: usize = 1_000;
/// Sizes of bursts that bound the rate, and that show it: the host that answers may be slower with data than with SYNs.
const BOUND: usize = 2;
const SHOWN: usize = 3;
/// Part of the sizes that have the same rest at least: one of this number.
const PART: usize = 2;
/// What was sent within this part of the shortest round trip is one burst.
const BURST: u64 = 4;
/// Rates of which as many rests are the same, less one of this number.
const AS_MANY: usize = 10;
/// Largest ratio of those that leave no doubt.
const CLEAR: f64 = 1.25;
/// Bytes of a packet without payload.
const SMALL: u64 = 60;

/// What sending times show of the rate of the bottleneck, in bit/s of IP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendingRate {
    /// The rate, if it is clear.
    pub(crate) rate: Option<u64>,
    /// The lowest that is possible.
    pub(crate) at_least: u64,
}

/// A packet, with the time at which it is known to have been sent, less a constant.
#[derive(Debug, Clone, Copy)]
struct SentPacket {
    at: u64,
    bytes: u64,
}

/// Packets of one direction, and the round trips of some, by index.
#[derive(Debug, Default)]
struct RoundTrips {
    sent: Vec<SentPacket>,
    samples: Vec<(usize, u64)>,
}

impl SendingRate {
    /// Finds it for the data of direction `dir`, with `headers` bytes before the payload, whose shortest round trip is
    /// `rtt` ns.
    pub(crate) fn of(
        packets: &[CapturedPacket],
        dir: Dir,
        point: CapturePoint,
        headers: u64,
        rtt: u64,
    ) -> Option<Self> {
        let after = || RoundTrips::acknowledged(packets, dir, headers).rate(rtt);
        let before = || RoundTrips::triggered(packets, dir, headers, rtt).rate(rtt);
        match point {
            CapturePoint::Sender => after(),
            CapturePoint::Receiver => before(),
            // The slowest link is on one of both sides.
            CapturePoint::Middle => {
                let (Some(after), Some(before)) = (after(), before()) else { return None };
                Some(Self {
                    rate: match (after.rate, before.rate) {
                        (Some(one), Some(other)) => Some(one.min(other)),
                        (one, other) => one.or(other),
                    },
                    at_least: after.at_least.min(before.at_least),
                })
            }
            CapturePoint::Unknown => None,
        }
    }
}

/// Bytes of a packet on the wire.
fn wire(packet: &CapturedPacket, headers: u64) -> u64 {
    match packet.segment.flags.has(Flags::SYN) {
        true => SMALL,
        false => headers + u64::from(packet.segment.payload),
    }
}

impl RoundTrips {
    /// The packets as they pass a point before the bottleneck, with the times to their ACKs.
    fn acknowledged(packets: &[CapturedPacket], dir: Dir, headers: u64) -> Self {
        let mut found = Self::default();
        let mut stream = SequenceUnwrapper::default();
        // Ends of data that are not acknowledged, and what was sent twice.
        let mut pending: VecDeque<(u64, usize)> = VecDeque::new();
        let (mut top, mut repeated) = (0, 0);
        for packet in packets {
            let segment = &packet.segment;
            let at = packet.at.as_nanos();
            if segment.dir == dir {
                let length = u64::from(segment.payload) + u64::from(segment.flags.has(Flags::SYN));
                if length > 0 {
                    let end = stream.place(segment.seq.0) + length;
                    match end > top {
                        true => pending.push_back((end, found.sent.len())),
                        false => repeated = top,
                    }
                    top = top.max(end);
                }
                found.sent.push(SentPacket { at, bytes: wire(packet, headers) });
                continue;
            }
            let Some(ack) = segment.acknowledgment().filter(|_| !found.sent.is_empty()) else {
                continue;
            };
            let ack = stream.place(ack.0);
            let mut last = None;
            while pending.front().is_some_and(|one| one.0 <= ack) {
                last = pending.pop_front();
            }
            if let Some((end, index)) = last
                && end == ack
                && ack > repeated
                && segment.sack_blocks().is_empty()
            {
                found.samples.push((index, at.saturating_sub(found.sent[index].at)));
            }
        }
        found
    }

    /// The packets as they pass a point past the bottleneck, with the times since the packet of the peer that
    /// released them.
    fn triggered(packets: &[CapturedPacket], dir: Dir, headers: u64, rtt: u64) -> Self {
        let mut found = Self::default();
        let mut stream = SequenceUnwrapper::default();
        let (mut top, mut trigger, mut released) = (0, None::<u64>, None::<(u64, Option<u32>)>);
        let mut is_opening = false;
        for packet in packets {
            let segment = &packet.segment;
            let at = packet.at.as_nanos();
            if segment.dir != dir {
                trigger = Some(at);
                is_opening = segment.flags.has(Flags::SYN);
                continue;
            }
            let stamp = segment.timestamps.map(|stamps| stamps.val);
            let length = u64::from(segment.payload) + u64::from(segment.flags.has(Flags::SYN));
            let is_answer = trigger.filter(|&then| at.saturating_sub(then) >= rtt - rtt / 16);
            // What was sent in the same tick as the packet before was released with it.
            let is_same = released.filter(|one| stamp.is_some() && one.1 == stamp);
            released = match (is_same, is_answer) {
                (Some(same), _) => Some(same),
                (None, Some(then)) => Some((then, stamp)),
                (None, None) => None,
            };
            let Some((then, _)) = released else { continue };
            let then = found.sent.last().map_or(then, |last: &SentPacket| last.at.max(then));
            let end = if length > 0 { stream.place(segment.seq.0) + length } else { top };
            // An ACK alone may be delayed, but for that of a SYN.
            if end > top || is_opening {
                found.samples.push((found.sent.len(), at.saturating_sub(then)));
            }
            top = top.max(end);
            found.sent.push(SentPacket { at: then, bytes: wire(packet, headers) });
        }
        found
    }

    /// Of bursts that are as large up to the packet whose round trip was measured, only the shortest.
    fn without_longer(&mut self, rtt: u64) {
        let mut shortest: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        for &(index, took) in &self.samples {
            let at = self.sent[index].at;
            let is_near = |one: &&SentPacket| at.saturating_sub(one.at) <= rtt / BURST;
            let burst = self.sent[..=index].iter().rev().take(LONGEST).take_while(is_near);
            let size = burst.map(|one| one.bytes).sum();
            let one = shortest.entry(size).or_insert((index, took));
            if took < one.1 {
                *one = (index, took);
            }
        }
        self.samples = shortest.into_values().collect();
        self.samples.sort_unstable();
    }

    /// The rate at which most rests are the same. `rtt`: the shortest round trip in ns.
    fn rate(mut self, rtt: u64) -> Option<SendingRate> {
        self.samples.truncate(MOST);
        self.samples.retain(|one| one.0 < MOST_SENT);
        self.sent.truncate(MOST_SENT);
        if self.samples.len() < FEWEST {
            return None;
        }
        self.without_longer(rtt);
        let mut tried: Vec<(f64, usize, f64)> = Vec::new();
        let mut rate = RATES.0;
        while rate <= RATES.1 {
            let (same, spread) = self.same_rests(rate);
            tried.push((rate, same, spread));
            rate *= STEP;
        }
        let most = tried.iter().map(|one| one.1).max()?;
        if most < BOUND || most * PART < self.samples.len() {
            return None;
        }
        let as_many: Vec<_> =
            tried.iter().filter(|one| (most - one.1) * AS_MANY <= most).copied().collect();
        let (lowest, highest) = (as_many.first()?.0, as_many.last()?.0);
        let nearest = as_many.iter().min_by(|a, b| a.2.total_cmp(&b.2))?.0;
        let is_clear = most >= SHOWN && highest <= lowest * CLEAR;
        Some(SendingRate { rate: is_clear.then_some(nearest as u64), at_least: lowest as u64 })
    }

    /// The largest number of round trips whose rests are the same, and the variance of these rests.
    fn same_rests(&self, rate: f64) -> (usize, f64) {
        let mut rests = Vec::with_capacity(self.samples.len());
        let mut samples = self.samples.iter().peekable();
        let mut free = 0.0_f64;
        for (index, packet) in self.sent.iter().enumerate() {
            let at = packet.at as f64;
            free = free.max(at) + packet.bytes as f64 * 8e9 / rate;
            while let Some(&(_, took)) = samples.next_if(|one| one.0 == index) {
                rests.push(took as i64 - (free - at) as i64);
            }
        }
        rests.sort_unstable();
        let (mut begin, mut best) = (0, 0..0);
        for end in 0..rests.len() {
            while rests[end] - rests[begin] > NEAR {
                begin += 1;
            }
            if end + 1 - begin > best.len() {
                best = begin..end + 1;
            }
        }
        let same = &rests[best];
        let number = same.len().max(1) as f64;
        let mean = same.iter().map(|&rest| rest as f64).sum::<f64>() / number;
        let square = |&rest: &i64| (rest as f64 - mean) * (rest as f64 - mean);
        (same.len(), same.iter().map(square).sum::<f64>() / number)
    }
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;
    use crate::test_packets::packet;

    /// Messages of one or two packets over 20 ms, each answered at once; a byte takes `ns`.
    fn dialogue(ns: u64, is_at_receiver: bool) -> Vec<CapturedPacket> {
        let mut packets = Vec::new();
        let (mut seq, mut at) = (1, 0);
        for round in 0..20_u32 {
            let sizes = [100 + 60 * round, if round % 2 == 0 { 1_000 } else { 0 }];
            let sent = sizes.into_iter().filter(|&size| size > 0);
            let mut arrived = at + 10_000;
            let first = packets.len();
            for size in sent {
                arrived += u64::from(size + 52) * ns / 1_000;
                let seen = if is_at_receiver { arrived } else { at };
                packets.push(packet(seen, Dir::Forward, seq, 1 + 10 * round, size));
                // Sent in one tick.
                if let Some(last) = packets.last_mut() {
                    last.segment.timestamps = Some(packet::Timestamps { val: round, ecr: 0 });
                }
                seq += size;
            }
            assert!(packets.len() > first);
            let seen = if is_at_receiver { arrived } else { arrived + 10_000 };
            packets.push(packet(seen, Dir::Reverse, 1 + 10 * round, seq, 10));
            at = arrived + 10_000;
        }
        packets
    }

    fn of(ns: u64, point: CapturePoint) -> Option<SendingRate> {
        let packets = dialogue(ns, point == CapturePoint::Receiver);
        SendingRate::of(&packets, Dir::Forward, point, 52, 20_000_000)
    }

    #[test]
    fn the_rate_is_that_at_which_sizes_explain_the_round_trips() {
        for point in [CapturePoint::Sender, CapturePoint::Receiver] {
            // 8 Mbit/s.
            let found = of(1_000, point).and_then(|found| found.rate);
            assert!(found.is_some_and(|rate| rate.abs_diff(8_000_000) < 300_000), "{found:?}");
        }
    }

    #[test]
    fn sending_times_below_the_noise_bound_the_rate() {
        // 1 Gbit/s: two packets take 20 us.
        let found = of(8, CapturePoint::Sender).unwrap();
        assert_eq!(found.rate, None);
        assert!((50_000_000..1_000_000_000).contains(&found.at_least), "{found:?}");
    }

    /// Captures of several interfaces have times that go back.
    #[test]
    fn times_that_go_back_are_no_round_trips() {
        for point in [CapturePoint::Sender, CapturePoint::Receiver, CapturePoint::Middle] {
            let mut packets = dialogue(1_000, false);
            packets.reverse();
            let _ = SendingRate::of(&packets, Dir::Forward, point, 52, 20_000_000);
            let late = packets.len() / 2;
            packets[late].at = Instant::ZERO;
            let _ = SendingRate::of(&packets, Dir::Forward, point, 52, 20_000_000);
        }
    }
}
