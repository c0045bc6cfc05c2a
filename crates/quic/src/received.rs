//! Received packet numbers and the ACK frame that reports them (RFC 9000 sections 13.2.3, 13.2.4
//! and 19.3).

use units::Instant;

use crate::packet::{AckFrame, EcnCounts};
use crate::ranges::NumberRanges;
use crate::sizes;

/// The received packet numbers of one space.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceivedPackets {
    numbers: NumberRanges,
    /// Numbers below it are not tracked and count as received.
    min_tracked: u64,
    largest: Option<(u64, Instant)>,
    /// The next number in sequence, gaps skipped.
    expected: u64,
    largest_eliciting: Option<u64>,
    /// Largest Acknowledged of the last ACK frame sent.
    largest_reported: Option<u64>,
    /// A packet was received since the last ACK frame.
    ack_pending: bool,
    /// ECN fields of the packets received.
    ecn: EcnCounts,
}

impl ReceivedPackets {
    /// Adds a packet; false if it is a duplicate.
    pub(crate) fn insert(&mut self, now: Instant, number: u64) -> bool {
        if number < self.min_tracked || self.numbers.insert(number, number + 1) == 0 {
            return false;
        }
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        self.ack_pending = true;
        true
    }

    /// Counts the ECN field of a packet that is no duplicate.
    pub(crate) const fn count_ecn(&mut self, ecn: u8) {
        self.ecn.add(ecn);
    }

    /// The expected number, to be read before [`ReceivedPackets::advance`].
    pub(crate) const fn expected(&self) -> u64 {
        self.expected
    }

    pub(crate) const fn largest_eliciting(&self) -> Option<u64> {
        self.largest_eliciting
    }

    /// Advances past a packet.
    pub(crate) fn advance(&mut self, number: u64, eliciting: bool) {
        self.expected = self.expected.max(number + 1);
        if eliciting {
            self.largest_eliciting = self.largest_eliciting.max(Some(number));
        }
    }

    /// The smallest missing number that no ACK frame has reported lost at this threshold.
    pub(crate) fn unreported(&self, reordering: u32) -> Option<u64> {
        let reported = self
            .largest_reported
            .map_or(0, |reported_up_to| (reported_up_to + 1).saturating_sub(u64::from(reordering)));
        let mut least = reported.max(self.min_tracked);
        for (start, end) in self.numbers.iter() {
            if start > least {
                return Some(least);
            }
            least = least.max(end);
        }
        None
    }

    /// Would an ACK frame report new packets?
    pub(crate) const fn has_ack_pending(&self) -> bool {
        self.ack_pending
    }

    /// Writes an ACK frame of at most `ranges` ranges and `room` bytes. Returns false, and writes
    /// nothing, if there is nothing to acknowledge or no space.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        exponent: u32,
        (ranges, room): (usize, u32),
        ack: &mut AckFrame,
    ) -> bool {
        let Some((largest, at)) = self.largest else { return false };
        ack.ranges.clear();
        ack.delay = now.since(at).as_micros() >> exponent;
        ack.ecn = self.ecn;
        for (start, end) in self.numbers.iter().rev().take(ranges) {
            ack.ranges.push((start, end - 1));
        }
        while sizes::ack(ack) > room && !ack.ranges.is_empty() {
            ack.ranges.pop();
        }
        let written = !ack.ranges.is_empty();
        if written {
            self.largest_reported = Some(largest);
            self.ack_pending = false;
        }
        written
    }

    /// Stops tracking numbers below `largest`: the peer has acknowledged an ACK frame up to it.
    pub(crate) fn on_ack_of_ack(&mut self, largest: u64) {
        self.forget_below(largest);
    }

    /// Limits the set to the highest `ranges` ranges.
    pub(crate) fn limit_ranges(&mut self, ranges: usize) {
        while self.numbers.len() > ranges {
            let Some((_, end)) = self.numbers.first() else { return };
            self.forget_below(end);
        }
    }

    fn forget_below(&mut self, number: u64) {
        self.min_tracked = self.min_tracked.max(number);
        self.numbers.remove_below(number);
    }
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    fn received_of(numbers: &[u64]) -> ReceivedPackets {
        let mut received = ReceivedPackets::default();
        for &number in numbers {
            assert!(received.insert(Instant::ZERO, number));
            received.advance(number, true);
        }
        received
    }

    fn ranges(received: &mut ReceivedPackets, most: usize, room: u32) -> Vec<(u64, u64)> {
        let mut ack = AckFrame::default();
        received.write(Instant::ZERO, 3, (most, room), &mut ack);
        ack.ranges
    }

    #[test]
    fn the_frame_lists_received_numbers_highest_first() {
        let mut received = received_of(&[0, 1, 3, 7, 8]);
        assert_eq!(ranges(&mut received, 9, 99), [(7, 8), (3, 3), (0, 1)]);
        assert_eq!(ranges(&mut received, 2, 99), [(7, 8), (3, 3)]);
        // Five bytes, then two for each further range.
        assert_eq!(ranges(&mut received, 9, 8), [(7, 8), (3, 3)]);
        assert!(ranges(&mut received, 9, 4).is_empty());
    }

    #[test]
    fn the_delay_is_that_of_the_largest_packet_in_its_units() {
        let mut received = received_of(&[5]);
        let mut ack = AckFrame::default();
        let now = Instant::ZERO + Duration::from_micros(1_007);
        assert!(received.write(now, 3, (9, 99), &mut ack));
        assert_eq!(ack.delay, 125);
    }

    #[test]
    fn duplicates_are_detected_also_below_the_tracked_numbers() {
        let mut received = received_of(&[0, 1, 3, 4, 6]);
        assert!(!received.insert(Instant::ZERO, 3));
        received.on_ack_of_ack(4);
        assert_eq!(ranges(&mut received, 9, 99), [(6, 6), (4, 4)]);
        assert!(!received.insert(Instant::ZERO, 2));
        received.limit_ranges(1);
        assert_eq!(ranges(&mut received, 9, 99), [(6, 6)]);
        assert!(!received.insert(Instant::ZERO, 4));
    }

    #[test]
    fn a_gap_is_unreported_until_an_ack_shows_it_lost() {
        let mut received = received_of(&[0, 2, 3]);
        assert_eq!(received.unreported(3), Some(1));
        ranges(&mut received, 9, 99);
        // Largest acknowledged 3: numbers below 3 + 1 - 3 = 1 are reported, 1 itself is not.
        assert_eq!(received.unreported(3), Some(1));
        assert_eq!(received.unreported(2), None);
    }
}
