//! Linux's estimator: microseconds in, the timeout in jiffies.
//!
//! Sources: tcp_input.c (tcp_rtt_estimator, tcp_set_rto, tcp_rtt_tsopt_us), tcp.h (__tcp_set_rto),
//! tcp_timer.c (tcp_retransmit_timer). Kernel 6.18; RFC 6298 with a minimum deviation.
//!
//! The minimum of 200 ms applies to the deviation, not to the timeout: an RTT of 45 ms gives at
//! least 245 ms. The deviation decreases once per RTT only, by a quarter of the distance.

use units::{Duration, Offset};

use crate::rtt::{RttInput, RttMeasurement};

/// Minimum deviation term, in microseconds (`TCP_RTO_MIN`).
const RTO_MIN_US: u32 = 200_000;
/// Longest timeout, in seconds (`TCP_RTO_MAX_SEC`).
const RTO_MAX_S: u64 = 120;
/// Timeout before any sample, in seconds (`TCP_TIMEOUT_INIT`).
const TIMEOUT_INIT_S: u64 = 1;

/// The estimator of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RttLinux {
    hz: u32,
    /// Smoothed RTT, times eight (`srtt_us`); 0 before the first sample.
    srtt_us: u32,
    /// Mean deviation, times four (`mdev_us`).
    mdev_us: u32,
    /// Its maximum in this RTT (`mdev_max_us`).
    mdev_max_us: u32,
    /// Deviation used for the timeout, times four (`rttvar_us`).
    rttvar_us: u32,
    /// The current RTT ends once `snd_una` passes this offset.
    rtt_seq: Offset,
    /// Times that it was doubled since the last sample (`icsk_backoff`).
    backoff: u32,
    /// Current timeout, in jiffies (`icsk_rto`).
    rto: u32,
    /// The same as a duration, cached because it is needed for every segment.
    rto_span: Duration,
}

impl RttLinux {
    /// An estimator without a sample, at `hz` jiffies per second (`CONFIG_HZ`; 0 counts as 1). Its
    /// timeout is one second.
    pub fn new(hz: u32) -> Self {
        let hz = hz.max(1);
        let mut rtt = Self {
            hz,
            srtt_us: 0,
            mdev_us: 0,
            mdev_max_us: 0,
            rttvar_us: 0,
            rtt_seq: Offset(0),
            backoff: 0,
            rto: 0,
            rto_span: Duration::ZERO,
        };
        rtt.set_rto(TIMEOUT_INIT_S * u64::from(hz));
        rtt
    }

    fn set_rto(&mut self, jiffies: u64) {
        let hz = u64::from(self.hz);
        let jiffies = jiffies.min(RTO_MAX_S * hz);
        // Two minutes fit at any rate of a kernel.
        let rto = u32::try_from(jiffies).unwrap_or(u32::MAX);
        if rto != self.rto {
            self.rto = rto;
            self.rto_span = Duration::from_nanos(u64::from(rto) * 1_000_000_000 / hz);
        }
    }

    /// Processes a sample; returns it as the kernel counts it, in whole microseconds. An echoed
    /// timestamp with no difference counts as one millisecond.
    pub fn on_sample(&mut self, sampled: &RttInput) -> Duration {
        let rtt = match sampled.sample {
            RttMeasurement::Echo { ms } => Duration::from_millis(u64::from(ms.max(1))),
            RttMeasurement::Timed { sent, acked } => acked.since(sent),
        };
        self.on_round_trip(rtt, sampled.snd_una, sampled.snd_nxt)
    }

    /// Like [`RttLinux::on_sample`], for a round trip measured by send times.
    #[inline]
    pub fn on_round_trip(&mut self, rtt: Duration, snd_una: Offset, snd_nxt: Offset) -> Duration {
        // A round trip of more than nine minutes would overflow the eightfold mean.
        let rtt_us = rtt.as_micros().min(u64::from(u32::MAX >> 3)) as u32;
        self.estimate(rtt_us, snd_una, snd_nxt);
        let usecs = u64::from(self.srtt_us >> 3) + u64::from(self.rttvar_us);
        self.set_rto(self.jiffies(usecs));
        self.backoff = 0;
        Duration::from_micros(u64::from(rtt_us))
    }

    /// `tcp_rtt_estimator`.
    fn estimate(&mut self, rtt_us: u32, snd_una: Offset, snd_nxt: Offset) {
        if self.srtt_us == 0 {
            self.srtt_us = (rtt_us << 3).max(1);
            self.mdev_us = rtt_us << 1;
            self.rttvar_us = self.mdev_us.max(RTO_MIN_US);
            self.mdev_max_us = self.rttvar_us;
            self.rtt_seq = snd_nxt;
            return;
        }
        let error = i64::from(rtt_us) - i64::from(self.srtt_us >> 3);
        self.srtt_us = narrow(i64::from(self.srtt_us) + error).max(1);
        let mut step = error.abs() - i64::from(self.mdev_us >> 2);
        if error < 0 && step > 0 {
            // A falling RTT does not raise the deviation as much (Eifel).
            step >>= 3;
        }
        self.mdev_us = narrow(i64::from(self.mdev_us) + step);
        if self.mdev_us > self.mdev_max_us {
            self.mdev_max_us = self.mdev_us;
            self.rttvar_us = self.rttvar_us.max(self.mdev_max_us);
        }
        if snd_una > self.rtt_seq {
            if self.mdev_max_us < self.rttvar_us {
                self.rttvar_us -= (self.rttvar_us - self.mdev_max_us) >> 2;
            }
            self.rtt_seq = snd_nxt;
            self.mdev_max_us = RTO_MIN_US;
        }
    }

    /// Backs off: the timer fired. Doubles the current timeout.
    pub fn on_timeout(&mut self) {
        self.set_rto(u64::from(self.rto) * 2);
        self.backoff += 1;
    }

    /// Takes the last doubling back (tcp_ld_RTO_revert). Returns false if there was none.
    pub fn revert_timeout(&mut self) -> bool {
        if self.backoff == 0 {
            return false;
        }
        self.backoff -= 1;
        let jiffies = match self.srtt_us {
            0 => TIMEOUT_INIT_S * u64::from(self.hz),
            srtt_us => self.jiffies(u64::from(srtt_us >> 3) + u64::from(self.rttvar_us)),
        };
        self.set_rto(jiffies << self.backoff.min(16));
        true
    }

    /// Times that the timeout was doubled since the last sample.
    pub const fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Current retransmission timeout, backed off; a whole number of jiffies.
    #[inline]
    pub fn rto(&self) -> Duration {
        self.rto_span
    }

    /// Smoothed round-trip time, in whole microseconds; `None` before the first sample.
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        (self.srtt_us != 0).then(|| Duration::from_micros(u64::from(self.srtt_us >> 3)))
    }

    /// `srtt_us`: eight times the smoothed RTT, in microseconds; 0 before the first sample.
    pub const fn srtt_us(&self) -> u32 {
        self.srtt_us
    }

    /// The mean deviation (`mdev_us`).
    pub fn deviation(&self) -> Duration {
        Duration::from_micros(u64::from(self.mdev_us >> 2))
    }

    /// The deviation term of the timeout, four times the mean (`rttvar_us`), at least 200 ms.
    pub fn rttvar(&self) -> Duration {
        Duration::from_micros(u64::from(self.rttvar_us))
    }

    /// `usecs_to_jiffies`, rounded up.
    fn jiffies(&self, usecs: u64) -> u64 {
        (usecs * u64::from(self.hz)).div_ceil(1_000_000)
    }
}

/// Clamps to the kernel's 32 bits.
fn narrow(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;

    fn timed(us: u64, snd_una: u64, snd_nxt: u64) -> RttInput {
        let sent = Instant::ZERO;
        RttInput {
            sample: RttMeasurement::Timed { sent, acked: sent + Duration::from_micros(us) },
            shift: 0,
            snd_una: Offset(snd_una),
            snd_nxt: Offset(snd_nxt),
        }
    }

    #[test]
    fn the_first_timeout_is_three_rtts_but_at_least_rtt_plus_200_ms() {
        // Recorded on Linux 6.18: 100.3 ms -> 304 ms with jiffies of 4 ms.
        let mut rtt = RttLinux::new(250);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        let _ = rtt.on_sample(&timed(100_300, 0, 10));
        assert_eq!(rtt.rto(), Duration::from_millis(304));
        // golden/linux c1: 2126 us -> 204 ms.
        let mut rtt = RttLinux::new(250);
        let _ = rtt.on_sample(&timed(2_126, 0, 10));
        assert_eq!(rtt.rto(), Duration::from_millis(204));
        assert_eq!(rtt.rttvar(), Duration::from_millis(200));
    }

    #[test]
    fn the_deviation_falls_once_per_round_trip() {
        let mut rtt = RttLinux::new(1_000);
        // srtt 300 ms, 4 * rttvar = 600 ms.
        let _ = rtt.on_sample(&timed(300_000, 0, 100));
        assert_eq!(rtt.rttvar(), Duration::from_millis(600));
        // mdev 600 -> 450 ms; the round has its first maximum of 600 ms, so nothing decreases.
        let _ = rtt.on_sample(&timed(300_000, 101, 200));
        assert_eq!(rtt.rttvar(), Duration::from_millis(600));
        // Within the next round nothing decreases either.
        let _ = rtt.on_sample(&timed(300_000, 150, 250));
        assert_eq!(rtt.rttvar(), Duration::from_millis(600));
        // At its end: mdev 450 -> 337.5 -> 253.125 ms, the maximum 337.5 ms:
        // 600 - (600 - 337.5) / 4 = 534.375 ms.
        let _ = rtt.on_sample(&timed(300_000, 201, 300));
        assert_eq!(rtt.rttvar(), Duration::from_micros(534_375));
        assert_eq!(rtt.rto(), Duration::from_millis(835));
    }

    #[test]
    fn successive_timeouts_double_the_current_one() {
        let mut rtt = RttLinux::new(250);
        let _ = rtt.on_sample(&timed(45_000, 0, 10));
        assert_eq!(rtt.rto(), Duration::from_millis(248));
        rtt.on_timeout();
        assert_eq!(rtt.rto(), Duration::from_millis(496));
        for _ in 0..20 {
            rtt.on_timeout();
        }
        assert_eq!(rtt.rto(), Duration::from_secs(120));
    }

    #[test]
    fn an_echo_within_a_millisecond_counts_as_one() {
        let mut rtt = RttLinux::new(250);
        let sampled = RttInput { sample: RttMeasurement::Echo { ms: 0 }, ..timed(0, 0, 10) };
        assert_eq!(rtt.on_sample(&sampled), Duration::from_millis(1));
    }
}
