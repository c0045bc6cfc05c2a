//! Outcome of packets between two capture points.
//!
//! Packets of one direction are matched byte by byte, since an offload may merge or split them
//! between the points. The bytes of a packet at the second point are matched with the transmissions
//! of the same bytes at the first one; of several copies, with that of the same timestamp and
//! identification, else with the oldest still in flight.

use std::collections::BTreeMap;

use diagnose::CapturedPacket;
use packet::Dir;

/// Most packets kept of all captures together for the comparison.
pub const MAX_TRANSIT_PACKETS: usize = 4_000_000;

/// Most bytes of a transmission.
const LONGEST: u64 = 1 << 20;

/// The fields of a packet needed for the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketRecord {
    /// Nanoseconds since the first packet of the file.
    pub(super) at: u64,
    pub(super) frame: u32,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// Bytes of payload.
    pub(super) len: u32,
    /// TSval and TSecr; 0 without.
    pub(super) stamps: (u32, u32),
    pub(super) window: u16,
    pub(super) flags: u8,
}

impl PacketRecord {
    pub(super) fn of(packet: &CapturedPacket) -> Self {
        let segment = &packet.segment;
        Self {
            at: packet.at.as_nanos(),
            frame: u32::try_from(packet.frame).unwrap_or(u32::MAX),
            seq: segment.seq.0,
            ack: segment.ack.0,
            len: segment.payload,
            stamps: segment.timestamps.map_or((0, 0), |stamps| (stamps.val, stamps.ecr)),
            window: segment.window,
            flags: segment.flags.0,
        }
    }
}

/// Outcome of one data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketOutcome {
    /// Frame number at the first point.
    pub frame: u32,
    /// Bytes of payload.
    pub len: u32,
    /// Bytes that arrived at the second point.
    pub arrived: u32,
    /// Frame at the second point with the first of them; 0 if none arrived.
    pub as_frame: u32,
    /// Nanoseconds from the first point to the second, by the clock of the first.
    pub delay: Option<i64>,
    /// A packet sent later arrived before it.
    pub overtaken: bool,
    /// The second capture ended before it could arrive.
    pub open: bool,
}

/// Outcomes of all data packets of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TwoPointTransit {
    /// Direction of the packets.
    pub dir: Dir,
    /// Outcome of each packet of the first point, in order.
    pub fates: Vec<PacketOutcome>,
    /// Packets of which no byte arrived.
    pub lost: u64,
    /// Packets of which only a part arrived.
    pub lost_in_part: u64,
    /// Packets that arrived after others sent later.
    pub reordered: u64,
    /// Packets at the second point with bytes that arrived more often than they were sent.
    pub duplicated: u64,
    /// Packets at the second point with bytes that the first capture lacks.
    pub unseen: u64,
    /// Minimum, median, 99th percentile and maximum delay, in nanoseconds.
    pub delays: Option<[i64; 4]>,
}

/// Converts sequence numbers to offsets that do not wrap.
struct SeqUnwrapper {
    last: u64,
    seq: u32,
}

impl SeqUnwrapper {
    fn place(&mut self, seq: u32) -> u64 {
        let step = i64::from(seq.wrapping_sub(self.seq).cast_signed());
        let place = self.last.saturating_add_signed(step);
        if step > 0 {
            (self.last, self.seq) = (place, seq);
        }
        place
    }
}

/// A transmission in flight.
struct Transmission {
    to: u64,
    at: u64,
    stamp: u32,
    /// Ranges of bytes that have arrived.
    came: Vec<(u64, u64)>,
}

impl Transmission {
    /// End of the range from `at` whose bytes have not arrived; `None` if the byte at `at` has.
    fn free(&self, at: u64) -> Option<u64> {
        if self.came.iter().any(|range| (range.0..range.1).contains(&at)) {
            return None;
        }
        let next = self.came.iter().map(|range| range.0).filter(|&from| from > at).min();
        Some(next.unwrap_or(self.to))
    }

    fn arrived(&self) -> u64 {
        self.came.iter().map(|range| range.1 - range.0).sum()
    }
}

impl TwoPointTransit {
    /// Matches the packets of `dir` from `first` to `second`, whose clock is `ahead` nanoseconds
    /// ahead; no packet arrives sooner than after `least` nanoseconds.
    pub(super) fn follow(
        dir: Dir,
        first: &[PacketRecord],
        second: &[PacketRecord],
        ahead: i64,
        least: i64,
    ) -> Self {
        let mut crossing = Self { dir, ..Self::default() };
        let data = |seen: &&PacketRecord| seen.len > 0;
        let Some(anchor) = first.iter().find(data) else { return crossing };
        let places = || SeqUnwrapper { last: 1 << 33, seq: anchor.seq };

        let mut sent = Vec::new();
        let mut by_place: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut here = places();
        for seen in first.iter().filter(data) {
            let from = here.place(seen.seq);
            by_place.entry(from).or_default().push(sent.len() as u32);
            let to = from + u64::from(seen.len);
            sent.push(Transmission { to, at: seen.at, stamp: seen.stamps.0, came: Vec::new() });
            crossing.fates.push(PacketOutcome {
                frame: seen.frame,
                len: seen.len,
                arrived: 0,
                as_frame: 0,
                delay: None,
                overtaken: false,
                open: false,
            });
        }

        // Clocks of several processors differ slightly.
        const JITTER: i64 = 500_000;
        let mut there = places();
        let (mut latest, mut end) = (0, i64::MIN);
        for seen in second {
            let at = seen.at.cast_signed() - ahead;
            end = end.max(at);
            if seen.len == 0 {
                continue;
            }
            let from = there.place(seen.seq);
            let to = from + u64::from(seen.len);
            let (mut place, mut twice, mut unseen, mut late) = (from, false, false, false);
            while place < to {
                let near = by_place.range(place.saturating_sub(LONGEST)..=place);
                // Of the copies that could have arrived, the one with this timestamp, else the
                // oldest.
                let (mut best, mut known) = (None, false);
                for &index in near.flat_map(|(_, copies)| copies) {
                    let copy = &sent[index as usize];
                    if copy.to <= place || copy.at.cast_signed() + least > at + JITTER {
                        continue;
                    }
                    known = true;
                    let Some(free) = copy.free(place) else { continue };
                    let rank = (copy.stamp != seen.stamps.0, index);
                    if best.is_none_or(|(before, _)| rank < before) {
                        best = Some((rank, free));
                    }
                }
                let Some(((_, index), free)) = best else {
                    twice |= known;
                    unseen |= !known;
                    // Continue at the next byte that may be of another transmission.
                    let next = by_place.range(place + 1..to).next().map_or(to, |(&next, _)| next);
                    place = next;
                    continue;
                };
                let copy = &mut sent[index as usize];
                let until = free.min(copy.to).min(to);
                copy.came.push((place, until));
                let fate = &mut crossing.fates[index as usize];
                if fate.as_frame == 0 {
                    fate.as_frame = seen.frame;
                    fate.delay = Some(at - copy.at.cast_signed());
                    fate.overtaken = index < latest;
                    late |= fate.overtaken;
                    latest = latest.max(index);
                }
                place = until;
            }
            crossing.duplicated += u64::from(twice);
            crossing.unseen += u64::from(unseen);
            crossing.reordered += u64::from(late);
        }

        let most = crossing.fates.iter().filter_map(|fate| fate.delay).max().unwrap_or(least);
        for (fate, sent) in crossing.fates.iter_mut().zip(&sent) {
            fate.arrived = sent.arrived() as u32;
            fate.open = fate.arrived < fate.len && sent.at.cast_signed() + most > end;
            let (none, whole) = (fate.arrived == 0, fate.arrived == fate.len);
            crossing.lost += u64::from(none && !fate.open);
            crossing.lost_in_part += u64::from(!none && !whole && !fate.open);
        }
        crossing.delays =
            percentiles(crossing.fates.iter().filter_map(|fate| fate.delay).collect());
        crossing
    }
}

/// Minimum, median, 99th percentile and maximum.
pub(super) fn percentiles(mut delays: Vec<i64>) -> Option<[i64; 4]> {
    delays.sort_unstable();
    let last = delays.len().checked_sub(1)?;
    Some([delays[0], delays[last / 2], delays[last * 99 / 100], delays[last]])
}
