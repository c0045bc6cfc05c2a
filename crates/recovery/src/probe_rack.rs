//! When FreeBSD's RACK stack sends a tail loss probe.
//!
//! Source: tcp_stacks/rack.c (rack_calc_thresh_tlp with TLP_USE_TWO_ONE, rack_timer_start). The
//! time runs from the last transmission of the newest segment, or from the last timer that fired.

use units::Duration;

use crate::rack_freebsd::micros;
use crate::sendmap::SentSegment;

/// The knobs of the probe timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RackPto {
    /// One part in this number of an RTT is added; 0 counts as 1 (`rack_tlp_thresh`).
    pub divisor: u32,
    /// RACK's RTT is used where it is longer than the smoothed one (`rack_tlp_use_greater`).
    pub use_greater: bool,
    /// Allowance for a delayed acknowledgment (`rack_delayed_ack_time`).
    pub delayed_ack: Duration,
    /// Minimum probe timeout (`rack_tlp_min`).
    pub least: Duration,
}

/// The input of the probe timeout.
#[derive(Debug, Clone, Copy)]
pub struct ProbeInput<'a> {
    /// Smoothed RTT, and RACK's ([`crate::rack_freebsd::RackFreeBsd::rtt`]).
    pub srtt: Option<Duration>,
    /// See `srtt`.
    pub rack_rtt: Duration,
    /// The newest segment, and the one sent before it.
    pub last: &'a SentSegment,
    /// See `last`.
    pub before: Option<&'a SentSegment>,
    /// The current retransmission timeout, and the maximum (`rack_rto_max`).
    pub rto: Duration,
    /// See `rto`.
    pub longest: Duration,
}

impl RackPto {
    /// The defaults of 14.3 and main.
    pub const DEFAULT: Self = Self {
        divisor: 1,
        use_greater: true,
        delayed_ack: Duration::from_millis(40),
        least: Duration::from_millis(10),
    };

    /// The probe timeout, counted from the last transmission of the newest segment. The time
    /// between the last two segments is added unless they are of one burst; a single segment gets
    /// the allowance for a delayed acknowledgment.
    pub fn thresh(&self, input: &ProbeInput<'_>) -> Duration {
        let srtt = match input.srtt {
            Some(srtt) if self.use_greater => srtt.max(input.rack_rtt),
            Some(srtt) => srtt,
            None => Duration::from_secs(1),
        };
        let srtt = srtt.as_micros().max(1);
        let mut thresh = srtt + srtt / u64::from(self.divisor.max(1));
        match input.before {
            None => thresh = thresh.max(srtt + srtt / 2 + self.delayed_ack.as_micros()),
            // The kernel compares times at the index of the other segment's transmissions.
            Some(before) if before.transmissions() <= input.last.transmissions() => {
                let gap = micros(input.last.sent_at()).saturating_sub(micros(before.sent_at()));
                thresh += gap;
            }
            Some(_) => {}
        }
        Duration::from_micros(thresh).min(input.rto).min(input.longest).max(self.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sendmap::SendMap;
    use units::{Instant, Offset};

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    /// Thresholds with segments sent at these times.
    fn thresh(srtt: u64, rack_rtt: u64, sent: &[u64]) -> u64 {
        let mut map = SendMap::new();
        for (nth, &sent_at) in (0..).zip(sent) {
            map.push(Offset(nth * 10), Offset(nth * 10 + 10), at(sent_at));
        }
        let (last, before) = map.newest_two();
        let input = ProbeInput {
            srtt: Some(us(srtt)),
            rack_rtt: us(rack_rtt),
            last: last.unwrap(),
            before,
            rto: us(300_000),
            longest: us(4_000_000),
        };
        RackPto::DEFAULT.thresh(&input).as_micros()
    }

    #[test]
    fn two_rtts_and_the_time_between_the_last_two() {
        assert_eq!(thresh(40_000, 0, &[7_000, 7_000]), 80_000);
        assert_eq!(thresh(40_000, 0, &[7_000, 9_500]), 82_500);
        assert_eq!(thresh(40_000, 50_000, &[7_000, 7_000]), 100_000);
    }

    #[test]
    fn a_single_segment_gets_the_allowance_for_a_delayed_ack() {
        // golden/freebsd-rack-closed, tail-0: 619.211 ms and 107.525.
        assert_eq!(thresh(45_017, 0, &[619_211]), 107_525);
        assert_eq!(thresh(1_000, 0, &[0, 0]), 10_000);
        assert_eq!(thresh(290_000, 0, &[0, 0]), 300_000);
    }
}
