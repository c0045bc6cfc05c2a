//! The estimator of FreeBSD's RACK stack: microseconds, no clock ticks.
//!
//! Source: tcp_stacks/rack.c (tcp_rack_xmit_timer_commit, RACK_REXMTVAL, rack_timer_start).

use units::Duration;

use crate::rtt::{RttInput, RttMeasurement};

/// Timeout before the first sample (`RACKTO_MSEC_TO_USEC`, TCPTV_RTOBASE).
const FIRST: u64 = 1_000_000;
/// Added to every timeout (`rack_slop`, tcp_rexmit_slop).
const SLOP: u64 = 200_000;

/// The bounds of the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RtoBounds {
    /// Minimum timeout before the slop (`rack_rto_min`).
    pub least: Duration,
    /// Maximum timeout (`rack_rto_max`).
    pub most: Duration,
}

impl RtoBounds {
    /// The defaults of 14.3 and main.
    pub const DEFAULT: Self =
        Self { least: Duration::from_millis(30), most: Duration::from_secs(4) };
}

/// The estimator of one connection; microseconds throughout.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RttRack {
    bounds: RtoBounds,
    srtt: Option<u64>,
    rttvar: u64,
    rto: u64,
}

impl RttRack {
    /// An estimator without a sample; its timeout is one second.
    pub const fn new(bounds: RtoBounds) -> Self {
        Self { bounds, srtt: None, rttvar: 0, rto: FIRST }
    }

    /// Processes a sample; ends any backoff.
    pub fn on_sample(&mut self, sampled: &RttInput) -> Duration {
        let rtt = match sampled.sample {
            RttMeasurement::Echo { ms } => u64::from(ms) * 1_000,
            RttMeasurement::Timed { sent, acked } => acked.since(sent).as_micros(),
        };
        let rtt = rtt.max(1);
        // rack_update_rtt adds one microsecond.
        let sample = rtt + 1;
        let srtt = match self.srtt {
            None => {
                self.rttvar = sample / 2;
                sample
            }
            Some(srtt) => {
                // An eighth, where RFC 6298 uses a quarter.
                let change = srtt.abs_diff(sample) / 8;
                self.rttvar = (self.rttvar - self.rttvar / 8 + change).max(1);
                srtt - srtt / 8 + sample / 8
            }
        };
        self.srtt = Some(srtt);
        self.rto = self.bounded(self.value()).max(sample + 2).min(self.bounds.most.as_micros());
        Duration::from_micros(rtt)
    }

    /// Backs off: the timer fired for the `shift`-th time in a row, from 1 (rack_timeout_rxt).
    /// After the third, the smoothed RTT counts as variance until there is a sample.
    pub fn on_timeout(&mut self, shift: u32) {
        self.rto = self.bounded(self.value() << shift.min(9));
        if shift > 3 {
            self.rttvar += self.srtt.take().unwrap_or(0);
        }
    }

    /// New data was acknowledged: the timeout returns to its value before the backoff
    /// (rack_process_ack).
    pub fn end_backoff(&mut self) {
        self.rto = self.bounded(self.value());
    }

    /// `RACK_REXMTVAL`.
    fn value(&self) -> u64 {
        match (self.srtt, self.rttvar) {
            (None, 0) => FIRST,
            (srtt, rttvar) => srtt.unwrap_or(0) + 4 * rttvar,
        }
        .max(self.bounds.least.as_micros())
    }

    /// `RACK_TCPT_RANGESET`: adds the slop, then clamps.
    fn bounded(&self, value: u64) -> u64 {
        (value + SLOP).min(self.bounds.most.as_micros())
    }

    /// Current retransmission timeout, backed off.
    pub const fn rto(&self) -> Duration {
        Duration::from_micros(self.rto)
    }

    /// Interval between window probes, `shift` of which were not answered: 250 ms to 2 s with the
    /// slop (rack_get_persists_timer_val, `rack_persist_min`, `rack_persist_max`).
    pub fn persist(&self, shift: u32) -> Duration {
        let value = self.srtt.unwrap_or(0) + 4 * self.rttvar;
        Duration::from_micros(((value << shift.min(9)) + SLOP).clamp(250_000, 2_000_000))
    }

    /// Total duration of the timeouts before a connection is dropped (rack_timeout_persist):
    /// `TCP_REXMTVAL`, which has no slop, times `tcp_totbackoff`.
    pub fn all_timeouts(&self) -> Duration {
        Duration::from_micros(self.value()).saturating_mul(2_559)
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt.map(Duration::from_micros)
    }
}

impl Default for RttRack {
    fn default() -> Self {
        Self::new(RtoBounds::DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Instant, Offset};

    fn sample(us: u64) -> RttInput {
        let acked = Instant::ZERO + Duration::from_micros(us);
        let sample = RttMeasurement::Timed { sent: Instant::ZERO, acked };
        RttInput { sample, shift: 0, snd_una: Offset(1), snd_nxt: Offset(1) }
    }

    #[test]
    fn the_total_backoff_saturates() {
        let mut rtt = RttRack::default();
        rtt.on_sample(&RttInput { sample: RttMeasurement::Echo { ms: u32::MAX }, ..sample(1) });
        assert_eq!(rtt.all_timeouts(), Duration::MAX);
    }

    #[test]
    fn the_minimum_is_thirty_milliseconds_and_the_slop() {
        let mut rtt = RttRack::default();
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.on_sample(&sample(150));
        assert_eq!(rtt.rto(), Duration::from_millis(230));
        let mut rtt = RttRack::default();
        rtt.on_sample(&sample(45_000));
        assert_eq!(rtt.srtt(), Some(Duration::from_micros(45_001)));
        // 45.001 + 4 * 22.5 + 200
        assert_eq!(rtt.rto(), Duration::from_micros(335_001));
        rtt.on_sample(&sample(53_000));
        // 45_001 - 5_625 + 6_625, and a variance of 22_500 - 2_812 + 1_000
        assert_eq!(rtt.srtt(), Some(Duration::from_micros(46_001)));
        assert_eq!(rtt.rto(), Duration::from_micros(46_001 + 4 * 20_688 + 200_000));
    }

    #[test]
    fn it_backs_off_to_four_seconds_and_the_slop_is_added_once() {
        let mut rtt = RttRack::default();
        rtt.on_sample(&sample(45_000));
        // 45.001 + 4 * 22.5 is 135.001 ms.
        let mut backed_off = |shift| {
            rtt.on_timeout(shift);
            rtt.rto().as_micros()
        };
        let first = [1, 2, 3].map(&mut backed_off);
        assert_eq!(first, [470_002, 740_004, 1_280_008]);
        assert_eq!((backed_off(4), backed_off(5)), (2_360_016, 4_000_000));
        assert_eq!(rtt.srtt(), None);
    }

    #[test]
    fn an_acknowledgment_ends_the_backoff() {
        let mut rtt = RttRack::default();
        rtt.on_sample(&sample(45_000));
        rtt.on_timeout(1);
        rtt.end_backoff();
        assert_eq!(rtt.rto(), Duration::from_micros(335_001));
    }
}
