//! Additive increase, multiplicative decrease (AIMD) with any parameters.
//!
//! RFC 9438, Figure 3: `AVG_AIMD(alpha, beta) = sqrt(alpha (1 + beta) / (2 (1 - beta) p))`, from
//! S. Floyd, M. Handley, J. Padhye, "A Comparison of Equation-Based and AIMD Congestion Control",
//! 2000.

use crate::validity::{Validity, doubts};
use crate::{Path, TheoryError, TheoryEstimate};

/// The AIMD parameters of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aimd {
    alpha: f64,
    beta: f64,
}

impl Aimd {
    /// One segment per RTT, half after a loss (RFC 5681).
    pub const RENO: Self = Self { alpha: 1.0, beta: 0.5 };

    /// Adds `alpha` segments per RTT, keeps the fraction `beta` after a loss.
    ///
    /// # Errors
    /// If `alpha` is not above 0, or `beta` is not between 0 and 1.
    pub fn new(alpha: f64, beta: f64) -> Result<Self, TheoryError> {
        match () {
            () if !(alpha.is_finite() && alpha > 0.0) => Err(TheoryError::Growth),
            () if !(beta > 0.0 && beta < 1.0) => Err(TheoryError::Kept),
            () => Ok(Self { alpha, beta }),
        }
    }

    /// The AIMD with decrease factor `beta` and the average window of Reno: `alpha = 3 (1 - beta) /
    /// (1 + beta)` (RFC 9438, Section 4.3).
    ///
    /// # Errors
    /// If `beta` is not between 0 and 1.
    pub fn friendly(beta: f64) -> Result<Self, TheoryError> {
        match () {
            () if !(beta > 0.0 && beta < 1.0) => Err(TheoryError::Kept),
            () => Self::new(3.0 * (1.0 - beta) / (1.0 + beta), beta),
        }
    }

    /// Segments added per RTT.
    pub const fn alpha(self) -> f64 {
        self.alpha
    }

    /// Fraction of the window kept after a loss.
    pub const fn beta(self) -> f64 {
        self.beta
    }

    /// Average window in segments at the loss rate `p`.
    pub fn window(self, p: f64) -> f64 {
        (self.alpha * (1.0 + self.beta) / (2.0 * (1.0 - self.beta) * p)).sqrt()
    }
}

const ASSUMES: &[&str] = &[
    "loss alone limits the window: neither the line nor a buffer nor the receiver does",
    "one packet is lost after 1/p others; each loss shrinks the window once, is repaired at once, \
     and none ends in a timeout",
    "the round-trip time is constant, and slow start is long over",
];

/// The estimate of the formula.
pub fn estimate(path: &Path, aimd: Aimd) -> TheoryEstimate {
    let window = aimd.window(path.p());
    let rate_bps = path.bps(window);
    // The sawtooth runs from beta W to W.
    let peak = window * 2.0 / (1.0 + aimd.beta);
    TheoryEstimate {
        rate_bps,
        window,
        peak: Some(peak),
        cycle_rtts: Some(peak * (1.0 - aimd.beta) / aimd.alpha),
        validity: Validity::new(ASSUMES, doubts(path, rate_bps, window, peak)),
    }
}

#[cfg(test)]
mod tests {
    use units::{Bytes, Duration, Ratio};

    use super::*;
    use crate::mathis::{self, Constant};

    fn path(loss: u64) -> Path {
        let loss = Ratio::new(1, loss).unwrap();
        Path::new(Bytes(1_448), Duration::from_millis(100), loss).unwrap()
    }

    /// RFC 9438, Table 1, the column of Reno. It comes from RFC 3649, which has 1.2/sqrt(p), 2 %
    /// less than the formula of Figure 3.
    #[test]
    fn windows_of_the_rfc() {
        let published = [(100, 12), (1_000, 38), (10_000, 120), (100_000, 379), (1_000_000, 1_200)];
        for (loss, published) in published {
            let window = estimate(&path(loss), Aimd::RENO).window;
            let of_rfc3649 = window * 1.2 / 1.5_f64.sqrt();
            assert_eq!(of_rfc3649.round() as u32, published, "{window}");
        }
    }

    #[test]
    fn reno_is_mathis() {
        let mathis = mathis::estimate(&path(50), Constant::Periodic);
        let computed = estimate(&path(50), Aimd::RENO);
        assert!((computed.rate_bps / mathis.rate_bps - 1.0).abs() < 1e-12);
        assert!((computed.cycle_rtts.unwrap() / mathis.cycle_rtts.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_friendly_aimd_has_renos_window() {
        let friendly = Aimd::friendly(0.7).unwrap();
        assert!((friendly.alpha() - 9.0 / 17.0).abs() < 1e-12);
        assert!((friendly.window(0.02) - Aimd::RENO.window(0.02)).abs() < 1e-12);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for (alpha, beta) in [(0.0, 0.5), (f64::NAN, 0.5), (1.0, 0.0), (1.0, 1.0), (1.0, f64::NAN)]
        {
            assert!(Aimd::new(alpha, beta).is_err(), "{alpha} {beta}");
        }
        assert_eq!(Aimd::friendly(1.5), Err(TheoryError::Kept));
    }
}
