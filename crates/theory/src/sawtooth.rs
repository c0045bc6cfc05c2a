//! The sawtooth with the round trips that a loss costs.
//!
//! INET wiki, "Congestion Avoidance on a lossy link": after a loss some round trips pass before the
//! window grows again (one until the loss is detected, one until recovery ends), so a cycle takes
//! `W/2 + b` of them. `1/p = 3/4 W (W/2 + b)` gives
//! `Tp = 3/4 * MSS/RTT * (sqrt(8/(3p) + b^2) - b)`.

use units::Duration;

use crate::validity::{Validity, doubts};
use crate::{Path, TheoryError, TheoryEstimate};

/// The `b` of the formula: round trips per cycle without growth of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExtraRtts(f64);

impl ExtraRtts {
    /// `b` extra round trips.
    ///
    /// # Errors
    /// If `b` is not a finite number, or negative.
    pub fn new(b: f64) -> Result<Self, TheoryError> {
        if b.is_finite() && b >= 0.0 { Ok(Self(b)) } else { Err(TheoryError::ExtraRtts) }
    }

    /// A sender that takes one RTT to detect the loss and one to recover, with a receiver that
    /// acknowledges every packet: 2.
    pub const EVERY_PACKET: Self = Self(2.0);

    /// Like [`ExtraRtts::EVERY_PACKET`] with a receiver that acknowledges every second packet, or
    /// one after `ack_delay`: `2 + 3/4 min(1, ack_delay/RTT)`, since after three of four random
    /// losses one increase is delayed by a delayed ACK.
    pub fn every_other_packet(ack_delay: Duration, path: &Path) -> Self {
        Self(2.0 + 0.75 * (ack_delay.as_secs_f64() / path.rtt_s()).min(1.0))
    }

    /// The number of round trips.
    pub const fn get(self) -> f64 {
        self.0
    }
}

const ASSUMES: &[&str] = &[
    "loss alone limits the window: neither the line nor a buffer nor the receiver does",
    "each loss halves the window once and none ends in a timeout",
    "the window does not grow for b round trips after a loss, then by one segment per round \
     trip; the sender counts what an ACK acknowledges",
    "the round-trip time is constant, and slow start is long over",
];

/// The estimate of the formula.
pub fn estimate(path: &Path, extra: ExtraRtts) -> TheoryEstimate {
    let b = extra.0;
    let peak = (8.0 / (3.0 * path.p()) + b * b).sqrt() - b;
    let window = peak * 0.75;
    let rate_bps = path.bps(window);
    TheoryEstimate {
        rate_bps,
        window,
        peak: Some(peak),
        cycle_rtts: Some(peak / 2.0 + b),
        validity: Validity::new(ASSUMES, doubts(path, rate_bps, window, peak)),
    }
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Ratio};

    use super::*;
    use crate::mathis::{self, Constant};

    fn path(ms: u64) -> Path {
        let loss = Ratio::new(2, 100).unwrap();
        Path::new(Bytes(1_252), Duration::from_millis(ms), loss).unwrap()
    }

    fn mbps(ms: u64, b: ExtraRtts) -> f64 {
        estimate(&path(ms), b).rate_bps / 1e6
    }

    #[test]
    fn the_published_figures() {
        for (b, published) in
            [(0.0, 43.37), (1.0, 39.78), (2.0, 36.50), (2.75, 34.25), (3.0, 33.54)]
        {
            let computed = mbps(2, ExtraRtts::new(b).unwrap());
            assert!((computed - published).abs() <= 0.005, "b {b}: {computed} for {published}");
        }
    }

    #[test]
    fn b_of_delayed_acknowledgments() {
        let delay = Duration::from_millis(25);
        // 25 ms is more than the RTT: a whole one is lost.
        assert!((ExtraRtts::every_other_packet(delay, &path(2)).get() - 2.75).abs() < 1e-12);
        // Rate times RTT/2 ms for 50 and 100 ms: 35.36 and 35.93.
        for (ms, published) in [(50, 35.36), (100, 35.93)] {
            let b = ExtraRtts::every_other_packet(delay, &path(ms));
            let scaled = mbps(ms, b) * ms as f64 / 2.0;
            assert!((scaled - published).abs() <= 0.005, "{ms} ms: {scaled} for {published}");
        }
    }

    #[test]
    fn without_extra_rtts_it_is_mathis() {
        let plain = mathis::estimate(&path(2), Constant::Periodic);
        let computed = estimate(&path(2), ExtraRtts::new(0.0).unwrap());
        assert!((computed.rate_bps / plain.rate_bps - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_cycle_delivers_one_over_p_packets() {
        let computed = estimate(&path(2), ExtraRtts::EVERY_PACKET);
        assert!((computed.window * computed.cycle_rtts.unwrap() - 50.0).abs() < 1e-9);
    }

    #[test]
    fn an_invalid_number_of_rtts_is_refused() {
        for b in [-0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(ExtraRtts::new(b), Err(TheoryError::ExtraRtts));
        }
    }
}
