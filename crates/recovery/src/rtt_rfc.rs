//! The estimator of RFC 6298.

use units::Duration;

use crate::rtt::{RttInput, RttMeasurement};

/// Timeout before the first sample (section 2.1), and minimum timeout (section 2.4).
const ONE_SECOND: u64 = 1_000_000_000;
/// Maximum timeout (section 2.5 allows a bound of at least 60 s).
const MAX: u64 = 60 * ONE_SECOND;
/// Clock granularity G: that of the timestamps.
const GRANULARITY: u64 = 1_000_000;

/// The estimator of one connection; nanoseconds throughout.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RttRfc {
    srtt: Option<u64>,
    rttvar: u64,
    rto: u64,
}

impl RttRfc {
    /// An estimator without a sample; its timeout is one second.
    pub const fn new() -> Self {
        Self { srtt: None, rttvar: 0, rto: ONE_SECOND }
    }

    /// Processes a sample (sections 2.2 and 2.3); ends any backoff.
    pub fn on_sample(&mut self, sampled: &RttInput) -> Duration {
        let r = match sampled.sample {
            RttMeasurement::Echo { ms } => u64::from(ms) * 1_000_000,
            RttMeasurement::Timed { sent, acked } => acked.since(sent).as_nanos(),
        };
        let srtt = match self.srtt {
            None => {
                self.rttvar = r / 2;
                r
            }
            Some(srtt) => {
                self.rttvar = (3 * self.rttvar + srtt.abs_diff(r)) / 4;
                (7 * srtt + r) / 8
            }
        };
        self.srtt = Some(srtt);
        self.rto = (srtt + (4 * self.rttvar).max(GRANULARITY)).clamp(ONE_SECOND, MAX);
        Duration::from_nanos(r)
    }

    /// Backs off (section 5.5).
    pub fn on_timeout(&mut self) {
        self.rto = (2 * self.rto).min(MAX);
    }

    /// Current retransmission timeout, backed off.
    pub const fn rto(&self) -> Duration {
        Duration::from_nanos(self.rto)
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt.map(Duration::from_nanos)
    }
}

impl Default for RttRfc {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use units::Offset;

    use super::*;

    fn sample(ms: u32) -> RttInput {
        let sample = RttMeasurement::Echo { ms };
        RttInput { sample, shift: 0, snd_una: Offset(0), snd_nxt: Offset(0) }
    }

    #[test]
    fn the_formulas_of_section_2() {
        let mut rtt = RttRfc::new();
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.on_sample(&sample(800));
        // SRTT 800, RTTVAR 400, RTO 2400 ms.
        assert_eq!(rtt.rto(), Duration::from_millis(2_400));
        rtt.on_sample(&sample(1_600));
        // RTTVAR 3/4 400 + 1/4 800 = 500, SRTT 7/8 800 + 1/8 1600 = 900, RTO 2900 ms.
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(900)));
        assert_eq!(rtt.rto(), Duration::from_millis(2_900));
    }

    #[test]
    fn the_timeout_is_at_least_a_second_and_doubles_up_to_a_minute() {
        let mut rtt = RttRfc::new();
        rtt.on_sample(&sample(10));
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        for expected in [2, 4, 8, 16, 32, 60, 60] {
            rtt.on_timeout();
            assert_eq!(rtt.rto(), Duration::from_secs(expected));
        }
    }
}
