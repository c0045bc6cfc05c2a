//! The scale of a window whose handshake was not captured.
//!
//! A sender that the window limits sends up to its edge again and again. So the scale is known once the flights end
//! within a segment of the edge that one scale gives and never go beyond it; where the window does not limit the
//! sender its scale stays unknown, and does not matter.
//!
//! A receiver never withdraws what it has advertised (RFC 9293 section 3.8.6). So while its application does not read,
//! each ACK lowers the window by just the bytes that it acknowledges, and the ratio of both is the scale.

use units::Offset;

/// The largest scale (RFC 7323 section 2.3).
const MAX_SCALE: u8 = 14;
/// Flights that must end at the edge, of which a growing window passes a few by chance.
const MIN_FILLS: u32 = 64;
/// Smallest segment of a sender that a window limits: 536 bytes without an option (RFC 9293 section 3.7.1). Smaller ones are
/// messages, of which a clock sends as many a round trip.
const LEAST_SEGMENT: u64 = 536;
/// ACKs that must lower the window by what they acknowledge, by the same scale; and the least change of the field of
/// which a ratio is near one power of two alone, for the field is rounded.
const MIN_LOWERED: u32 = 32;
const MIN_CHANGE: u64 = 16;

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
    /// ACKs that lowered the window, and how many of these by the bytes that they acknowledge at each scale.
    lowered: u32,
    by_scale: [u32; MAX_SCALE as usize + 1],
}

impl ScaleGuess {
    /// Records the window field of an ACK of `from`.
    pub(super) fn on_ack(&mut self, from: Offset, field: u64) {
        let acked = from.since(self.from).get();
        let lowered = self.field.saturating_sub(field);
        if acked > 0 && lowered >= MIN_CHANGE {
            self.lowered = self.lowered.saturating_add(1);
            let is_exact = |scale: u8| acked.abs_diff(lowered << scale) <= 1 << scale;
            if let Some(scale) = (0..=MAX_SCALE).find(|&scale| is_exact(scale)) {
                self.by_scale[usize::from(scale)] += 1;
            }
        }
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
        let is_full = mss >= LEAST_SEGMENT && flight <= edge && edge - flight < mss;
        self.fills += u32::from(is_full);
    }

    /// The scale, if the flights show it.
    pub(super) fn known(&self) -> Option<u8> {
        let is_usual = u64::from(self.fills) * 4 >= u64::from(self.sent) * 3;
        let of_edge = (self.fills >= MIN_FILLS && is_usual).then_some(self.least);
        of_edge.or_else(|| self.of_reader())
    }

    /// The scale by which most ACKs lower the window, unless a flight was beyond it.
    fn of_reader(&self) -> Option<u8> {
        let (scale, &exact) = (0_u8..).zip(&self.by_scale).max_by_key(|&(_, &exact)| exact)?;
        let is_usual = u64::from(exact) * 4 >= u64::from(self.lowered) * 3;
        (exact >= MIN_LOWERED && is_usual && scale >= self.least).then_some(scale)
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

    /// Fields of ACKs for two segments each: an application that reads `read(n)` bytes before ACK n.
    fn of_reader(scale: u8, read: impl Fn(u64) -> u64) -> Option<u8> {
        let mut guess = ScaleGuess::default();
        let (mut acked, mut edge) = (0, 300_000);
        for n in 0..400 {
            acked += 2 * MSS;
            edge = (edge + read(n)).max(acked);
            guess.on_ack(Offset(acked), (edge - acked) >> scale);
            guess.on_sent(Offset(acked + 2 * MSS), MSS);
        }
        guess.known()
    }

    #[test]
    fn an_application_that_does_not_read_shows_the_scale() {
        for scale in [0, 3, 7] {
            // 20 segments at once.
            assert_eq!(of_reader(scale, |n| if n % 10 == 0 { 20 * MSS } else { 0 }), Some(scale));
        }
        // Of a field in units of 2 kB two segments are too few.
        assert_eq!(of_reader(11, |n| if n % 10 == 0 { 20 * MSS } else { 0 }), None);
        // A window that changes by other sizes.
        assert_eq!(of_reader(7, |n| n * 37 % 5 * 300), None);
    }

    /// Five messages of 194 bytes a round trip against a field of 64.
    #[test]
    fn messages_by_a_clock_show_no_edge() {
        let mut guess = ScaleGuess::default();
        for n in 0..100 {
            let from = Offset(n * 970);
            guess.on_ack(from, 64);
            guess.on_sent(from + 970, 194);
        }
        assert_eq!(guess.known(), None);
    }

    #[test]
    fn a_growing_or_smaller_flight_shows_none() {
        assert_eq!(after(100, |n| n * MSS), None);
        assert_eq!(after(200, |_| 40 * MSS), None);
    }
}
