//! The segments in order of transmission time, and the next one to retransmit.

use std::collections::VecDeque;

use units::{Instant, Offset};

use super::SendMap;
use super::segment::{EXPIRED, PASSED, SentSegment, UNLISTED, WAS_PASSED};

/// Transmission time and sequence end: of segments sent together, the lowest is the oldest.
pub(super) type TxTime = (Instant, Offset);

/// A retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct RetransmitEntry {
    /// Sequence end of the segment, which a partial acknowledgment does not change.
    end: Offset,
    sent_at: Instant,
    /// End of the new data sent at the same instant before it, if any: it comes first in Linux's order of transmission
    /// (`tsorted_sent_queue`), and what it hides has not been passed.
    after: Offset,
}

impl RetransmitEntry {
    const fn time(&self) -> TxTime {
        (self.sent_at, self.end)
    }

    /// Was it sent before the segment that was sent at `sent_at` and ends at `end`?
    fn is_before(&self, sent_at: Instant, end: Offset) -> bool {
        self.time() < (sent_at, end) && (self.sent_at < sent_at || self.after <= end)
    }
}

/// Retransmitted segments in time order. An entry is stale once its segment was SACKed,
/// acknowledged, marked lost or retransmitted once more.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct RetransmitOrder {
    entries: VecDeque<RetransmitEntry>,
    /// Entries removed since the creation of the map.
    dropped: u64,
    /// Id, counted from the creation of the map, of the first entry that has not been passed.
    passed: u64,
}

impl RetransmitOrder {
    pub(super) const fn new() -> Self {
        Self { entries: VecDeque::new(), dropped: 0, passed: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn push(&mut self, end: Offset, sent_at: Instant, after: Offset) {
        self.entries.push_back(RetransmitEntry { end, sent_at, after });
    }

    /// Removes acknowledged entries from the front.
    pub(super) fn acknowledge(&mut self, una: Offset, all: bool) {
        while self.entries.front().is_some_and(|entry| all || entry.end <= una) {
            self.pop();
        }
    }

    /// Marks all entries as not passed.
    pub(super) const fn restart(&mut self) {
        self.passed = self.dropped;
    }

    fn pop(&mut self) {
        self.entries.pop_front();
        self.dropped += 1;
    }

    /// A retransmitted segment counts as in flight once more, with its send time.
    pub(super) fn reinsert(&mut self, segment: &mut SentSegment, passed_until: TxTime) {
        let time = (segment.sent_at, segment.end());
        let at = self.entries.partition_point(|other| other.time() < time);
        if self.entries.get(at).is_some_and(|other| other.time() == time) {
            return;
        }
        let entry = RetransmitEntry { end: time.1, sent_at: time.0, after: Offset(0) };
        self.entries.insert(at, entry);
        self.passed = self.passed.max(self.dropped);
        if time < passed_until {
            segment.flags |= PASSED;
            self.passed += 1;
        }
    }

    /// A segment was split into `lower` and the rest, which ends at `upper_end`.
    pub(super) fn split(&mut self, lower: &SentSegment, upper_end: Offset) {
        // In time order; segments sent together are adjacent.
        let first = self.entries.partition_point(|entry| entry.sent_at < lower.sent_at);
        let together = self.entries.range(first..);
        let mut together = together.take_while(|entry| entry.sent_at == lower.sent_at);
        let Some(nth) = together.position(|entry| entry.end == upper_end) else { return };
        let at = first + nth;
        self.entries.insert(at, RetransmitEntry { end: lower.end(), ..self.entries[at] });
        self.passed += u64::from(self.dropped + (at as u64) < self.passed);
    }
}

impl SendMap {
    /// The segment in flight with the earliest send time; of those sent together, the lowest.
    pub fn oldest(&mut self) -> Option<&SentSegment> {
        let at = self.oldest_at()?;
        self.segments.get(at)
    }

    /// Marks the oldest segment lost; returns its state before.
    pub fn mark_oldest_lost(&mut self) -> Option<SentSegment> {
        let at = self.oldest_at()?;
        let segment = self.segments[at];
        self.mark_lost_at(at);
        Some(segment)
    }

    fn oldest_at(&mut self) -> Option<usize> {
        self.losses.first_tx_cursor = self.losses.first_tx_cursor.max(self.base);
        let first_tx = loop {
            match self.index(self.losses.first_tx_cursor) {
                Some(at) if !self.segments[at].in_flight_first_tx() => {
                    self.losses.first_tx_cursor += 1;
                }
                found => break found,
            }
        };
        let retransmitted = loop {
            let Some(&entry) = self.losses.retransmit_order.entries.front() else { break None };
            match self.segment_of(entry) {
                None => self.losses.retransmit_order.pop(),
                found => break found,
            }
        };
        match (first_tx, retransmitted) {
            (Some(first_tx), Some(retransmitted)) => {
                let segment = &self.segments[retransmitted];
                let first = self.segments[first_tx].sent_before(segment.sent_at, segment.end());
                Some(if first { first_tx } else { retransmitted })
            }
            (first_tx, retransmitted) => first_tx.or(retransmitted),
        }
    }

    /// The segment of an entry, unless the entry is stale.
    fn segment_of(&self, entry: RetransmitEntry) -> Option<usize> {
        let at = self.index_of_end(entry.end)?;
        let segment = &self.segments[at];
        let listed = segment.flags & UNLISTED == 0;
        let live = listed && segment.transmissions > 1 && segment.in_flight();
        let live = live && segment.sent_at == entry.sent_at;
        live.then_some(at)
    }

    /// The segment sent at `sent_at` that ends at `end` has arrived: all segments in flight sent
    /// before it are marked as passed.
    pub fn pass(&mut self, sent_at: Instant, end: Offset) {
        if (sent_at, end) <= self.losses.passed_until {
            return;
        }
        self.losses.passed_until = (sent_at, end);
        self.losses.passed_cursor = self.losses.passed_cursor.max(self.base);
        while let Some(at) = self.index(self.losses.passed_cursor) {
            let segment = &mut self.segments[at];
            if segment.transmissions == 1 {
                if !segment.sent_before(sent_at, end) {
                    break;
                }
                segment.flags |= PASSED;
            }
            self.losses.passed_cursor += 1;
        }
        self.losses.retransmit_order.passed =
            self.losses.retransmit_order.passed.max(self.losses.retransmit_order.dropped);
        loop {
            let at = (self.losses.retransmit_order.passed - self.losses.retransmit_order.dropped)
                as usize;
            let Some(&entry) = self.losses.retransmit_order.entries.get(at) else { break };
            if !entry.is_before(sent_at, end) {
                break;
            }
            let segment = self.index_of_end(entry.end).map(|at| &mut self.segments[at]);
            if let Some(segment) = segment.filter(|segment| segment.sent_at == entry.sent_at) {
                // rack_log_sack_passed clears the earlier mark.
                segment.flags = segment.flags & !WAS_PASSED | PASSED;
            }
            self.losses.retransmit_order.passed += 1;
        }
    }

    /// The passed segments have expired: until retransmitted they do not count as in flight
    /// (rack_mark_lost, which checks the first one only).
    pub fn expire_passed(&mut self) {
        self.losses.expired_cursor =
            self.losses.expired_cursor.max(self.losses.first_tx_cursor).max(self.base);
        while self.losses.expired_cursor < self.losses.passed_cursor {
            let Some(at) = self.index(self.losses.expired_cursor) else { break };
            self.expire(at);
            self.losses.expired_cursor += 1;
        }
        let count = self
            .losses
            .retransmit_order
            .passed
            .saturating_sub(self.losses.retransmit_order.dropped) as usize;
        for nth in 0..count.min(self.losses.retransmit_order.entries.len()) {
            if let Some(at) = self.segment_of(self.losses.retransmit_order.entries[nth]) {
                self.expire(at);
            }
        }
    }

    fn expire(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        if segment.in_flight() && segment.passed() && segment.flags & EXPIRED == 0 {
            segment.flags |= EXPIRED;
            self.losses.sums.expired.add(segment.len());
        }
    }

    /// Marks lost the passed segments that are `expired`; returns their number, and the most
    /// recently sent of the other passed segments.
    pub fn mark_passed_lost(
        &mut self,
        expired: impl Fn(&SentSegment) -> bool,
    ) -> (u64, Option<&SentSegment>) {
        let mut lost = 0;
        while let Some(at) = self.oldest_at()
            && self.segments[at].passed()
            && expired(&self.segments[at])
        {
            self.mark_lost_at(at);
            self.segments[at].flags |= UNLISTED;
            lost += 1;
        }
        // A retransmitted segment that has not been passed must not hide passed ones sent later.
        loop {
            let Some(at) = self.newest_passed_at() else { return (lost, None) };
            if !expired(&self.segments[at]) {
                return (lost, self.segments.get(at));
            }
            self.mark_lost_at(at);
            self.segments[at].flags |= UNLISTED;
            lost += 1;
        }
    }

    /// Marks lost the `expired` segments in flight that are no longer in the order of transmission, at a timeout.
    pub(crate) fn mark_unlisted_lost(&mut self, expired: impl Fn(&SentSegment) -> bool) -> u64 {
        let mut lost = 0;
        for at in 0..self.segments.len() {
            let segment = &self.segments[at];
            if segment.flags & UNLISTED != 0 && segment.in_flight() && expired(segment) {
                self.mark_lost_at(at);
                lost += 1;
            }
        }
        lost
    }

    /// The most recently sent of the passed segments in flight.
    pub fn newest_passed(&mut self) -> Option<&SentSegment> {
        // Removes stale entries first.
        self.oldest_at()?;
        self.segments.get(self.newest_passed_at()?)
    }

    /// Like [`SendMap::newest_passed`], without the removal. Skips runs of SACKed segments; the
    /// cost is that of the stale retransmissions in between.
    fn newest_passed_at(&self) -> Option<usize> {
        let count = self
            .losses
            .retransmit_order
            .passed
            .saturating_sub(self.losses.retransmit_order.dropped) as usize;
        let count = count.min(self.losses.retransmit_order.entries.len());
        let retransmitted = match count {
            0 => None,
            _ => {
                let mut entries = self.losses.retransmit_order.entries.range(..count).rev();
                entries.find_map(|&entry| self.segment_of(entry))
            }
        };
        let first_tx = self.newest_passed_first_tx();
        match (first_tx, retransmitted) {
            (Some(first_tx), Some(retransmitted)) => {
                let segment = &self.segments[retransmitted];
                let last = !self.segments[first_tx].sent_before(segment.sent_at, segment.end());
                Some(if last { first_tx } else { retransmitted })
            }
            (first_tx, retransmitted) => first_tx.or(retransmitted),
        }
    }

    /// The two most recently sent segments in flight, newest first.
    pub fn newest_two(&self) -> (Option<&SentSegment>, Option<&SentSegment>) {
        let last_first_tx = self.newest_first_tx(self.base + self.segments.len() as u64);
        let before = last_first_tx.and_then(|at| self.newest_first_tx(self.base + at as u64));
        let retransmitted = self
            .losses
            .retransmit_order
            .entries
            .iter()
            .rev()
            .filter_map(|&entry| self.segment_of(entry));
        let mut newest: [Option<&SentSegment>; 2] = [None; 2];
        for at in retransmitted.take(2).chain(last_first_tx).chain(before) {
            let segment = &self.segments[at];
            let later = |other: &SentSegment| other.sent_before(segment.sent_at, segment.end());
            if newest[0].is_none_or(later) {
                newest = [Some(segment), newest[0]];
            } else if newest[1].is_none_or(later) {
                newest[1] = Some(segment);
            }
        }
        (newest[0], newest[1])
    }

    /// The last segment before index `upto` that was sent once and is in flight; skips runs of
    /// SACKed segments.
    fn newest_first_tx(&self, mut upto: u64) -> Option<usize> {
        let lowest = self.losses.first_tx_cursor.max(self.base);
        while upto > lowest {
            let at = self.index(upto - 1)?;
            let segment = &self.segments[at];
            if segment.in_flight_first_tx() {
                return Some(at);
            }
            upto = match self.losses.sacked.start_of_range_before(segment.end()) {
                Some(start) if segment.sacked() => self.base + self.index_of(start)? as u64,
                _ => upto - 1,
            };
        }
        None
    }

    fn newest_passed_first_tx(&self) -> Option<usize> {
        let lowest = self.losses.first_tx_cursor.max(self.base);
        let mut upto = self.losses.passed_cursor;
        while upto > lowest {
            let at = self.index(upto - 1)?;
            let segment = &self.segments[at];
            if segment.in_flight_first_tx() && segment.passed() {
                return Some(at);
            }
            upto = match self.losses.sacked.start_of_range_before(segment.end()) {
                Some(start) if segment.sacked() => self.base + self.index_of(start)? as u64,
                _ => upto - 1,
            };
        }
        None
    }

    /// The lowest segment that is lost and needs retransmission.
    pub fn next_lost(&mut self) -> Option<&SentSegment> {
        let mut fresh = None;
        if self.losses.first_tx_lost > 0 {
            self.losses.lost_cursor = self.losses.lost_cursor.max(self.base);
            while let Some(at) = self.index(self.losses.lost_cursor) {
                if self.segments[at].first_tx_lost() {
                    fresh = Some(at);
                    break;
                }
                self.losses.lost_cursor += 1;
            }
        } else {
            self.losses.lost_cursor = self.base + self.segments.len() as u64;
        }
        let retransmitted = loop {
            let Some(&end) = self.losses.relost.front() else { break None };
            match self.index_of_end(end).filter(|&at| self.segments[at].waits()) {
                None => self.losses.relost.pop_front(),
                found => break found,
            };
        };
        let at = match (fresh, retransmitted) {
            (Some(fresh), Some(retransmitted)) => fresh.min(retransmitted),
            (fresh, retransmitted) => fresh.or(retransmitted)?,
        };
        self.segments.get(at)
    }
}
