//! Which packets of the peer have come, and the ACK frame that says so (RFC 9000 sections 13.2.3,
//! 13.2.4 and 19.3).

use units::Instant;

use crate::packet::Ack;
use crate::ranges::Ranges;
use crate::sizes;

/// Packet numbers of one space.
#[derive(Debug, Clone, Default)]
pub(crate) struct Received {
    numbers: Ranges,
    /// Below it nothing is remembered: all counts as come.
    floor: u64,
    largest: Option<(u64, Instant)>,
    /// The number that follows in order, gaps passed over.
    expected: u64,
    largest_eliciting: Option<u64>,
    /// The largest number of the ACK frame last sent.
    told: Option<u64>,
    /// Something came since the last ACK frame.
    news: bool,
}

impl Received {
    /// Notes a packet; false if it came before.
    pub(crate) fn insert(&mut self, now: Instant, number: u64) -> bool {
        if number < self.floor || self.numbers.insert(number, number + 1) == 0 {
            return false;
        }
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        self.news = true;
        true
    }

    /// What is judged before [`Received::pass`]: the number expected.
    pub(crate) const fn expected(&self) -> u64 {
        self.expected
    }

    pub(crate) const fn largest_eliciting(&self) -> Option<u64> {
        self.largest_eliciting
    }

    /// Moves on behind a packet.
    pub(crate) fn pass(&mut self, number: u64, eliciting: bool) {
        self.expected = self.expected.max(number + 1);
        if eliciting {
            self.largest_eliciting = self.largest_eliciting.max(Some(number));
        }
    }

    /// The least number missing that an ACK frame has not shown to be lost, at this threshold.
    pub(crate) fn unreported(&self, reordering: u32) -> Option<u64> {
        let reported = self.told.map_or(0, |told| (told + 1).saturating_sub(u64::from(reordering)));
        let mut least = reported.max(self.floor);
        for (start, end) in self.numbers.iter() {
            if start > least {
                return Some(least);
            }
            least = least.max(end);
        }
        None
    }

    /// Is there anything an ACK frame could newly say?
    pub(crate) const fn has_news(&self) -> bool {
        self.news
    }

    /// Writes the ACK frame: at most `ranges` ranges and `room` bytes. Returns false, and writes
    /// nothing, if there is nothing to acknowledge or no room.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        exponent: u32,
        (ranges, room): (usize, u32),
        ack: &mut Ack,
    ) -> bool {
        let Some((largest, at)) = self.largest else { return false };
        ack.ranges.clear();
        ack.delay = now.since(at).as_micros() >> exponent;
        for (start, end) in self.numbers.iter().rev().take(ranges) {
            ack.ranges.push((start, end - 1));
        }
        while sizes::ack(ack) > room && !ack.ranges.is_empty() {
            ack.ranges.pop();
        }
        let written = !ack.ranges.is_empty();
        if written {
            self.told = Some(largest);
            self.news = false;
        }
        written
    }

    /// The peer has seen an ACK frame up to `largest`: numbers up to there need no mention.
    pub(crate) fn on_ack_of_ack(&mut self, largest: u64) {
        self.forget_below(largest);
    }

    /// Keeps no more than so many ranges.
    pub(crate) fn bound(&mut self, ranges: usize) {
        while self.numbers.len() > ranges {
            let Some((_, end)) = self.numbers.first() else { return };
            self.forget_below(end);
        }
    }

    fn forget_below(&mut self, number: u64) {
        self.floor = self.floor.max(number);
        self.numbers.remove_below(number);
    }
}

#[cfg(test)]
mod tests {
    use units::Duration;

    use super::*;

    fn come(numbers: &[u64]) -> Received {
        let mut received = Received::default();
        for &number in numbers {
            assert!(received.insert(Instant::ZERO, number));
            received.pass(number, true);
        }
        received
    }

    fn ranges(received: &mut Received, most: usize, room: u32) -> Vec<(u64, u64)> {
        let mut ack = Ack::default();
        received.write(Instant::ZERO, 3, (most, room), &mut ack);
        ack.ranges
    }

    #[test]
    fn the_frame_lists_what_came_highest_first() {
        let mut received = come(&[0, 1, 3, 7, 8]);
        assert_eq!(ranges(&mut received, 9, 99), [(7, 8), (3, 3), (0, 1)]);
        assert_eq!(ranges(&mut received, 2, 99), [(7, 8), (3, 3)]);
        // Five bytes, then two for each further range.
        assert_eq!(ranges(&mut received, 9, 8), [(7, 8), (3, 3)]);
        assert!(ranges(&mut received, 9, 4).is_empty());
    }

    #[test]
    fn the_delay_is_that_of_the_largest_packet_in_its_units() {
        let mut received = come(&[5]);
        let mut ack = Ack::default();
        let now = Instant::ZERO + Duration::from_micros(1_007);
        assert!(received.write(now, 3, (9, 99), &mut ack));
        assert_eq!(ack.delay, 125);
    }

    #[test]
    fn what_comes_twice_is_known_also_below_the_floor() {
        let mut received = come(&[0, 1, 3, 4, 6]);
        assert!(!received.insert(Instant::ZERO, 3));
        received.on_ack_of_ack(4);
        assert_eq!(ranges(&mut received, 9, 99), [(6, 6), (4, 4)]);
        assert!(!received.insert(Instant::ZERO, 2));
        received.bound(1);
        assert_eq!(ranges(&mut received, 9, 99), [(6, 6)]);
        assert!(!received.insert(Instant::ZERO, 4));
    }

    #[test]
    fn a_gap_is_unreported_until_an_ack_shows_it_lost() {
        let mut received = come(&[0, 2, 3]);
        assert_eq!(received.unreported(3), Some(1));
        ranges(&mut received, 9, 99);
        // Largest acknowledged 3: numbers below 3 + 1 - 3 = 1 are reported, 1 itself is not.
        assert_eq!(received.unreported(3), Some(1));
        assert_eq!(received.unreported(2), None);
    }
}
