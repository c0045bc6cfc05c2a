//! Which data packets were lost, by their number on the way, and when nothing passed at all.
//!
//! At the sender a loss shows as a retransmission: the copy before it is taken for lost, unless
//! a D-SACK says that it had arrived (RFC 2883). At the receiver it shows as a hole that is
//! filled too late for reordering.

use std::collections::BTreeMap;

use diagnose::Packet;
use packet::Dir;

/// A run of losses without anything between is an outage from this many packets on, if it also
/// lasts two round trips.
const OUTAGE: usize = 5;

/// Losses of the data's way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    /// Numbers of the lost data packets as they left the sender, from 1, each with its time in ns.
    pub packets: Vec<(u64, u64)>,
    /// Data packets in all.
    pub sent: u64,
    /// Times in which everything was lost, in ns since the first packet.
    pub outages: Vec<(u64, u64)>,
}

/// Segments sent in a row at one moment, of which the last may be shorter.
#[derive(Debug, Clone, Copy)]
struct Run {
    end: u64,
    /// First byte and number of the segment from which the others count.
    origin: u64,
    number: u64,
    at: u64,
}

/// A segment of a [`Run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    /// Its first byte.
    start: u64,
    number: u64,
    at: u64,
}

/// Disjoint runs of segments by their first byte: an entry for each packet of a capture at most two
/// more, however many bytes a gap in its sequence numbers spans.
#[derive(Debug)]
struct Runs {
    mss: u64,
    list: BTreeMap<u64, Run>,
}

impl Runs {
    fn new(mss: u64) -> Self {
        Self { mss: mss.max(1), list: BTreeMap::new() }
    }

    fn segment(&self, run: &Run, index: u64) -> Sent {
        Sent { start: run.origin + index * self.mss, number: run.number + index, at: run.at }
    }

    /// The segment that holds the byte at `offset`.
    fn at(&self, offset: u64) -> Option<Sent> {
        let (_, run) = self.list.range(..=offset).next_back()?;
        (run.end > offset).then(|| self.segment(run, (offset - run.origin) / self.mss))
    }

    /// Appends the segments that begin in `[start, end)` to `found`.
    fn begun_in(&self, start: u64, end: u64, found: &mut Vec<Sent>) {
        let before = self.list.range(..start).next_back();
        for (&from, run) in before.into_iter().chain(self.list.range(start..end)) {
            let (low, high) = (from.max(start), run.end.min(end));
            let first = low.saturating_sub(run.origin).div_ceil(self.mss);
            let beyond = high.saturating_sub(run.origin).div_ceil(self.mss);
            found.extend((first..beyond).map(|index| self.segment(run, index)));
        }
    }

    /// Takes `[start, end)` out.
    fn remove(&mut self, start: u64, end: u64) {
        if let Some((&from, &run)) = self.list.range(..start).next_back()
            && run.end > start
        {
            self.list.insert(from, Run { end: start, ..run });
            if run.end > end {
                self.list.insert(end, run);
            }
        }
        while let Some((&from, &run)) = self.list.range(start..end).next() {
            self.list.remove(&from);
            if run.end > end {
                self.list.insert(end, run);
            }
        }
    }

    /// Puts `[start, end)`, sent at `at`, in the place of what was there; its first segment has
    /// `number`.
    fn put(&mut self, start: u64, end: u64, number: u64, at: u64) {
        self.remove(start, end);
        if start < end {
            self.list.insert(start, Run { end, origin: start, number, at });
        }
    }
}

/// A D-SACK reports a packet, which is no longer than this.
const LONGEST: u64 = 1 << 16;

impl Losses {
    /// Of the data in direction `dir`, in segments of `mss`, seen before they can be lost.
    pub(crate) fn at_sender(packets: &[Packet], dir: Dir, mss: u64, rtt: u64) -> Self {
        let mut sent = 0;
        let mut copies = Runs::new(mss);
        // By first byte and number, each with its time.
        let mut lost: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut stream = Unwrapped::default();
        for packet in packets {
            let segment = &packet.segment;
            if segment.dir != dir {
                if let Some((left, right)) = duplicates(packet) {
                    let (left, right) = (stream.place(left), stream.place(right));
                    let left = left.max(right.saturating_sub(LONGEST)).min(right);
                    let known = lost.range((left, 0)..(right, 0)).map(|(key, _)| *key);
                    // The copy that was thought lost had arrived.
                    if let Some(latest) = known.max_by_key(|(_, number)| *number) {
                        lost.remove(&latest);
                    }
                }
                continue;
            }
            if segment.payload == 0 {
                continue;
            }
            let start = stream.place(segment.seq.0);
            let end = start + u64::from(segment.payload);
            let segments = u64::from(segment.payload).div_ceil(copies.mss);
            for index in 0..segments {
                if let Some(old) = copies.at(start + index * copies.mss) {
                    lost.insert((old.start, old.number), old.at);
                }
            }
            copies.put(start, end, sent + 1, packet.at.as_nanos());
            sent += segments;
        }
        let mut packets: Vec<_> = lost.into_iter().map(|((_, number), at)| (number, at)).collect();
        packets.sort_unstable();
        Self { packets, sent, outages: Vec::new() }.without_outages(rtt)
    }

    /// Of the data in direction `dir`, seen after they can be lost; a hole that is filled within
    /// `late` ns was reordering.
    pub(crate) fn at_receiver(packets: &[Packet], dir: Dir, mss: u64, late: u64) -> Self {
        let mut sent = 0;
        let mut next: Option<u64> = None;
        let mut holes = Runs::new(mss);
        let mut filled = Vec::new();
        let mut lost = Vec::new();
        let mut stream = Unwrapped::default();
        for packet in packets.iter().filter(|packet| packet.segment.dir == dir) {
            let segment = &packet.segment;
            if segment.payload == 0 {
                continue;
            }
            let at = packet.at.as_nanos();
            let start = stream.place(segment.seq.0);
            let end = start + u64::from(segment.payload);
            let expected = *next.get_or_insert(start);
            if expected < start {
                holes.put(expected, start, sent + 1, at);
                sent += (start - expected).div_ceil(holes.mss);
            }
            if end > expected {
                sent += (end - start.max(expected)).div_ceil(holes.mss);
                next = Some(end);
                continue;
            }
            filled.clear();
            holes.begun_in(start, end, &mut filled);
            holes.remove(start, end);
            for hole in filled.iter().filter(|hole| at.saturating_sub(hole.at) > late) {
                lost.push((hole.number, hole.at));
                sent += 1;
            }
        }
        lost.sort_unstable();
        Self { packets: lost, sent, outages: Vec::new() }.without_outages(4 * late)
    }

    /// Takes runs of losses that last out of the list: nothing passed then.
    fn without_outages(mut self, rtt: u64) -> Self {
        let mut kept = Vec::new();
        for run in self.packets.chunk_by(|before, after| after.0 == before.0 + 1) {
            let (first, last) = (run[0].1, run[run.len() - 1].1);
            if run.len() >= OUTAGE && last - first >= 2 * rtt {
                self.outages.push((first, last));
            } else {
                kept.extend_from_slice(run);
            }
        }
        self.packets = kept;
        self
    }

    /// Share of the packets that were lost, outages left out.
    pub fn rate(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.packets.len() as f64 / self.sent as f64 }
    }
}

/// Blocks of an ACK that report bytes as received twice (RFC 2883 section 4): the first block lies
/// below the acknowledgment, or within the second.
fn duplicates(packet: &Packet) -> Option<(u32, u32)> {
    let segment = &packet.segment;
    let (first, rest) = segment.sack_blocks().split_first()?;
    let below = segment.ack.0.wrapping_sub(first.right.0) < 1 << 31;
    let within = rest.first().is_some_and(|second| {
        first.left.0.wrapping_sub(second.left.0) < 1 << 31
            && second.right.0.wrapping_sub(first.right.0) < 1 << 31
    });
    (below || within).then_some((first.left.0, first.right.0))
}

/// Sequence numbers as places in a stream without end.
#[derive(Debug, Default)]
pub(crate) struct Unwrapped {
    last: Option<u64>,
}

impl Unwrapped {
    pub(crate) fn place(&mut self, seq: u32) -> u64 {
        // The first lies far enough from zero for what comes before it.
        let near = *self.last.get_or_insert((1 << 32) + u64::from(seq));
        let ahead = seq.wrapping_sub(near as u32) as i32;
        let place = near.wrapping_add_signed(i64::from(ahead));
        self.last = Some(near.max(place));
        place
    }
}

#[cfg(test)]
mod tests {
    use packet::{Options, SackBlock, SackBlocks, Segment};
    use units::{Instant, SeqNum};

    use super::*;

    fn data(millis: u64, seq: u32) -> Packet {
        let segment = Segment { seq: SeqNum(seq), payload: 1_000, ..Segment::default() };
        Packet { at: Instant::from_nanos(millis * 1_000_000), frame: 1, segment, captured: 0 }
    }

    #[test]
    fn what_is_sent_again_was_lost_unless_a_duplicate_is_reported() {
        let mut packets = vec![data(0, 0), data(0, 1_000), data(0, 2_000), data(50, 1_000)];
        let losses = Losses::at_sender(&packets, Dir::Forward, 1_000, 40_000_000);
        assert_eq!(losses.packets, [(2, 0)]);
        assert_eq!(losses.sent, 4);
        let mut blocks = SackBlocks::EMPTY;
        assert!(blocks.push(SackBlock { left: SeqNum(1_000), right: SeqNum(2_000) }));
        let mut told = data(90, 0);
        told.segment.dir = Dir::Reverse;
        told.segment.ack = SeqNum(3_000);
        told.segment.payload = 0;
        told.segment.options = Options::Sack(blocks);
        packets.push(told);
        let losses = Losses::at_sender(&packets, Dir::Forward, 1_000, 40_000_000);
        assert_eq!(losses.packets, []);
    }

    #[test]
    fn at_the_receiver_a_hole_that_fills_late_was_a_loss() {
        let packets = [data(0, 0), data(0, 2_000), data(1, 4_000), data(1, 3_000), data(50, 1_000)];
        let losses = Losses::at_receiver(&packets, Dir::Forward, 1_000, 10_000_000);
        assert_eq!(losses.packets, [(2, 0)]);
    }

    /// Sequence numbers that leap by 2 GB: a hole is one entry, not one for each of its segments.
    #[test]
    fn a_gap_of_gigabytes_takes_one_entry() {
        let leap = 0x7fff_0000_u32;
        let packets: Vec<Packet> =
            (0..40).map(|n| data(u64::from(n), leap.wrapping_mul(n))).collect();
        let losses = Losses::at_receiver(&packets, Dir::Forward, 1_000, 10_000_000);
        assert_eq!(losses.packets, []);
        let gap = (u64::from(leap) - 1_000).div_ceil(1_000);
        assert_eq!(losses.sent, 40 + 39 * gap);
        // A packet in the last gap, after the time that reordering may take.
        let mut packets = packets;
        packets.push(data(500, leap.wrapping_mul(39) - 5_000));
        let losses = Losses::at_receiver(&packets, Dir::Forward, 1_000, 10_000_000);
        assert_eq!(losses.packets, [(39 + 39 * gap - 4, 39_000_000)]);
    }

    #[test]
    fn runs_are_the_same_as_a_list_of_segments() {
        let mut runs = Runs::new(10);
        runs.put(100, 135, 1, 7);
        assert_eq!(runs.at(99), None);
        assert_eq!(runs.at(134), Some(Sent { start: 130, number: 4, at: 7 }));
        // In the midst of the second segment: its beginning stays, as does the end of the third.
        runs.put(115, 125, 9, 8);
        assert_eq!(runs.at(114), Some(Sent { start: 110, number: 2, at: 7 }));
        assert_eq!(runs.at(115), Some(Sent { start: 115, number: 9, at: 8 }));
        assert_eq!(runs.at(125), Some(Sent { start: 120, number: 3, at: 7 }));
        let mut found = Vec::new();
        runs.begun_in(105, 131, &mut found);
        assert_eq!(found.iter().map(|one| one.number).collect::<Vec<_>>(), [2, 9, 4]);
        runs.remove(0, 1_000);
        assert!(runs.list.is_empty());
    }

    #[test]
    fn a_long_run_of_losses_is_an_outage() {
        let mut packets: Vec<Packet> =
            (0..10).map(|n| data(u64::from(n) * 20, n * 1_000)).collect();
        packets.extend((2..9).map(|n| data(400 + u64::from(n), n * 1_000)));
        let losses = Losses::at_sender(&packets, Dir::Forward, 1_000, 40_000_000);
        assert_eq!(losses.outages, [(40_000_000, 160_000_000)]);
        assert_eq!(losses.packets, []);
    }
}
