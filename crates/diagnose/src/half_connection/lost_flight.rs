//! A flight that was lost before the capture point: what later packets of its sender show of it.

use units::{Duration, Instant, Offset};

use super::retransmissions::MIN_RTO;

/// Data that the sender has sent and the capture does not have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LostFlight {
    /// Where the sequence number of a packet without data says that the sender is, and since when.
    claimed: Option<(Offset, Instant)>,
    /// New data among which a gap belongs to the flight of an expiry of which only the silence was seen.
    gap_within: u8,
    /// That gap.
    gap: Option<(Offset, Offset)>,
    /// Frame of the data that such an expiry sent.
    timer_frame: u64,
}

impl LostFlight {
    /// A packet without data has the sequence number `at_seq`, beyond all data that were captured.
    pub(super) fn claim(&mut self, at_seq: Offset, at: Instant) {
        let (before, since) = self.claimed.unwrap_or((at_seq, at));
        self.claimed = Some((before.max(at_seq), since));
    }

    /// Whether data before `end`, the lowest that are missing, come when the sender had sent them for so long that its
    /// timer has sent them again: since when it had.
    pub(super) fn repeated_by_timer(&self, end: Offset, at: Instant) -> Option<Instant> {
        let (claimed, since) = self.claimed?;
        (claimed >= end && at.since(since) >= MIN_RTO).then_some(since)
    }

    /// The timer has expired; a gap within the next `data` new data is of the same flight.
    pub(super) const fn on_expiry(&mut self, data: u8, frame: u64) {
        self.gap_within = data;
        self.timer_frame = frame;
    }

    /// Whether a gap below the next new data is of the flight of an expiry that was inferred.
    pub(super) const fn explains_gap(&self) -> bool {
        self.gap_within > 0
    }

    /// New data `[start, end)` where the stream ended at `nxt`.
    pub(super) fn on_new_data(&mut self, nxt: Offset, (start, end): (Offset, Offset)) {
        if self.gap_within > 0 && start > nxt {
            self.gap = Some((nxt, start));
            self.gap_within = 0;
        }
        self.gap_within = self.gap_within.saturating_sub(1);
        self.claimed = self.claimed.filter(|claimed| claimed.0 > end);
    }

    /// End of the flight that data of this range were lost with, if an expiry was inferred.
    pub(super) fn flight_of(&self, (start, end): (Offset, Offset)) -> Option<Offset> {
        self.gap.filter(|gap| start >= gap.0 && end <= gap.1).map(|gap| gap.1)
    }

    /// Whether the data of this frame were sent by a timer.
    pub(super) const fn is_of_timer(&self, frame: u64) -> bool {
        self.timer_frame == frame && frame > 0
    }
}

/// Number of expiries of a timer of `timeout`, doubled each time, in a `silence`: at least one.
pub(super) fn expiries(silence: Duration, timeout: Duration) -> u32 {
    let (silence, timeout) = (silence.as_nanos(), timeout.as_nanos().max(1));
    (silence / timeout + 1).ilog2().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expiry_takes_twice_as_long_as_the_one_before() {
        let ms = Duration::from_millis;
        let of = |silence| expiries(ms(silence), ms(200));
        assert_eq!([10, 200, 599, 600, 1_399, 1_400].map(of), [1, 1, 1, 2, 2, 3]);
    }
}
