//! SACK processing of the send map (RFC 2018).

use core::hint::cold_path;

use units::{Instant, Offset};

use super::segment::{
    COUNTED_FLAGS, EXPIRED, LOST, PASSED, RETRANS, SACKED, SegmentCount, SentSegment, UNLISTED,
    WAS_PASSED,
};
use super::{NO_BLOCKS, SendMap};
use crate::dsack::SackRange;

impl SendMap {
    /// Processes SACK blocks: calls `see` for each newly covered segment, with its state before, in
    /// sequence order within a block, and marks it. Returns the newly SACKed segments. Ignores
    /// blocks below `snd_una` or beyond the data sent.
    #[inline]
    pub fn apply_sack(
        &mut self,
        blocks: &[SackRange],
        see: impl FnMut(&SentSegment),
    ) -> SegmentCount {
        if blocks.is_empty() { SegmentCount::default() } else { self.apply_blocks(blocks, see) }
    }

    fn apply_blocks(
        &mut self,
        blocks: &[SackRange],
        mut see: impl FnMut(&SentSegment),
    ) -> SegmentCount {
        let before = self.losses.sums.sacked;
        let (Some(first), Some(last)) = (self.segments.front(), self.segments.back()) else {
            return SegmentCount::default();
        };
        let (una, max) = (first.start, last.end());
        let mut last_blocks = NO_BLOCKS;
        for (nth, &block) in blocks.iter().enumerate() {
            let (start, end) = block;
            if start < end && end > una && end <= max {
                // Of three or four blocks one is new (RFC 2018 section 4).
                if !self.losses.last_blocks.contains(&block) {
                    self.apply_block(start.max(una), end, &mut see);
                }
                if let Some(last_blocks) = last_blocks.get_mut(nth) {
                    *last_blocks = block;
                }
            }
        }
        self.losses.last_blocks = last_blocks;
        SegmentCount {
            packets: self.losses.sums.sacked.packets - before.packets,
            bytes: self.losses.sums.sacked.bytes - before.bytes,
        }
    }

    /// Processes the gaps between runs already SACKed.
    fn apply_block(&mut self, start: Offset, end: Offset, see: &mut impl FnMut(&SentSegment)) {
        let mut at = self.losses.sacked.first_ending_after(start);
        let mut place = start;
        while place < end {
            let run = self.losses.sacked.get(at);
            if let Some((from, to)) = run
                && from <= place
            {
                place = place.max(to);
                at += 1;
                continue;
            }
            let gap_end = run.map_or(end, |(from, _)| from.min(end));
            if let Some((from, to)) = self.report(place, gap_end, see) {
                at = self.losses.sacked.fill(at, from, to);
            }
            place = gap_end;
        }
    }

    /// Marks the segments entirely within `[start, end)`, none of them SACKed; returns their range.
    fn report(
        &mut self,
        start: Offset,
        end: Offset,
        see: &mut impl FnMut(&SentSegment),
    ) -> Option<SackRange> {
        let mut at = self.index_of(start)?;
        if self.segments[at].start < start {
            at += 1;
        }
        let from = self.segments.get(at)?.start;
        let mut to = from;
        while let Some(segment) = self.segments.get_mut(at).filter(|segment| segment.end() <= end) {
            see(segment);
            let bytes = segment.len();
            let losses = &mut *self.losses;
            if segment.flags & COUNTED_FLAGS != 0 {
                cold_path();
                losses.first_tx_lost -= u64::from(segment.first_tx_lost());
                losses.sums.discount(segment.flags, bytes);
                segment.flags &= !(LOST | RETRANS | EXPIRED);
            }
            segment.flags = segment.flags & !UNLISTED | SACKED;
            losses.sums.sacked.add(bytes);
            to = segment.end();
            at += 1;
        }
        (from < to).then_some((from, to))
    }

    /// The highest segment below `edge` that is not SACKed, as far as it is below.
    pub fn highest_unsacked(&self, edge: Offset) -> Option<SackRange> {
        let mut below = edge;
        while let Some(segment) = self.get(Offset(below.0.checked_sub(1)?)) {
            if !segment.sacked() {
                return Some((segment.start(), segment.end().min(edge)));
            }
            let run = self.losses.sacked.start_of_range_before(segment.end());
            below = run.unwrap_or(segment.start()).min(segment.start());
        }
        None
    }

    /// True if the receiver reneged: the first unacknowledged byte was SACKed
    /// (tcp_check_sack_reneging; RFC 2018 section 8).
    pub fn reneged(&self) -> bool {
        self.segments.front().is_some_and(SentSegment::sacked)
    }

    /// Clears SACKs and passed marks, as after a timeout (rack_remxt_tmr).
    pub fn clear_sack_state(&mut self) {
        let losses = &mut *self.losses;
        losses.passed_until = (Instant::ZERO, Offset(0));
        for segment in &mut self.segments {
            if segment.flags & EXPIRED != 0 {
                losses.sums.expired.take(segment.len());
            }
            segment.flags &= !(PASSED | WAS_PASSED | EXPIRED);
        }
        losses.passed_cursor = self.base;
        losses.retransmit_order.restart();
        self.clear_sacked();
    }

    /// Clears all SACKs.
    pub fn clear_sacked(&mut self) {
        let losses = &mut *self.losses;
        for segment in &mut self.segments {
            if segment.sacked() && segment.transmissions > 1 {
                losses.retransmit_order.reinsert(segment, losses.passed_until);
            }
            segment.flags &= !SACKED;
        }
        self.losses.sums.sacked = SegmentCount::default();
        self.losses.sacked.clear();
        self.losses.last_blocks = NO_BLOCKS;
        self.losses.first_tx_cursor = self.base;
        self.losses.expired_cursor = self.base;
    }
}
