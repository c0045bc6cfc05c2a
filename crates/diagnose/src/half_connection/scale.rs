//! The scale of a window whose handshake was not captured.
//!
//! A sender that the window limits sends up to its edge again and again. So the scale is known once the flights end
//! within a segment of the edge that one scale gives and never go beyond it; where the window does not limit the
//! sender its scale stays unknown, and does not matter.

use units::Offset;

/// The largest scale (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;
/// Flights that must end at the edge, of which a growing window passes a few by chance.
const MIN_FILLS: u32 = 64;

/// What flights show of the scale.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScaleGuess {
    /// Last window field, and what it counts from.
    field: u64,
    from: Offset,
    /// Smallest scale that all flights allow.
    least: u8,
    /// Transmissions since `least` is so, and those that ended at the edge.
    sent: u32,
    fills: u32,
}

impl ScaleGuess {
    /// Records the window field of an ACK of `from`.
    pub(super) const fn on_ack(&mut self, from: Offset, field: u64) {
        self.field = field;
        self.from = from;
    }

    /// Records a transmission up to `nxt`.
    pub(super) fn on_sent(&mut self, nxt: Offset, mss: u64) {
        let flight = nxt.since(self.from).get();
        if self.field == 0 {
            return;
        }
        while flight > self.field << self.least && self.least < MAX_SCALE {
            self.least += 1;
            (self.sent, self.fills) = (0, 0);
        }
        self.sent = self.sent.saturating_add(1);
        let edge = self.field << self.least;
        self.fills += u32::from(flight <= edge && edge - flight < mss);
    }

    /// The scale, if the flights show it.
    pub(super) fn known(&self) -> Option<u8> {
        let is_usual = u64::from(self.fills) * 4 >= u64::from(self.sent) * 3;
        (self.fills >= MIN_FILLS && is_usual).then_some(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    /// Sends `count` flights of `flight(n)` bytes against a field of 501.
    fn after(count: u64, flight: impl Fn(u64) -> u64) -> Option<u8> {
        let mut guess = ScaleGuess::default();
        for n in 0..count {
            let from = Offset(n * 10_000);
            guess.on_ack(from, 501);
            guess.on_sent(from + flight(n), MSS);
        }
        guess.known()
    }

    #[test]
    fn flights_at_the_edge_show_the_scale() {
        // 501 << 7 is 64,128 bytes, of which 44 segments fit.
        assert_eq!(after(100, |_| 44 * MSS), Some(7));
        assert_eq!(after(60, |_| 44 * MSS), None);
    }

    #[test]
    fn a_growing_or_smaller_flight_shows_none() {
        assert_eq!(after(100, |n| n * MSS), None);
        assert_eq!(after(200, |_| 40 * MSS), None);
    }
}
