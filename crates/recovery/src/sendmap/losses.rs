//! Marking losses, retransmitting and undoing.

use units::{Instant, Offset};

use super::segment::{
    EXPIRED, LOST, PASSED, PROBE, RETRANS, SegmentCount, SentSegment, UNLISTED, WAS_PASSED,
};
use super::{RetransmitResult, SendMap};

impl SendMap {
    /// `[start, end)` was retransmitted at `now`, as a tail loss probe or not. Splits segments that
    /// are partly covered; SACKed ones only get a new send time.
    pub fn retransmit(
        &mut self,
        start: Offset,
        end: Offset,
        now: Instant,
        probe: bool,
    ) -> RetransmitResult {
        let mut retransmission = RetransmitResult::default();
        let Some(mut at) = self.index_of(start) else { return retransmission };
        let tied =
            self.segments.back().filter(|last| last.transmissions == 1 && last.sent_at == now);
        let after = tied.map_or(Offset(0), SentSegment::end);
        if self.segments[at].start < start {
            self.split_segment(at, start);
            at += 1;
        }
        while self.segments.get(at).is_some_and(|segment| segment.start < end) {
            if self.segments[at].end() > end {
                self.split_segment(at, end);
            }
            let segment = &mut self.segments[at];
            self.losses.first_tx_lost -= u64::from(segment.first_tx_lost());
            segment.transmissions = segment.transmissions.saturating_add(1);
            segment.sent_at = now;
            retransmission.count.add(segment.len());
            let passed = segment.passed();
            if segment.flags & EXPIRED != 0 {
                self.losses.sums.expired.take(segment.len());
            }
            segment.flags &= !(PASSED | PROBE | EXPIRED | UNLISTED);
            if !probe && segment.retransmissions < u8::MAX {
                segment.retransmissions += 1;
                self.losses.sums.holes_rxt_bytes += segment.len();
            }
            if !segment.sacked() {
                if !segment.retrans_in_flight() {
                    self.losses.sums.retransmission.add(segment.len());
                }
                segment.flags |= RETRANS;
                if passed {
                    retransmission.passed_bytes += segment.len();
                    segment.flags |= WAS_PASSED;
                }
                if probe {
                    segment.flags |= PROBE;
                }
                let end = segment.end();
                self.losses.retransmit_order.push(end, now, after);
            }
            at += 1;
        }
        retransmission
    }

    /// Marks the segment that contains `place` lost, to be retransmitted. Returns false if it was
    /// SACKed, or needs retransmission already.
    pub fn lose(&mut self, place: Offset) -> bool {
        let Some(at) = self.index_of(place) else { return false };
        let flight_bytes = self.segments[at].in_flight();
        if flight_bytes {
            self.mark_lost_at(at);
        }
        flight_bytes
    }

    /// [`SendMap::lose`] for each segment from `start` to `end`.
    pub fn lose_from(&mut self, start: Offset, end: Offset) {
        let mut at = start;
        while at < end
            && let Some(segment) = self.get(at)
        {
            let next = segment.end();
            self.lose(at);
            at = next;
        }
    }

    /// Counts as many packets as SACKed, of `mss` bytes, although it is not known which: without
    /// SACK, duplicate acknowledgments count as packets that have arrived (tcp_add_reno_sack).
    pub fn set_reno_sacked(&mut self, packets: u64, mss: u64) {
        if packets > 0 || self.knows_losses() {
            let bytes = (packets * mss).min(self.all.bytes);
            self.losses.sums.sacked = SegmentCount { packets, bytes };
        }
    }

    /// Marks all segments lost that are not SACKed, retransmitted ones included (tcp_enter_loss).
    pub fn mark_all_lost(&mut self) {
        for at in 0..self.segments.len() {
            if self.segments[at].in_flight() {
                self.mark_lost_at(at);
            }
        }
    }

    pub(super) fn mark_lost_at(&mut self, at: usize) {
        self.losses.lost_ever += 1;
        if self.lists_lost {
            let end = self.segments[at].end();
            self.losses.marked.push(end);
        }
        let segment = &mut self.segments[at];
        let bytes = segment.len();
        if segment.retrans_in_flight() {
            self.losses.sums.retransmission.take(bytes);
        }
        if segment.flags & EXPIRED != 0 {
            self.losses.sums.expired.take(bytes);
        }
        if !segment.lost() {
            self.losses.sums.lost.add(bytes);
        }
        segment.flags = segment.flags & !(RETRANS | EXPIRED) | LOST;
        if segment.transmissions == 1 {
            self.losses.first_tx_lost += 1;
            self.losses.lost_cursor = self.losses.lost_cursor.min(self.base + at as u64);
        } else {
            let end = segment.end();
            self.add_relost(end);
        }
    }

    pub(super) fn add_relost(&mut self, end: Offset) {
        let before = self.losses.relost.partition_point(|&other| other < end);
        if self.losses.relost.get(before) != Some(&end) {
            self.losses.relost.insert(before, end);
        }
    }

    /// Clears all loss marks: segments awaiting retransmission count as in flight
    /// (tcp_undo_cwnd_reduction). Unless `relists`, those detected by their transmission time are not detected again
    /// before they are retransmitted, as in Linux (tcp_rack_detect_loss has taken them from `tsorted_sent_queue`).
    pub fn unmark_lost(&mut self, relists: bool) {
        let cleared = if relists { LOST | UNLISTED } else { LOST };
        let losses = &mut *self.losses;
        for segment in &mut self.segments {
            if segment.waits() && segment.transmissions > 1 {
                losses.retransmit_order.reinsert(segment, losses.passed_until);
            }
            segment.flags &= !cleared;
        }
        self.losses.sums.lost = SegmentCount::default();
        self.losses.first_tx_lost = 0;
        self.losses.relost.clear();
        self.losses.first_tx_cursor = self.base;
        self.losses.expired_cursor = self.base;
    }
}
