//! Throughput from the square root of loss.
//!
//! Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
//! Algorithm", ACM CCR 27(3), 1997: `BW = MSS/RTT * C/sqrt(p)`. The constants of random loss are
//! those of Ott, Kemperman, Mathis, "The Stationary Behavior of Ideal TCP Congestion Avoidance",
//! 1996.

use crate::validity::{Doubt, Validity, doubts};
use crate::{Path, TheoryEstimate};

/// The loss process and the receiver's ACK policy, which determine the constant `C`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constant {
    /// One packet is lost after 1/p others; every packet is acknowledged.
    Periodic,
    /// One packet is lost after 1/p others; every second packet is acknowledged, and the sender
    /// counts ACKs.
    PeriodicDelayed,
    /// Every packet is lost with probability p; every packet is acknowledged.
    Random,
    /// Every packet is lost with probability p; every second packet is acknowledged, and the
    /// sender counts ACKs.
    RandomDelayed,
}

impl Constant {
    /// All four.
    pub const ALL: [Self; 4] =
        [Self::Periodic, Self::PeriodicDelayed, Self::Random, Self::RandomDelayed];

    /// `C`.
    pub fn value(self) -> f64 {
        match self {
            // 1.22
            Self::Periodic => (3.0_f64 / 2.0).sqrt(),
            // 0.87
            Self::PeriodicDelayed => (3.0_f64 / 4.0).sqrt(),
            Self::Random => 1.31,
            // 1.31/sqrt(2), printed with two digits in the papers.
            Self::RandomDelayed => 0.93,
        }
    }

    const fn is_delayed(self) -> bool {
        matches!(self, Self::PeriodicDelayed | Self::RandomDelayed)
    }

    const fn is_periodic(self) -> bool {
        matches!(self, Self::Periodic | Self::PeriodicDelayed)
    }
}

const ASSUMES: &[&str] = &[
    "loss alone limits the window: neither the line nor a buffer nor the receiver does",
    "each loss halves the window once, is repaired at once, and none ends in a timeout",
    "between losses the window grows by one segment per round trip (half of one with delayed \
     ACKs that are counted)",
    "the round-trip time is constant, and slow start is long over",
];

/// The estimate of the formula.
pub fn estimate(path: &Path, constant: Constant) -> TheoryEstimate {
    let window = constant.value() / path.p().sqrt();
    let rate_bps = path.bps(window);
    // A sawtooth from W/2 to W has a mean of 3/4 W, and takes W/2 steps.
    let peak = window * 4.0 / 3.0;
    let steps_per_rtt = if constant.is_delayed() { 0.5 } else { 1.0 };
    let mut doubts = doubts(path, rate_bps, window, peak);
    if constant.is_delayed() {
        doubts.push(Doubt::CountsAcks);
    }
    TheoryEstimate {
        rate_bps,
        window,
        peak: constant.is_periodic().then_some(peak),
        cycle_rtts: constant.is_periodic().then(|| peak / 2.0 / steps_per_rtt),
        validity: Validity::new(ASSUMES, doubts),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::{Bytes, Duration, Rate, Ratio};

    use super::*;

    fn seed() -> Path {
        let loss = Ratio::new(2, 100).unwrap();
        Path::new(Bytes(1_252), Duration::from_millis(2), loss).unwrap()
    }

    /// The figures of the path with 1252 bytes, 2 ms and 2 %.
    #[test]
    fn the_four_constants() {
        let computed = Constant::ALL.map(|constant| estimate(&seed(), constant).rate_bps / 1e6);
        for (computed, published) in computed.into_iter().zip([43.37, 30.67, 46.39, 32.93]) {
            assert!((computed - published).abs() < 0.005, "{computed} for {published}");
        }
        let values = Constant::ALL.map(Constant::value);
        for (value, published) in values.into_iter().zip([1.22, 0.87, 1.31, 0.93]) {
            assert!((value - published).abs() < 0.005, "{value} for {published}");
        }
    }

    #[test]
    fn the_sawtooth_delivers_one_over_p_packets_per_cycle() {
        // W = sqrt(8/(3p)) = 11.547, 3/8 W^2 = 1/p = 50 packets in W/2 round trips.
        let estimate = estimate(&seed(), Constant::Periodic);
        let (peak, rtts) = (estimate.peak.unwrap(), estimate.cycle_rtts.unwrap());
        assert!((peak - 11.547).abs() < 0.001, "{peak}");
        assert!((estimate.window * rtts - 50.0).abs() < 1e-9);
    }

    #[test]
    fn doubts_are_reported() {
        let doubts = |path: Path| estimate(&path, Constant::Periodic).validity.doubts;
        let line = Rate::from_bits_per_second(10_000_000).unwrap();
        assert!(doubts(seed().with_rate(line)).contains(&Doubt::RateIsTheLimit { rate_bps: 1e7 }));
        let narrow = doubts(seed().with_window(Bytes(6_260)).unwrap());
        assert!(matches!(narrow[0], Doubt::WindowIsTheLimit { allowed: 5.0, .. }), "{narrow:?}");
        let much = Path::new(Bytes(1_252), Duration::from_millis(2), Ratio::new(1, 5).unwrap());
        let much = doubts(much.unwrap());
        assert!(matches!(much[0], Doubt::NoDuplicates { .. }), "{much:?}");
        assert!(much.iter().any(|doubt| matches!(doubt, Doubt::MuchLoss { .. })));
        let little = Ratio::new(1, 100_000).unwrap();
        let little = Path::new(Bytes(1_448), Duration::from_millis(100), little).unwrap();
        assert_eq!(doubts(little), []);
        let delayed = estimate(&little, Constant::PeriodicDelayed).validity.doubts;
        assert_eq!(delayed, [Doubt::CountsAcks]);
    }

    proptest! {
        #[test]
        fn twice_the_rtt_is_half_the_rate(
            ms in 1_u64..1_000, ppm in 1_u64..500_000, mss in 100_u64..9_000,
        ) {
            let loss = Ratio::new(ppm, 1_000_000).unwrap();
            let at = |ms| {
                let path = Path::new(Bytes(mss), Duration::from_millis(ms), loss).unwrap();
                estimate(&path, Constant::Random).rate_bps
            };
            prop_assert!((at(ms) / at(2 * ms) - 2.0).abs() < 1e-9);
        }
    }
}
