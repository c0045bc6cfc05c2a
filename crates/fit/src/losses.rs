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

/// Where a copy of some bytes stands among the packets.
#[derive(Debug, Clone, Copy)]
struct Copy {
    number: u64,
    at: u64,
    end: u64,
}

impl Losses {
    /// Of the data in direction `dir`, in segments of `mss`, seen before they can be lost.
    pub(crate) fn at_sender(packets: &[Packet], dir: Dir, mss: u64, rtt: u64) -> Self {
        let mut sent = 0;
        let mut copies: BTreeMap<u64, Copy> = BTreeMap::new();
        let mut lost: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut stream = Unwrapped::default();
        for packet in packets {
            let segment = &packet.segment;
            if segment.dir != dir {
                if let Some((left, right)) = duplicates(packet) {
                    let (left, right) = (stream.place(left), stream.place(right));
                    // The copy that was thought lost had arrived.
                    let known: Vec<u64> = lost
                        .iter()
                        .filter(|(_, (at, _))| (left..right).contains(at))
                        .map(|(n, _)| *n)
                        .collect();
                    if let Some(latest) = known.last() {
                        lost.remove(latest);
                    }
                }
                continue;
            }
            if segment.payload == 0 {
                continue;
            }
            let start = stream.place(segment.seq.0);
            let mut from = start;
            let end = start + u64::from(segment.payload);
            while from < end {
                let to = (from + mss).min(end);
                sent += 1;
                let at = packet.at.as_nanos();
                let copy = Copy { number: sent, at, end: to };
                if let Some((&before, old)) = copies.range(..=from).next_back()
                    && old.end > from
                {
                    lost.insert(old.number, (before, old.at));
                }
                copies.insert(from, copy);
                from = to;
            }
        }
        let packets = lost.into_iter().map(|(number, (_, at))| (number, at)).collect();
        Self { packets, sent, outages: Vec::new() }.without_outages(rtt)
    }

    /// The same, seen behind the place of loss; a hole that is filled within `late` ns was
    /// reordering.
    pub(crate) fn at_receiver(packets: &[Packet], dir: Dir, mss: u64, late: u64) -> Self {
        let mut sent = 0;
        let mut next: Option<u64> = None;
        let mut holes: BTreeMap<u64, Copy> = BTreeMap::new();
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
            let mut from = expected;
            while from < start {
                let to = (from + mss).min(start);
                sent += 1;
                holes.insert(from, Copy { number: sent, at, end: to });
                from = to;
            }
            if end > expected {
                sent += (end - start.max(expected)).div_ceil(mss);
                next = Some(end);
                continue;
            }
            let filled: Vec<u64> = holes.range(start..end).map(|(&from, _)| from).collect();
            for from in filled {
                let Some(hole) = holes.remove(&from) else { continue };
                if at.saturating_sub(hole.at) > late {
                    lost.push((hole.number, hole.at));
                    sent += 1;
                }
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
