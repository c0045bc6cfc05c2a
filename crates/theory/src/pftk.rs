//! Throughput with timeouts (PFTK).
//!
//! J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP Throughput: A Simple Model and its
//! Empirical Validation", SIGCOMM 1998: the full model (its equation 32) and the approximation
//! (33). RFC 5348, Section 3.1, uses the latter with one packet per ACK, a timeout of four RTTs,
//! and without the minimum.

use units::{Duration, maths};

use crate::validity::{Doubt, Validity, limits};
use crate::{Path, TheoryError, TheoryEstimate};

/// The parameters of the formulas besides the path. The largest window belongs to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PftkParams {
    packets_per_ack: u32,
    timeout: Duration,
}

impl PftkParams {
    /// With a receiver that acknowledges every `packets_per_ack`-th packet, and the first timeout
    /// in a row.
    ///
    /// # Errors
    /// If either is zero.
    pub fn new(packets_per_ack: u32, timeout: Duration) -> Result<Self, TheoryError> {
        match () {
            () if packets_per_ack == 0 => Err(TheoryError::PacketsPerAck),
            () if timeout.is_zero() => Err(TheoryError::NoTimeout),
            () => Ok(Self { packets_per_ack, timeout }),
        }
    }

    /// The parameters of RFC 5348: an ACK for each packet, a timeout of four RTTs.
    pub const fn rfc5348(path: &Path) -> Self {
        Self { packets_per_ack: 1, timeout: path.rtt().saturating_mul(4) }
    }

    /// Packets per ACK.
    pub const fn packets_per_ack(self) -> u32 {
        self.packets_per_ack
    }

    /// The first timeout in a row.
    pub const fn timeout(self) -> Duration {
        self.timeout
    }
}

/// The minimum timeout of current kernels: TCP_RTO_MIN of Linux. FreeBSD adds a slop of 200 ms to
/// at least 30 ms.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

const ASSUMES: &[&str] = &[
    "packets of a round are lost together from the first loss on (drop-tail), rounds independently",
    "Reno without SACK: a loss is repaired by three duplicates, or by a timeout that doubles up to \
     64 times",
    "the rate counts packets sent, lost ones included; slow start and fast recovery take no time",
];

/// The approximation (33): `min(Wmax/RTT, 1/(RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p
/// (1 + 32p^2)))`.
pub fn short(path: &Path, sender: PftkParams) -> TheoryEstimate {
    let (p, b) = (path.p(), f64::from(sender.packets_per_ack));
    let (rtt, t0) = (path.rtt_s(), sender.timeout.as_secs_f64());
    let avoidance = rtt * (2.0 * b * p / 3.0).sqrt();
    let timeouts = t0 * (3.0 * (3.0 * b * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    let window = rtt / (avoidance + timeouts);
    let allowed = path.window_segments().unwrap_or(f64::INFINITY);
    estimate(path, sender, window.min(allowed))
}

/// The full model (32).
pub fn full(path: &Path, sender: PftkParams) -> TheoryEstimate {
    let (p, b) = (path.p(), f64::from(sender.packets_per_ack));
    let t0_rtts = sender.timeout.as_secs_f64() / path.rtt_s();
    let expected = expected_window(p, b);
    let allowed = path.window_segments().unwrap_or(f64::INFINITY);
    let good = (1.0 - p) / p;
    let (largest, rounds) = if expected < allowed {
        (expected, b * expected / 2.0 + 1.0)
    } else {
        (allowed, b * allowed / 8.0 + good / allowed + 2.0)
    };
    let share = timeout_share(p, largest);
    let sent = good + largest + share / (1.0 - p);
    let window = sent / (rounds + share * backoff(p) * t0_rtts / (1.0 - p));
    estimate(path, sender, window)
}

/// Fraction of losses that end in a timeout with `window` segments in flight: Q of (24).
pub(crate) fn timeout_share(p: f64, window: f64) -> f64 {
    if window <= 3.0 {
        return 1.0;
    }
    let kept = 1.0 - p;
    let three = 1.0 - kept * kept * kept;
    let tail = 1.0 + (1.0 - three) * (1.0 - maths::pow(kept, window - 3.0));
    (three * tail / (1.0 - maths::pow(kept, window))).min(1.0)
}

/// Window at a loss without other limits: E\[W\] of (13).
fn expected_window(p: f64, b: f64) -> f64 {
    let term = (2.0 + b) / (3.0 * b);
    term + (8.0 * (1.0 - p) / (3.0 * b * p) + term * term).sqrt()
}

/// Expected backoff in a row of timeouts: f(p) of (29).
fn backoff(p: f64) -> f64 {
    1.0 + p * (1.0 + p * (2.0 + p * (4.0 + p * (8.0 + p * (16.0 + p * 32.0)))))
}

/// The estimate for a window of `window` segments per RTT.
fn estimate(path: &Path, sender: PftkParams, window: f64) -> TheoryEstimate {
    let rate_bps = path.bps(window);
    // The allowed window is part of the formula.
    let mut doubts = limits(path, rate_bps, 0.0);
    if sender.timeout < LEAST_TIMEOUT {
        doubts.push(Doubt::ShortTimeout { seconds: sender.timeout.as_secs_f64() });
    }
    TheoryEstimate {
        rate_bps,
        window,
        peak: None,
        cycle_rtts: None,
        validity: Validity::new(ASSUMES, doubts),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::{Bytes, Ratio};

    use super::*;
    use crate::mathis::{self, Constant};

    fn path(ppm: u64, ms: u64) -> Path {
        let loss = Ratio::new(ppm, 1_000_000).unwrap();
        Path::new(Bytes(1_252), Duration::from_millis(ms), loss).unwrap()
    }

    fn close(computed: f64, expected: f64) {
        assert!((computed / expected - 1.0).abs() < 1e-9, "{computed} for {expected}");
    }

    #[test]
    fn a_timeout_of_28_ms_on_the_path_of_2_ms() {
        let sender = PftkParams::new(1, Duration::from_millis(28)).unwrap();
        let mbps = short(&path(20_000, 2), sender).rate_bps / 1e6;
        assert!((mbps - 26.5).abs() < 0.05, "{mbps}");
    }

    /// Against the formulas evaluated with 40 decimal digits.
    #[test]
    fn both_forms_with_many_digits() {
        let sender = PftkParams::new(2, Duration::from_millis(1_000)).unwrap();
        let at = path(10_000, 100);
        close(short(&at, sender).window, 7.065442383125336);
        close(full(&at, sender).window, 6.952446319632855);
        // Ten segments: the window is the limit.
        let narrow = at.with_window(Bytes(12_520)).unwrap();
        close(
            full(&path(100, 100).with_window(Bytes(12_520)).unwrap(), sender).window,
            9.935738616757135,
        );
        close(full(&narrow, sender).window, 6.149798720383244);
        // 100 %: the average cannot exceed the allowed window.
        assert!(short(&path(1, 100).with_window(Bytes(12_520)).unwrap(), sender).window <= 10.0);
    }

    #[test]
    fn the_form_of_rfc_5348() {
        // X = s / (R sqrt(2bp/3) + 4R (3 sqrt(3bp/8) p (1 + 32 p^2))), b = 1, R = 100 ms, p = 1 %:
        // 1 / (0.0816497 + 0.4 * 0.1837117 * 0.01 * 1.0032 * 10) segments per round trip.
        let at = path(10_000, 100);
        let sender = PftkParams::rfc5348(&at);
        let terms = 0.081_649_658 + 4.0 * 0.183_711_73 * 0.01 * 1.003_2;
        let computed = short(&at, sender).window;
        assert!((computed - 1.0 / terms).abs() < 1e-5, "{computed}");
    }

    #[test]
    fn the_fraction_of_timeouts() {
        assert_eq!(timeout_share(0.01, 3.0).to_bits(), 1.0_f64.to_bits());
        // Q is about 3/w at low loss.
        assert!((timeout_share(1e-6, 30.0) - 0.1).abs() < 1e-3);
        assert!((timeout_share(1e-6, 300.0) - 0.01).abs() < 1e-4);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        assert_eq!(PftkParams::new(0, Duration::from_secs(1)), Err(TheoryError::PacketsPerAck));
        assert_eq!(PftkParams::new(1, Duration::ZERO), Err(TheoryError::NoTimeout));
    }

    proptest! {
        /// Timeouts only reduce the rate, and with little loss they reduce it little.
        #[test]
        fn never_more_than_mathis(ppm in 1_u64..300_000, ms in 1_u64..500, t0 in 1_u64..3_000) {
            let at = path(ppm, ms);
            let sender = PftkParams::new(1, Duration::from_millis(t0)).unwrap();
            let mathis = mathis::estimate(&at, Constant::Periodic).rate_bps;
            prop_assert!(short(&at, sender).rate_bps <= mathis * (1.0 + 1e-12));
            prop_assert!(full(&at, sender).rate_bps.is_finite());
        }
    }
}
