//! Detects lost data packets, by their number on the path, and outages.
//!
//! At the sender, a retransmission indicates a loss: the previous copy counts as lost, unless a
//! D-SACK reports that it had arrived (RFC 2883). At the receiver, a loss is a hole that is filled
//! too late for reordering.

use std::collections::BTreeMap;

use diagnose::episodes::{RecoveryEpisode, RecoveryTrigger};
use diagnose::{CapturedPacket, FlowAnalysis};
use packet::{Dir, Flags};
use units::Duration;

/// Minimum consecutive losses of an outage, which must also last two round trips.
const OUTAGE: usize = 5;

/// Losses in the direction of the data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LossEstimate {
    /// Numbers of the lost data packets in sending order, from 1, each with its time in ns.
    pub packets: Vec<(u64, u64)>,
    /// Total data packets.
    pub sent: u64,
    /// Outages, in ns since the first packet.
    pub outages: Vec<(u64, u64)>,
    /// Time of each data packet in ns, those lost before the capture point with the next; empty if unknown.
    pub times: Vec<u64>,
    /// Offset in the stream of the first byte of each lost packet, with its number; empty if unknown.
    pub starts: Vec<(u64, u64)>,
}

/// Consecutive segments sent at one time, of which the last may be shorter.
#[derive(Debug, Clone, Copy)]
struct SegmentRun {
    end: u64,
    /// First byte and number of the reference segment of the run.
    origin: u64,
    number: u64,
    at: u64,
}

/// A segment of a [`SegmentRun`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SentCopy {
    /// Its first byte.
    start: u64,
    number: u64,
    at: u64,
}

/// Disjoint runs of segments by their first byte. Each packet of a capture adds at most two
/// entries, however many bytes a gap in its sequence numbers spans.
#[derive(Debug)]
struct SegmentRuns {
    mss: u64,
    list: BTreeMap<u64, SegmentRun>,
}

impl SegmentRuns {
    fn new(mss: u64) -> Self {
        Self { mss: mss.max(1), list: BTreeMap::new() }
    }

    fn segment(&self, run: &SegmentRun, index: u64) -> SentCopy {
        SentCopy { start: run.origin + index * self.mss, number: run.number + index, at: run.at }
    }

    /// Returns the segment with the byte at `offset`.
    fn at(&self, offset: u64) -> Option<SentCopy> {
        let (_, run) = self.list.range(..=offset).next_back()?;
        (run.end > offset).then(|| self.segment(run, (offset - run.origin) / self.mss))
    }

    /// Appends the segments that start in `[start, end)` to `found`.
    fn begun_in(&self, start: u64, end: u64, found: &mut Vec<SentCopy>) {
        let before = self.list.range(..start).next_back();
        for (&from, run) in before.into_iter().chain(self.list.range(start..end)) {
            let (low, high) = (from.max(start), run.end.min(end));
            let first = low.saturating_sub(run.origin).div_ceil(self.mss);
            let beyond = high.saturating_sub(run.origin).div_ceil(self.mss);
            found.extend((first..beyond).map(|index| self.segment(run, index)));
        }
    }

    /// Removes `[start, end)`.
    fn remove(&mut self, start: u64, end: u64) {
        if let Some((&from, &run)) = self.list.range(..start).next_back()
            && run.end > start
        {
            self.list.insert(from, SegmentRun { end: start, ..run });
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

    /// Replaces `[start, end)` by segments sent at `at`, the first of which has `number`.
    fn put(&mut self, start: u64, end: u64, number: u64, at: u64) {
        self.remove(start, end);
        if start < end {
            self.list.insert(start, SegmentRun { end, origin: start, number, at });
        }
    }
}

/// Most packets whose identifications are missing.
const MOST_MISSING: u16 = 4_096;
/// Longer silences are timeouts: the shortest of Linux.
const SILENT: u64 = 200_000_000;
/// Most segments of a packet of 64 KiB, and most packets of a gap that are listed.
pub(crate) const MOST_MERGED: u64 = 128;
const MOST_LISTED: usize = 4_096;
/// Maximum length of the packet that a D-SACK reports.
const LONGEST: u64 = 1 << 16;

/// Fewest losses that show bursts, and their least mean length: independent losses of a tenth of the packets have a mean
/// of 1.1.
const LEAST_LOSSES: usize = 8;
const LEAST_BURST: f64 = 1.5;

impl LossEstimate {
    /// Mean length of the bursts in packets, if packets are lost in bursts.
    pub fn mean_burst(&self) -> Option<f64> {
        self.bursts().map(|(_, ends)| 1.0 / ends)
    }

    /// If packets are lost in bursts: the probabilities that one begins with a packet, and that it ends with one
    /// (those of a Gilbert channel). `None` of independent losses.
    pub(crate) fn bursts(&self) -> Option<(f64, f64)> {
        let lost = self.packets.len();
        let follow = |pair: &&[(u64, u64)]| pair[1].0 == pair[0].0 + 1;
        let bursts = lost - self.packets.windows(2).filter(follow).count();
        let mean = lost as f64 / bursts.max(1) as f64;
        if lost < LEAST_LOSSES || mean < LEAST_BURST {
            return None;
        }
        let others = self.sent.saturating_sub(lost as u64).max(1);
        Some((bursts as f64 / others as f64, 1.0 / mean))
    }

    /// Detects losses of direction `dir`, captured before the loss, in segments of `mss`.
    pub(crate) fn at_sender(packets: &[CapturedPacket], dir: Dir, mss: u64, rtt: u64) -> Self {
        let mut sent = 0;
        let mut times = Vec::new();
        let mut copies = SegmentRuns::new(mss);
        // Time of each lost packet, by first byte and number.
        let mut lost: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut stream = SequenceUnwrapper::default();
        let mut origin = StreamOrigin::default();
        for packet in packets {
            let segment = &packet.segment;
            origin.note(packet, dir, &mut stream);
            if segment.dir != dir {
                if let Some((left, right)) = duplicates(packet) {
                    let (left, right) = (stream.place(left), stream.place(right));
                    let left = left.max(right.saturating_sub(LONGEST)).min(right);
                    let known = lost.range((left, 0)..(right, 0)).map(|(key, _)| *key);
                    // The presumed lost copy had arrived.
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
            times.extend((0..segments.min(MOST_MERGED)).map(|_| packet.at.as_nanos()));
        }
        let starts = origin.offsets(lost.keys().map(|&(start, number)| (number, start)));
        let mut packets: Vec<_> = lost.into_iter().map(|((_, number), at)| (number, at)).collect();
        packets.sort_unstable();
        let times = if times.len() as u64 == sent { times } else { Vec::new() };
        Self { packets, sent, outages: Vec::new(), times, starts }.without_outages(rtt)
    }

    /// Detects losses of direction `dir`, captured after the loss; a hole that is filled within
    /// `late` ns counts as reordering. `timeouts` are the times of packets that a timer of the sender released.
    pub(crate) fn at_receiver(
        packets: &[CapturedPacket],
        dir: Dir,
        mss: u64,
        late: u64,
        timeouts: &[u64],
    ) -> Self {
        let mut sent = 0;
        let mut times = Vec::new();
        let mut next: Option<u64> = None;
        let mut holes = SegmentRuns::new(mss);
        let mut filled = Vec::new();
        let mut lost = Vec::new();
        let mut stream = SequenceUnwrapper::default();
        let (mut origin, mut starts) = (StreamOrigin::default(), Vec::new());
        let mut outages = Vec::new();
        // The last packet with data, whether it ended a write, and data of the peer since.
        let (mut then, mut is_pushed, mut is_asked) = (None::<u64>, true, false);
        // Identification of the last packet, and whether some were missing since the last data.
        let (mut id, mut is_missing) = (0_u16, false);
        for packet in packets {
            let segment = &packet.segment;
            origin.note(packet, dir, &mut stream);
            if segment.dir != dir {
                is_asked |= segment.payload > 0;
                continue;
            }
            // ACKs without data count, too.
            let missing = packet.id.wrapping_sub(id);
            is_missing |= packet.id != 0 && id != 0 && (2..MOST_MISSING).contains(&missing);
            id = packet.id;
            if segment.payload == 0 {
                continue;
            }
            let at = packet.at.as_nanos();
            let is_hole = next.is_some_and(|next| stream.place(segment.seq.0) > next);
            let is_lost =
                (!is_pushed && !is_asked) || is_missing || is_hole || timeouts.contains(&at);
            let silent = then.filter(|&then| is_lost && at - then > SILENT + 4 * late);
            is_missing = false;
            if let Some(then) = silent {
                // The last probe that was lost was sent before half of the time.
                outages.push((then + (late / 8).min(1_000_000), at - (at - then) / 4));
            }
            (then, is_pushed, is_asked) = (Some(at), segment.flags.has(Flags::PSH), false);
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
                times.extend((times.len() as u64..sent).take(MOST_LISTED).map(|_| at));
                continue;
            }
            filled.clear();
            holes.begun_in(start, end, &mut filled);
            holes.remove(start, end);
            for hole in filled.iter().filter(|hole| at.saturating_sub(hole.at) > late) {
                lost.push((hole.number, hole.at));
                starts.push((hole.number, hole.start));
                sent += 1;
                times.push(at);
            }
        }
        lost.sort_unstable();
        // A gap of more packets than a window holds has no times.
        let times = if times.len() as u64 == sent { times } else { Vec::new() };
        let starts = origin.offsets(starts.into_iter());
        let found = Self { packets: lost, sent, outages: Vec::new(), times, starts };
        let mut found = found.without_outages(4 * late);
        for silence in &outages {
            found.packets.retain(|lost| {
                !(silence.0..=silence.1 + (silence.1 - silence.0) / 2).contains(&lost.1)
            });
        }
        found.outages.extend(outages);
        found
    }

    /// The losses listed, of packets sent at `times`.
    pub(crate) fn listed(packets: Vec<(u64, u64)>, times: Vec<u64>, rtt: u64) -> Self {
        Self { packets, sent: times.len() as u64, times, ..Self::default() }.without_outages(rtt)
    }

    /// With times since `origin`, in ns.
    pub(crate) fn since(mut self, origin: u64) -> Self {
        let since = |at: &mut u64| *at = at.saturating_sub(origin);
        self.packets.iter_mut().for_each(|packet| since(&mut packet.1));
        self.times.iter_mut().for_each(since);
        for span in &mut self.outages {
            since(&mut span.0);
            since(&mut span.1);
        }
        self
    }

    /// Moves long runs of losses to the list of outages.
    fn without_outages(mut self, rtt: u64) -> Self {
        let mut kept = Vec::new();
        for run in self.packets.chunk_by(|before, after| after.0 == before.0 + 1) {
            let (first, last) = (run[0].1, run[run.len() - 1].1);
            if run.len() >= OUTAGE && last - first >= 2 * rtt {
                // It began between the last packet that passed and the first that did not, and ended alike.
                let at = |number: u64| self.times.get(usize::try_from(number).ok()?).copied();
                let before = run[0].0.checked_sub(2).and_then(at).unwrap_or(first);
                let after = at(run[run.len() - 1].0).unwrap_or(last);
                self.outages.push((
                    first - (first - before.min(first)) / 2,
                    last + (after.max(last) - last) / 2,
                ));
            } else {
                kept.extend_from_slice(run);
            }
        }
        self.packets = kept;
        self
    }

    /// Returns the loss rate, without outages.
    pub fn rate(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.packets.len() as f64 / self.sent as f64 }
    }
}

/// Where the stream of a direction begins: after its SYN, or with the first byte that was captured.
#[derive(Debug, Clone, Copy, Default)]
struct StreamOrigin {
    after_syn: Option<u64>,
    first: Option<u64>,
}

impl StreamOrigin {
    fn note(&mut self, packet: &CapturedPacket, dir: Dir, stream: &mut SequenceUnwrapper) {
        let segment = &packet.segment;
        if segment.dir != dir {
            return;
        }
        if segment.flags.has(Flags::SYN) {
            self.after_syn = Some(stream.place(segment.seq.0.wrapping_add(1)));
        } else if segment.payload > 0 {
            let place = stream.place(segment.seq.0);
            self.first = Some(self.first.map_or(place, |first| first.min(place)));
        }
    }

    /// The offsets of bytes, each with the number of its packet.
    fn offsets(self, places: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
        let Some(origin) = self.after_syn.or(self.first) else { return Vec::new() };
        let mut found: Vec<_> = places
            .filter_map(|(number, place)| Some((place.checked_sub(origin)?, number)))
            .collect();
        found.sort_unstable();
        found
    }
}

/// Returns the D-SACK block of an ACK (RFC 2883 section 4): a first block below the acknowledgment
/// or within the second.
fn duplicates(packet: &CapturedPacket) -> Option<(u32, u32)> {
    let segment = &packet.segment;
    let (first, rest) = segment.sack_blocks().split_first()?;
    let below = segment.acknowledgment()?.0.wrapping_sub(first.right.0) < 1 << 31;
    let within = rest.first().is_some_and(|second| {
        first.left.0.wrapping_sub(second.left.0) < 1 << 31
            && second.right.0.wrapping_sub(first.right.0) < 1 << 31
    });
    (below || within).then_some((first.left.0, first.right.0))
}

/// Converts sequence numbers to 64-bit stream offsets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SequenceUnwrapper {
    last: Option<u64>,
}

impl SequenceUnwrapper {
    pub(crate) fn place(&mut self, seq: u32) -> u64 {
        // The first offset leaves room for earlier data.
        let near = *self.last.get_or_insert((1 << 32) + u64::from(seq));
        let ahead = seq.wrapping_sub(near as u32) as i32;
        let place = near.wrapping_add_signed(i64::from(ahead));
        self.last = Some(near.max(place));
        place
    }
}

/// Packets lost while the queue was nearly as long as it ever was.
pub(crate) fn lost_of_full_queue(flow: &FlowAnalysis, base: Duration, queue: Duration) -> u64 {
    let is_full = |episode: &&RecoveryEpisode| {
        episode.rtt.saturating_sub(base) * 5 >= queue * 3
            && queue * 8 >= base
            && episode.trigger != RecoveryTrigger::Probe
    };
    let lost = |episode: &RecoveryEpisode| {
        episode.retransmitted - episode.spurious.min(episode.retransmitted)
    };
    flow.episodes.iter().filter(is_full).map(lost).sum()
}

#[cfg(test)]
mod tests {
    use packet::{Flags, Options, SackBlock, SackBlocks, Segment};
    use units::{Instant, SeqNum};

    use super::*;

    fn data(millis: u64, seq: u32) -> CapturedPacket {
        let segment = Segment { seq: SeqNum(seq), payload: 1_000, ..Segment::default() };
        CapturedPacket {
            at: Instant::from_nanos(millis * 1_000_000),
            frame: 1,
            segment,
            captured: 0,
            id: 0,
            ttl: 0,
            options_cut: false,
        }
    }

    #[test]
    fn a_retransmission_implies_a_loss_unless_a_dsack_follows() {
        let mut packets = vec![data(0, 0), data(0, 1_000), data(0, 2_000), data(50, 1_000)];
        let losses = LossEstimate::at_sender(&packets, Dir::Forward, 1_000, 40_000_000);
        assert_eq!(losses.packets, [(2, 0)]);
        assert_eq!(losses.sent, 4);
        let mut blocks = SackBlocks::EMPTY;
        assert!(blocks.push(SackBlock { left: SeqNum(1_000), right: SeqNum(2_000) }));
        let mut dsack = data(90, 0);
        dsack.segment.dir = Dir::Reverse;
        (dsack.segment.flags, dsack.segment.ack) = (Flags::ACK, SeqNum(3_000));
        dsack.segment.payload = 0;
        dsack.segment.options = Options::Sack(blocks);
        packets.push(dsack);
        let losses = LossEstimate::at_sender(&packets, Dir::Forward, 1_000, 40_000_000);
        assert_eq!(losses.packets, []);
    }

    #[test]
    fn at_the_receiver_a_hole_that_fills_late_was_a_loss() {
        let packets = [data(0, 0), data(0, 2_000), data(1, 4_000), data(1, 3_000), data(50, 1_000)];
        let losses = LossEstimate::at_receiver(&packets, Dir::Forward, 1_000, 10_000_000, &[]);
        assert_eq!(losses.packets, [(2, 0)]);
    }

    /// A host that answers once a second acknowledges requests in between: its identifications have no gap, and the
    /// silence is no outage.
    #[test]
    fn acks_between_answers_are_no_missing_packets() {
        let mut packets = Vec::new();
        for n in 0..3 {
            let mut request = data(u64::from(n) * 1_000, n * 1_000);
            request.segment.dir = Dir::Reverse;
            let mut ack = data(u64::from(n) * 1_000 + 20, n * 1_000);
            (ack.segment.payload, ack.id) = (0, 10 + n as u16 * 2);
            let mut answer = data(u64::from(n) * 1_000 + 40, n * 1_000);
            (answer.id, answer.segment.flags) = (11 + n as u16 * 2, Flags::PSH | Flags::ACK);
            packets.extend([request, ack, answer]);
        }
        let of = |packets: &[CapturedPacket]| {
            LossEstimate::at_receiver(packets, Dir::Forward, 1_000, 10_000_000, &[]).outages
        };
        assert_eq!(of(&packets), []);
        // Without the ACKs, packets are missing where it was silent.
        packets.retain(|packet| packet.segment.payload > 0);
        assert_eq!(of(&packets).len(), 2);
    }

    /// Sequence numbers that jump by 2 GB: a hole is one entry, not one per segment.
    #[test]
    fn a_gap_of_gigabytes_takes_one_entry() {
        let jump = 0x7fff_0000_u32;
        let packets: Vec<CapturedPacket> =
            (0..40).map(|n| data(u64::from(n), jump.wrapping_mul(n))).collect();
        let losses = LossEstimate::at_receiver(&packets, Dir::Forward, 1_000, 10_000_000, &[]);
        assert_eq!(losses.packets, []);
        let gap = (u64::from(jump) - 1_000).div_ceil(1_000);
        assert_eq!(losses.sent, 40 + 39 * gap);
        // A packet in the last gap, too late for reordering.
        let mut packets = packets;
        packets.push(data(500, jump.wrapping_mul(39) - 5_000));
        let losses = LossEstimate::at_receiver(&packets, Dir::Forward, 1_000, 10_000_000, &[]);
        assert_eq!(losses.packets, [(39 + 39 * gap - 4, 39_000_000)]);
    }

    #[test]
    fn runs_are_the_same_as_a_list_of_segments() {
        let mut runs = SegmentRuns::new(10);
        runs.put(100, 135, 1, 7);
        assert_eq!(runs.at(99), None);
        assert_eq!(runs.at(134), Some(SentCopy { start: 130, number: 4, at: 7 }));
        // Within the second segment: its start remains, as does the end of the third.
        runs.put(115, 125, 9, 8);
        assert_eq!(runs.at(114), Some(SentCopy { start: 110, number: 2, at: 7 }));
        assert_eq!(runs.at(115), Some(SentCopy { start: 115, number: 9, at: 8 }));
        assert_eq!(runs.at(125), Some(SentCopy { start: 120, number: 3, at: 7 }));
        let mut found = Vec::new();
        runs.begun_in(105, 131, &mut found);
        assert_eq!(found.iter().map(|one| one.number).collect::<Vec<_>>(), [2, 9, 4]);
        runs.remove(0, 1_000);
        assert!(runs.list.is_empty());
    }

    #[test]
    fn a_long_run_of_losses_is_an_outage() {
        let mut packets: Vec<CapturedPacket> =
            (0..10).map(|n| data(u64::from(n) * 20, n * 1_000)).collect();
        packets.extend((2..9).map(|n| data(400 + u64::from(n), n * 1_000)));
        let losses = LossEstimate::at_sender(&packets, Dir::Forward, 1_000, 40_000_000);
        // Between the packets that passed before and after it.
        assert_eq!(losses.outages, [(30_000_000, 170_000_000)]);
        assert_eq!(losses.packets, []);
    }
}
