//! The send map: the outstanding packets of stacks with time-based loss detection.
//!
//! Sources: tcp_stacks/rack.c (the send map and its list by time), tcp_input.c of Linux
//! (tcp_sacktag_write_queue, tcp_clean_rtx_queue, the `*_out` counters), RFC 8985 section 5.
//!
//! One record per packet, in sequence order: appended when data is sent, removed as `snd_una`
//! moves. Costs, amortised over the packets sent:
//! - a packet sent and acknowledged without loss: a push and a pop;
//! - SACK blocks: constant per packet newly SACKed and a binary search per block, since SACKed runs
//!   are skipped ([`SendMap::apply_sack`]);
//! - the oldest packet in flight by send time, and the next one to retransmit: constant. Packets
//!   sent once are in time order, so a cursor is enough; retransmitted ones are in a queue.
//!
//! Linear in the map are only operations once per timeout or revert ([`SendMap::mark_all_lost`],
//! [`SendMap::unmark_lost`], [`SendMap::clear_sacked`]) and splitting a packet
//! ([`SendMap::retransmit`] with a smaller segment size). A block that covers a packet in part does
//! not SACK it (tcp_match_skb_to_sack).

mod losses;
mod sack;
mod segment;
mod tx_order;

use core::hint::cold_path;
use std::collections::VecDeque;

use units::{Instant, Offset};

pub use segment::{DeliveredRun, SegmentCount, SendMapCounters, SentSegment, TxStamp};

use crate::dsack::SackRange;
use crate::lazy::{InitialValue, LazyBox};
use crate::ranges::RangeSet;
use segment::{COUNTED_FLAGS, PUSH};
use tx_order::{RetransmitOrder, TxTime};

/// The outstanding packets of one connection.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct SendMap {
    /// In sequence order, without gaps.
    segments: VecDeque<SentSegment>,
    /// Id of the first segment, counted from the creation of the map. Cursors are such ids.
    base: u64,
    /// Counters of all outstanding segments.
    all: SegmentCount,
    /// State of SACKs and losses; allocated lazily, since most of the time there are none.
    losses: LazyBox<LossState>,
    /// Segments marked lost are listed for the controller.
    lists_lost: bool,
}

/// SACKed, lost and retransmitted segments, with the cursors of the searches.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
struct LossState {
    /// The counters, except that of all segments.
    sums: SendMapCounters,
    /// Runs of SACKed segments.
    sacked: RangeSet,
    /// The most recent SACK blocks; repeating them has no effect.
    last_blocks: [SackRange; 4],
    /// Retransmitted segments, in time order.
    retransmit_order: RetransmitOrder,
    /// No segment before this one is in flight after a single transmission.
    first_tx_cursor: u64,
    /// All segments sent before this have been passed, that is all segments before `passed_cursor`
    /// that were sent once.
    passed_until: TxTime,
    passed_cursor: u64,
    /// No segment before this one was sent once, has been passed and has not expired.
    expired_cursor: u64,
    /// No segment before this one was lost after its first transmission and needs retransmission.
    lost_cursor: u64,
    /// Number of segments lost after their first transmission that need retransmission.
    first_tx_lost: u64,
    /// Number of times a segment was marked lost (`tp->lost`).
    lost_ever: u64,
    /// Ends of segments lost after a later transmission, in sequence order.
    relost: VecDeque<Offset>,
    /// Ends of the segments marked lost since they were last asked for, where they are listed.
    marked: Vec<Offset>,
}

/// No blocks, since no block is empty.
const NO_BLOCKS: [SackRange; 4] = [(Offset(0), Offset(0)); 4];

/// The state before any SACK, loss or retransmission.
static NO_LOSSES: LossState = LossState {
    sums: SendMapCounters::NONE,
    sacked: RangeSet::new(),
    last_blocks: NO_BLOCKS,
    retransmit_order: RetransmitOrder::new(),
    first_tx_cursor: 0,
    passed_until: (Instant::ZERO, Offset(0)),
    passed_cursor: 0,
    expired_cursor: 0,
    lost_cursor: 0,
    first_tx_lost: 0,
    lost_ever: 0,
    relost: VecDeque::new(),
    marked: Vec::new(),
};

impl InitialValue for LossState {
    fn initial() -> &'static Self {
        &NO_LOSSES
    }
}

/// The result of a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetransmitResult {
    /// Packets and bytes retransmitted.
    pub count: SegmentCount,
    /// Retransmitted bytes that had been passed (`recovery_rxt_cnt` of D53832).
    pub passed_bytes: u64,
}

impl SendMap {
    /// An empty map.
    pub fn new() -> Self {
        Self {
            segments: VecDeque::new(),
            base: 0,
            all: SegmentCount::default(),
            losses: LazyBox::default(),
            lists_lost: false,
        }
    }

    /// The counters of all segments.
    #[inline(always)]
    pub fn sums(&self) -> SendMapCounters {
        SendMapCounters { all: self.all, ..self.losses.sums }
    }

    /// Adds a segment to the counters.
    #[inline(always)]
    fn count(&mut self, flags: u16, bytes: u64) {
        self.all.add(bytes);
        if flags & COUNTED_FLAGS != 0 {
            self.losses.sums.count(flags, bytes);
        }
    }

    /// Subtracts a segment from the counters.
    #[inline(always)]
    fn discount(&mut self, flags: u16, bytes: u64) {
        self.all.take(bytes);
        if flags & COUNTED_FLAGS != 0 {
            self.losses.sums.discount(flags, bytes);
        }
    }

    /// True if nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Number of times a segment was marked lost, retransmissions included (`tp->lost` of Linux).
    pub fn lost_ever(&self) -> u64 {
        self.losses.lost_ever
    }

    /// Lists the segments that are marked lost from now on.
    pub const fn list_lost(&mut self) {
        self.lists_lost = true;
    }

    /// Ends of the segments marked lost since the last call, in the order in which they were marked.
    pub fn take_marked(&mut self) -> Vec<Offset> {
        if self.lists_lost && self.losses.is_allocated() && !self.losses.marked.is_empty() {
            core::mem::take(&mut self.losses.marked)
        } else {
            Vec::new()
        }
    }

    /// True if anything was ever SACKed, lost or retransmitted.
    #[inline(always)]
    pub const fn knows_losses(&self) -> bool {
        self.losses.is_allocated()
    }

    /// True if anything is lost, retransmitted or not.
    #[inline(always)]
    pub fn any_lost(&self) -> bool {
        self.losses.is_allocated() && self.losses.sums.lost.packets > 0
    }

    /// True if every segment was sent once and none is SACKed or lost.
    #[inline]
    pub fn all_in_order(&self) -> bool {
        if !self.losses.is_allocated() {
            return true;
        }
        let sums = &self.losses.sums;
        let marked = sums.sacked.packets | sums.lost.packets | sums.retransmission.packets;
        let waiting = self.losses.retransmit_order.len() | self.losses.relost.len();
        marked | sums.holes_rxt_bytes | waiting as u64 == 0
    }

    /// The segments, in sequence order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &SentSegment> {
        self.segments.iter()
    }

    /// The first segment.
    pub fn first(&self) -> Option<&SentSegment> {
        self.segments.front()
    }

    /// The segment highest in the stream.
    pub fn last(&self) -> Option<&SentSegment> {
        self.segments.back()
    }

    /// The segment that contains a byte.
    pub fn get(&self, place: Offset) -> Option<&SentSegment> {
        self.segments.get(self.index_of(place)?)
    }

    /// The byte following the highest SACKed byte.
    pub fn highest_sacked(&self) -> Option<Offset> {
        self.losses.sacked.end()
    }

    /// Number of runs of SACKed segments.
    pub fn sacked_runs(&self) -> usize {
        self.losses.sacked.len()
    }

    /// Appends the packet `[start, end)`, sent for the first time; it follows the one before.
    ///
    /// # Panics
    ///
    /// In debug builds, if it does not follow or is longer than a packet can be.
    #[inline]
    pub fn push(&mut self, start: Offset, end: Offset, now: Instant) {
        debug_assert!(self.segments.back().is_none_or(|last| last.end() == start));
        debug_assert!(start < end && end - start <= u64::from(u32::MAX));
        let len = end.since(start).get() as u32;
        if self.segments.len() == self.segments.capacity() {
            self.grow();
        }
        self.segments.push_back(SentSegment {
            start,
            sent_at: now,
            len,
            transmissions: 1,
            retransmissions: 0,
            flags: 0,
        });
        self.all.add(u64::from(len));
    }

    /// Reserves capacity: doubles it while small, then grows by an eighth, for a flight may be very
    /// long.
    #[cold]
    fn grow(&mut self) {
        let len = self.segments.len();
        self.segments.reserve_exact(len.clamp(2, 32).max(len / 8));
    }

    /// Marks the last segment pushed: it carries PSH in every transmission.
    #[inline]
    pub fn set_push(&mut self) {
        if let Some(last) = self.segments.back_mut() {
            last.flags |= PUSH;
        }
    }

    /// All data before `una` was acknowledged: calls `see` for each segment entirely below, with
    /// its state before, and removes it; shortens a segment partly below.
    #[inline]
    pub fn acknowledge(&mut self, una: Offset, mut see: impl FnMut(&SentSegment)) {
        while let Some(segment) = self.segments.front() {
            let bytes = segment.len();
            if segment.end() > una {
                break;
            }
            see(segment);
            if segment.flags & !PUSH == 0 && segment.retransmissions == 0 {
                self.all.take(bytes);
            } else {
                let segment = *segment;
                self.remove_flagged(&segment);
            }
            self.base += 1;
            self.segments.pop_front();
        }
        if let Some(segment) = self.segments.front_mut()
            && segment.start < una
        {
            cold_path();
            let (cut, before) = (una - segment.start, *segment);
            segment.len -= cut as u32;
            segment.start = una;
            let left = segment.len();
            self.clear_last_blocks();
            self.discount(before.flags, before.len());
            self.count(before.flags, left);
            if before.retransmissions > 0 {
                self.losses.sums.holes_rxt_bytes -= u64::from(before.retransmissions) * cut;
            }
        }
        if !self.losses.sacked.is_empty() {
            self.losses.sacked.advance(una);
        }
        if !self.losses.retransmit_order.is_empty() || !self.losses.relost.is_empty() {
            self.losses.retransmit_order.acknowledge(una, self.segments.is_empty());
            while self.losses.relost.front().is_some_and(|&end| end <= una) {
                self.losses.relost.pop_front();
            }
        }
    }

    /// Updates counters for an acknowledged segment that was SACKed, lost or retransmitted.
    fn remove_flagged(&mut self, segment: &SentSegment) {
        self.discount(segment.flags, segment.len());
        self.losses.sums.holes_rxt_bytes -= u64::from(segment.retransmissions) * segment.len();
        self.losses.first_tx_lost -= u64::from(segment.first_tx_lost());
    }

    /// Like [`SendMap::acknowledge`] if nothing is missing ([`SendMap::all_in_order`]): returns
    /// the run of segments removed, if any.
    #[inline(always)]
    pub fn acknowledge_in_order(&mut self, una: Offset) -> Option<DeliveredRun> {
        let departure =
            |segment: &SentSegment| TxStamp { sent_at: segment.sent_at, end: segment.end() };
        let first = departure(self.segments.front()?);
        let mut row = DeliveredRun { packets: 0, first, last: first };
        let mut bytes = 0;
        while let Some(segment) = self.segments.front() {
            let departed = departure(segment);
            if departed.end > una {
                // Partly acknowledged at most.
                let cut = una.since(segment.start).get();
                if cut > 0 {
                    self.shorten_first(una, cut);
                }
                break;
            }
            bytes += segment.len();
            row.packets += 1;
            row.last = departed;
            self.segments.pop_front();
        }
        self.base += row.packets;
        self.all.packets -= row.packets;
        self.all.bytes -= bytes;
        (row.packets > 0).then_some(row)
    }

    #[cold]
    fn shorten_first(&mut self, una: Offset, cut: u64) {
        if let Some(segment) = self.segments.front_mut() {
            self.all.bytes -= cut;
            segment.len -= cut as u32;
            segment.start = una;
            self.clear_last_blocks();
        }
    }

    /// Segment boundaries changed: a block that covered a segment partly may cover it entirely now.
    fn clear_last_blocks(&mut self) {
        if self.losses.is_allocated() {
            self.losses.last_blocks = NO_BLOCKS;
        }
    }

    /// Splits the segment at index `at` at offset `place`, which is within it.
    fn split_segment(&mut self, at: usize, place: Offset) {
        let segment = &mut self.segments[at];
        let (whole, mut upper) = (*segment, *segment);
        segment.len = (place - segment.start) as u32;
        segment.flags &= !PUSH;
        upper.start = place;
        upper.len -= segment.len;
        let lower = *segment;
        self.discount(whole.flags, whole.len());
        self.count(lower.flags, lower.len());
        self.count(upper.flags, upper.len());
        self.segments.insert(at + 1, upper);
        self.clear_last_blocks();
        let id = self.base + at as u64;
        let losses = &mut *self.losses;
        let LossState { first_tx_cursor, passed_cursor, expired_cursor, lost_cursor, .. } = losses;
        for cursor in [first_tx_cursor, passed_cursor, expired_cursor, lost_cursor] {
            *cursor += u64::from(*cursor > id);
        }
        if lower.first_tx_lost() {
            self.losses.first_tx_lost += 1;
        } else if lower.waits() {
            self.add_relost(lower.end());
        }
        self.losses.retransmit_order.split(&lower, upper.end());
    }

    /// Makes the segments from `start` to `end` one, as far as each was sent once and none is SACKed; it keeps the state
    /// of the first (tcp_retrans_try_collapse).
    pub fn collapse(&mut self, start: Offset, end: Offset) {
        let Some(at) = self.index_of(start) else { return };
        let unsacked = |segment: &SentSegment| segment.transmissions == 1 && !segment.sacked();
        while let Some(next) = self.segments.get(at + 1).filter(|next| next.end() <= end)
            && unsacked(&self.segments[at])
            && unsacked(next)
        {
            self.merge_with_next(at);
            if self.losses.is_allocated() && self.losses.sacked.is_empty() {
                // Without SACK one less can have arrived (tcp_adjust_pcount).
                let arrived = &mut self.losses.sums.sacked.packets;
                *arrived = arrived.saturating_sub(1);
            }
        }
    }

    /// Makes the segment at index `at` and the next one a single one, which keeps the state of the first.
    fn merge_with_next(&mut self, at: usize) {
        let (first, next) = (self.segments[at], self.segments[at + 1]);
        self.discount(first.flags, first.len());
        self.discount(next.flags, next.len());
        let merged = SentSegment {
            len: first.len + next.len,
            flags: first.flags | (next.flags & PUSH),
            ..first
        };
        self.count(merged.flags, merged.len());
        self.segments[at] = merged;
        self.segments.remove(at + 1);
        if !self.losses.is_allocated() {
            return;
        }
        self.clear_last_blocks();
        let id = self.base + at as u64;
        let losses = &mut *self.losses;
        losses.first_tx_lost -= u64::from(next.first_tx_lost());
        if first.waits() && first.transmissions > 1 {
            losses.relost.retain(|&lost| lost != first.end());
        }
        let LossState { first_tx_cursor, passed_cursor, expired_cursor, lost_cursor, .. } = losses;
        for cursor in [first_tx_cursor, passed_cursor, expired_cursor, lost_cursor] {
            *cursor -= u64::from(*cursor > id + 1);
        }
    }

    /// Cuts the bytes from `start` to `end`, one packet of several segments, into segments of `mss` bytes
    /// (tcp_set_skb_tso_segs). Segments that are SACKed or retransmitted and in flight keep their ends.
    pub fn resegment(&mut self, start: Offset, end: Offset, mss: u64) {
        let Some(mut at) = self.index_of(start) else { return };
        let alike = |one: &SentSegment, other: &SentSegment| {
            (one.transmissions == 1 || one.waits())
                && !one.sacked()
                && one.transmissions == other.transmissions
                && one.flags & !PUSH == other.flags & !PUSH
        };
        while let Some(&segment) = self.segments.get(at).filter(|segment| segment.start < end) {
            let next = self.segments.get(at + 1).filter(|next| next.end() <= end);
            if segment.len() > mss {
                self.split_segment(at, segment.start + mss);
            } else if segment.len() < mss && next.is_some_and(|next| alike(&segment, next)) {
                self.merge_with_next(at);
                continue;
            }
            at += 1;
        }
    }

    /// Index of the segment that contains a byte. Packets have similar lengths, so the guess is
    /// close.
    fn index_of(&self, place: Offset) -> Option<usize> {
        let (first, last) = (self.segments.front()?, self.segments.back()?);
        if place < first.start || place >= last.end() {
            return None;
        }
        let longest = u64::from(first.len.max(1));
        let guess = ((place - first.start) / longest).min(self.segments.len() as u64 - 1) as usize;
        for at in [guess, guess + 1] {
            let segment = self.segments.get(at).filter(|segment| segment.start <= place);
            if segment.is_some_and(|segment| place < segment.end()) {
                return Some(at);
            }
        }
        Some(self.segments.partition_point(|segment| segment.end() <= place))
    }

    /// Index of the segment that ends at `end`.
    fn index_of_end(&self, end: Offset) -> Option<usize> {
        let at = self.index_of(Offset(end.0.checked_sub(1)?))?;
        (self.segments[at].end() == end).then_some(at)
    }

    /// Index of the segment with this id in the queue.
    fn index(&self, id: u64) -> Option<usize> {
        let at = usize::try_from(id.checked_sub(self.base)?).ok()?;
        (at < self.segments.len()).then_some(at)
    }
}

impl Default for SendMap {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
