//! One epoch of congestion avoidance, starting at a loss.

use units::maths;

use super::{BETA, C};
use crate::TheoryError;
use crate::aimd::Aimd;

/// The curves of CUBIC between two losses. Windows are in segments, times in seconds since the
/// loss, at which the window was reduced from `w_max` to `beta w_max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CubicEpoch {
    w_max: f64,
    rtt: f64,
}

impl CubicEpoch {
    /// An epoch after a loss at a window of `w_max` segments, with an RTT of `rtt` seconds.
    ///
    /// # Errors
    /// If either is not a number above 0, or the window is less than one segment.
    pub fn new(w_max: f64, rtt: f64) -> Result<Self, TheoryError> {
        match () {
            () if !(w_max.is_finite() && w_max >= 1.0) => Err(TheoryError::NoWindow),
            () if !(rtt.is_finite() && rtt > 0.0) => Err(TheoryError::NoRtt),
            () => Ok(Self { w_max, rtt }),
        }
    }

    /// The window at the loss.
    pub const fn w_max(&self) -> f64 {
        self.w_max
    }

    /// Seconds until the cubic curve returns to `w_max` (RFC 9438, Figure 2).
    pub fn k(&self) -> f64 {
        maths::cbrt(self.w_max * (1.0 - BETA) / C)
    }

    /// The cubic curve: `C (t - K)^3 + w_max` (RFC 9438, Figure 1).
    pub fn w_cubic(&self, t: f64) -> f64 {
        let d = t - self.k();
        C * d * d * d + self.w_max
    }

    /// The Reno-friendly window of RFC 8312, Equation 4: `w_max beta + 3 (1 - beta)/(1 + beta)
    /// (t/RTT)`.
    pub fn w_est_rfc8312(&self, t: f64) -> f64 {
        self.w_max * BETA + Self::alpha() * (t / self.rtt)
    }

    /// The Reno-friendly window of RFC 9438, Section 4.3, while CUBIC follows it: a window is
    /// acknowledged per RTT, so it grows by alpha per RTT, and by 1 once it has returned to
    /// `w_max`.
    pub fn w_est_rfc9438(&self, t: f64) -> f64 {
        let rounds = t / self.rtt;
        let back = self.w_max * (1.0 - BETA) / Self::alpha();
        if rounds < back {
            self.w_max * BETA + Self::alpha() * rounds
        } else {
            self.w_max + (rounds - back)
        }
    }

    /// `3 (1 - beta)/(1 + beta)`, 9/17.
    fn alpha() -> f64 {
        // The constant is between 0 and 1.
        Aimd::friendly(BETA).map_or(f64::NAN, Aimd::alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(computed: f64, expected: f64) {
        assert!((computed - expected).abs() < 1e-9, "{computed} for {expected}");
    }

    #[test]
    fn the_cubic_curve_starts_at_the_reduced_window() {
        // K = cbrt(100 * 0.3 / 0.4) = cbrt(75) = 4.217163326508746 s.
        let epoch = CubicEpoch::new(100.0, 0.1).unwrap();
        close(epoch.k(), 4.217_163_326_508_746);
        close(epoch.w_cubic(0.0), 70.0);
        close(epoch.w_cubic(epoch.k()), 100.0);
        // One second later, one cubic second times C.
        close(epoch.w_cubic(epoch.k() + 1.0), 100.4);
    }

    #[test]
    fn the_two_reno_friendly_windows() {
        // alpha is 9/17, so 30 segments take 170/3 RTTs, 17/3 s.
        let epoch = CubicEpoch::new(100.0, 0.1).unwrap();
        close(epoch.w_est_rfc8312(0.0), 70.0);
        close(epoch.w_est_rfc8312(1.7), 79.0);
        close(epoch.w_est_rfc9438(1.7), 79.0);
        close(epoch.w_est_rfc8312(17.0 / 3.0), 100.0);
        close(epoch.w_est_rfc9438(17.0 / 3.0), 100.0);
        // From there on RFC 9438 grows like Reno, RFC 8312 as before.
        close(epoch.w_est_rfc9438(17.0 / 3.0 + 1.7), 117.0);
        close(epoch.w_est_rfc8312(17.0 / 3.0 + 1.7), 109.0);
    }

    #[test]
    fn invalid_parameters_are_refused() {
        for (w_max, rtt) in [(0.5, 0.1), (f64::NAN, 0.1), (10.0, 0.0), (10.0, f64::INFINITY)] {
            assert!(CubicEpoch::new(w_max, rtt).is_err(), "{w_max} {rtt}");
        }
    }
}
