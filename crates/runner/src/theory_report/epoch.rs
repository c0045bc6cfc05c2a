//! One epoch of CUBIC as rows.

use serde::Serialize;
use theory::cubic::CubicEpoch;

/// The windows at a time after the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EpochRow {
    /// Time since the loss.
    pub t_s: f64,
    /// The cubic curve.
    pub w_cubic: f64,
    /// Reno-friendly, RFC 8312, Equation 4.
    pub w_est_rfc8312: f64,
    /// Reno-friendly, RFC 9438.
    pub w_est_rfc9438: f64,
}

/// Steps from one loss to the next, and a few beyond.
const STEPS: u32 = 8;
const BEYOND: u32 = 2;

/// The epoch in steps of an eighth of `cycle_s`.
pub(super) fn rows(epoch: &CubicEpoch, cycle_s: f64) -> Vec<EpochRow> {
    let at = |step: u32| {
        let t = cycle_s * f64::from(step) / f64::from(STEPS);
        EpochRow {
            t_s: t,
            w_cubic: epoch.w_cubic(t),
            w_est_rfc8312: epoch.w_est_rfc8312(t),
            w_est_rfc9438: epoch.w_est_rfc9438(t),
        }
    };
    (0..=STEPS + BEYOND).map(at).collect()
}
