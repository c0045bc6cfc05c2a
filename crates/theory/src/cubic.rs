//! CUBIC: the response function, and its boundary to the Reno-friendly window.
//!
//! RFC 9438, Section 5 (loss after 1/p packets): `AVG_W_cubic = (C (3 + beta) / (4 (1 -
//! beta)))^(1/4) * (RTT/p)^(3/4)`; Section 4.3 for the Reno-friendly region. RFC 8312 has the same
//! function with its `beta`, also 0.7. One epoch over time is in `epoch`.

mod epoch;

pub use epoch::CubicEpoch;

use units::maths;

use crate::aimd::Aimd;
use crate::validity::{Doubt, Validity, doubts};
use crate::{Path, TheoryEstimate};

/// `C` of RFC 9438, in segments per cubic second.
pub const C: f64 = 0.4;
/// `beta_cubic` of RFC 9438: the fraction of the window kept after a loss.
pub const BETA: f64 = 0.7;

/// The response of CUBIC on a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// Average window of the cubic curve, in segments.
    pub cubic: f64,
    /// Average Reno-friendly window, in segments, equal to that of Reno.
    pub friendly: f64,
    /// RTT in seconds below which CUBIC is Reno-friendly at this loss rate.
    pub friendly_below_s: f64,
    /// Loss rate above which CUBIC is Reno-friendly at this RTT; above 1 it always is.
    pub friendly_above_p: f64,
    /// The larger of the two windows, which CUBIC follows.
    pub estimate: TheoryEstimate,
}

impl Response {
    /// True if the Reno-friendly window is the larger one.
    pub fn is_friendly(&self) -> bool {
        self.friendly > self.cubic
    }
}

const ASSUMES: &[&str] = &[
    "loss alone limits the window: neither the line nor a buffer nor the receiver does",
    "one packet is lost after 1/p others; each loss leaves 70 % of the window, is repaired at \
     once, and none ends in a timeout",
    "time is continuous: a clock as coarse as kern.hz or CONFIG_HZ bends the curve of short round \
     trips",
    "the Reno-friendly window grows as in RFC 9438; a kernel that computes it from ticks or from \
     the round-trip time of RFC 8312 differs",
];

/// The response of RFC 9438.
pub fn response(path: &Path) -> Response {
    let (p, rtt) = (path.p(), path.rtt_s());
    let cubic = average_window(C, rtt, p);
    let friendly = Aimd::RENO.window(p);
    let is_friendly = friendly > cubic;
    let window = cubic.max(friendly);
    let rate_bps = path.bps(window);
    // The mean of the cubic epoch is (3 + beta)/4 of its end, that of the sawtooth (1 + beta)/2.
    let (peak, cycle_rtts) = if is_friendly {
        let peak = window * 2.0 / (1.0 + BETA);
        (peak, 1.0 / (p * window))
    } else {
        (window * 4.0 / (3.0 + BETA), 1.0 / (p * window))
    };
    let mut doubts = doubts(path, rate_bps, window, peak);
    if is_friendly {
        doubts.push(Doubt::RenoFriendly { cubic, friendly });
    }
    Response {
        cubic,
        friendly,
        friendly_below_s: maths::cbrt(p / bound()),
        friendly_above_p: bound() * rtt * rtt * rtt,
        estimate: TheoryEstimate {
            rate_bps,
            window,
            peak: Some(peak),
            cycle_rtts: Some(cycle_rtts),
            validity: Validity::new(ASSUMES, doubts),
        },
    }
}

/// Average window of the cubic curve in segments with this `C`, a round trip in seconds and one loss
/// after `1/p` packets (RFC 9438, Figure 5).
pub fn average_window(c: f64, rtt_s: f64, p: f64) -> f64 {
    coefficient(c) * maths::three_quarters(rtt_s / p)
}

/// The loss rate at which the curve's average window has this number of segments: the inverse of
/// [`average_window`].
pub fn loss_for_window(c: f64, rtt_s: f64, window: f64) -> f64 {
    let root = maths::cbrt(coefficient(c) / window);
    rtt_s * root * root * root * root
}

/// `(C (3 + beta) / (4 (1 - beta)))^(1/4)`; 1.054 for `C` = 0.4.
fn coefficient(c: f64) -> f64 {
    fourth_power(c).sqrt().sqrt()
}

fn fourth_power(c: f64) -> f64 {
    c * (3.0 + BETA) / (4.0 * (1.0 - BETA))
}

/// `p / RTT^3` at which both windows are equal: the fourth powers of `k (RTT/p)^(3/4)` and
/// `sqrt(3/(2p))` are `k^4 RTT^3 / p^3` and `9/(4 p^2)`.
fn bound() -> f64 {
    fourth_power(C) * 4.0 / 9.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::{Bytes, Duration, Ratio};

    use super::*;

    fn path(one_in: u64, ms: u64) -> Path {
        let loss = Ratio::new(1, one_in).unwrap();
        Path::new(Bytes(1_500), Duration::from_millis(ms), loss).unwrap()
    }

    /// RFC 9438, Tables 1 (100 ms) and 2 (10 ms), the columns of C = 0.4, where they are not
    /// Reno's.
    #[test]
    fn windows_of_the_rfc() {
        let published = [
            (10_000, 100, 187),
            (100_000, 100, 1_054),
            (1_000_000, 100, 5_926),
            (10_000_000, 100, 33_325),
            (100_000_000, 100, 187_400),
            (10_000_000, 10, 5_926),
            (100_000_000, 10, 33_325),
        ];
        for (one_in, ms, published) in published {
            let response = response(&path(one_in, ms));
            assert!(!response.is_friendly());
            assert_eq!(response.cubic.round() as u32, published, "1/{one_in}, {ms} ms");
        }
        // The others are equal to Reno's.
        for (one_in, ms) in [(100, 100), (1_000, 100), (100_000, 10), (1_000_000, 10)] {
            assert!(response(&path(one_in, ms)).is_friendly(), "1/{one_in}, {ms} ms");
        }
    }

    #[test]
    fn a_short_path_with_much_loss_is_reno_friendly() {
        let response = response(&path(50, 2));
        assert!((response.cubic - 0.19).abs() < 0.005, "{}", response.cubic);
        assert!(response.is_friendly());
        assert!((coefficient(C) - 1.054).abs() < 5e-4);
    }

    #[test]
    fn a_cycle_delivers_one_over_p_packets() {
        // K = cbrt(W (1 - beta) / C) seconds for 1/p packets.
        let response = response(&path(100_000, 100));
        let k = maths::cbrt(response.estimate.peak.unwrap() * (1.0 - BETA) / C);
        let cycle = response.estimate.cycle_rtts.unwrap() * 0.1;
        assert!((k / cycle - 1.0).abs() < 1e-9, "{k} {cycle}");
    }

    proptest! {
        #[test]
        fn both_windows_are_equal_at_the_bound(one_in in 2_u64..100_000_000, ms in 1_u64..2_000) {
            let at = path(one_in, ms);
            let computed = response(&at);
            let near = (computed.cubic / computed.friendly - 1.0).abs() < 1e-9;
            prop_assert!(near || computed.is_friendly() == (at.rtt_s() < computed.friendly_below_s));
            prop_assert!(near || computed.is_friendly() == (at.p() > computed.friendly_above_p));
        }
    }
}
