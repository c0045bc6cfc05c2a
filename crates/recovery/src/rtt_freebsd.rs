//! FreeBSD's estimator: whole ticks in, fixed point inside, whole ticks out.
//!
//! Sources: tcp_input.c (tcp_xmit_timer), tcp_timer.h (TCP_REXMTVAL, TCPT_RANGESET), tcp_timer.c
//! (tcp_backoff, tcp_timer_rexmt), tcp_subr.c (tcp_newtcpcb, tcp_get_srtt).
//!
//! A tick is 1/`kern.hz`: 1 ms on hardware, 10 ms where a virtual machine is detected. The
//! smoothed time never falls below 7/32 of a tick, which is its value on a fast network at 100 Hz.

use units::ratio::scaled;
use units::{Duration, Instant};

use crate::rtt::{RttInput, RttMeasurement};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Fraction bits of `t_srtt` (`TCP_RTT_SHIFT`).
const RTT_SHIFT: u32 = 5;
/// Fraction bits of `t_rttvar` (`TCP_RTTVAR_SHIFT`).
const RTTVAR_SHIFT: u32 = 4;
/// Fraction bits of the error term (`TCP_DELTA_SHIFT`).
const DELTA_SHIFT: u32 = 2;
/// Timeouts in a row beyond which the old estimate is invalid (`TCP_RTT_INVALIDATE`).
const RTT_INVALIDATE: u32 = 3;
/// Longest timeout, in seconds (`TCPTV_REXMTMAX`).
const REXMT_MAX_S: i64 = 64;
/// Factors of successive timeouts (`tcp_backoff`).
const BACKOFF: [i64; 13] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 512, 512, 512];

/// The estimator of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RttFreeBsd {
    hz: u32,
    t_srtt: i64,
    t_rttvar: i64,
    t_rxtcur: i64,
    t_rttupdated: u32,
}

impl RttFreeBsd {
    /// An estimator without a sample, at `hz` ticks per second (`kern.hz`; 0 counts as 1). Its
    /// timeout is one second.
    pub fn new(hz: u32) -> Self {
        let hz = hz.max(1);
        // The first timeout backs off from one second (tcp_newtcpcb).
        let t_rttvar = i64::from(hz) << DELTA_SHIFT;
        Self { hz, t_srtt: 0, t_rttvar, t_rxtcur: i64::from(hz), t_rttupdated: 0 }
    }

    /// Processes a sample; returns it as the kernel counts it, in whole ticks, plus one for echoed
    /// timestamps.
    pub fn on_sample(&mut self, sampled: &RttInput) -> Duration {
        let rtt = match sampled.sample {
            RttMeasurement::Echo { ms } => self.ticks_of_echo(ms),
            RttMeasurement::Timed { sent, acked } => {
                u32::try_from(self.tick(acked) - self.tick(sent)).unwrap_or(u32::MAX)
            }
        };
        self.on_ticks(rtt, sampled.shift);
        self.duration(i64::from(rtt))
    }

    /// `tcp_xmit_timer`: processes a round trip of `rtt` ticks after `shift` timeouts in a row.
    pub fn on_ticks(&mut self, rtt: u32, shift: u32) {
        let rtt = i64::from(rtt);
        self.t_rttupdated = self.t_rttupdated.saturating_add(1);
        if self.t_srtt != 0 && shift <= RTT_INVALIDATE {
            let delta = ((rtt - 1) << DELTA_SHIFT) - (self.t_srtt >> (RTT_SHIFT - DELTA_SHIFT));
            self.t_srtt = (self.t_srtt + delta).max(1);
            let delta = delta.abs() - (self.t_rttvar >> (RTTVAR_SHIFT - DELTA_SHIFT));
            self.t_rttvar = (self.t_rttvar + delta).max(1);
        } else {
            // The deviation is half the RTT, so that the first timeout is three RTTs.
            self.t_srtt = rtt << RTT_SHIFT;
            self.t_rttvar = rtt << (RTTVAR_SHIFT - 1);
        }
        self.t_rxtcur = self.range(self.rexmtval(), self.rexmit_min().max(rtt + 2));
    }

    /// Backs off: the timer fired for the `shift`-th time in a row, from 1.
    pub fn on_timeout(&mut self, shift: u32) {
        let factor = BACKOFF[(shift as usize).min(BACKOFF.len() - 1)];
        self.t_rxtcur = self.range(self.rexmtval() * factor, self.rexmit_min());
    }

    /// The persist timeout of tcp_setpersist after `shift` probes, before its bounds: the terms are
    /// scaled as when `t_srtt` had three fractional bits and `t_rttvar` two.
    pub fn persist(&self, shift: u32) -> Duration {
        let factor = BACKOFF[(shift as usize).min(BACKOFF.len() - 1)];
        self.duration((((self.t_srtt >> 2) + self.t_rttvar) >> 1) * factor)
    }

    /// Current retransmission timeout, backed off.
    pub fn rto(&self) -> Duration {
        self.duration(self.t_rxtcur)
    }

    /// Total duration of the timeouts before a connection is dropped: `TCP_REXMTVAL` times
    /// `tcp_totbackoff`, independent of the current backoff.
    pub fn all_timeouts(&self) -> Duration {
        self.duration(self.rexmtval() * BACKOFF.iter().sum::<i64>())
    }

    /// Smoothed round-trip time, with its fraction of a tick; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        let nanos = scaled(self.t_srtt.unsigned_abs(), NANOS_PER_SECOND, u64::from(self.hz));
        (self.t_srtt != 0).then(|| Duration::from_nanos(nanos >> RTT_SHIFT))
    }

    /// The smoothed round-trip time in whole ticks; 0 before the first sample.
    pub fn srtt_ticks(&self) -> u32 {
        u32::try_from(self.t_srtt >> RTT_SHIFT).unwrap_or(u32::MAX)
    }

    /// `tcp_get_srtt` in microseconds, with whole microseconds per tick; 0 before the first sample.
    pub fn srtt_micros(&self) -> u64 {
        let tick_us = u64::from(1_000_000 / self.hz);
        (self.t_srtt.unsigned_abs() * tick_us) >> RTT_SHIFT
    }

    /// `t_srtt`: ticks, with 5 fraction bits; 0 before the first sample.
    pub fn t_srtt(&self) -> i64 {
        self.t_srtt
    }

    /// `t_rttvar`: ticks, with 4 fraction bits.
    pub fn t_rttvar(&self) -> i64 {
        self.t_rttvar
    }

    /// `t_rxtcur`: the current timeout, in ticks.
    pub fn t_rxtcur(&self) -> i64 {
        self.t_rxtcur
    }

    /// `t_rttupdated`: number of samples. 14 and later keep it in eight bits and stop at 255.
    pub fn t_rttupdated(&self) -> u32 {
        self.t_rttupdated
    }

    /// The ticks of a timestamp difference of `ms` as the stack counts them, plus one.
    pub fn ticks_of_echo(&self, ms: u32) -> u32 {
        let ticks = u64::from(ms) * u64::from(self.hz) / 1_000 + 1;
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// The kernel's tick counter at `now`, 0 at the start of the run.
    pub fn tick(&self, now: Instant) -> u64 {
        scaled(now.as_nanos(), u64::from(self.hz), NANOS_PER_SECOND)
    }

    /// `TCP_REXMTVAL`: smoothed time and four deviations, in ticks.
    fn rexmtval(&self) -> i64 {
        let value = (self.t_srtt >> (RTT_SHIFT - DELTA_SHIFT)) + self.t_rttvar;
        self.rexmit_min().max(value >> DELTA_SHIFT)
    }

    /// `TCPT_RANGESET`: `value` plus the slop, clamped.
    fn range(&self, value: i64, min: i64) -> i64 {
        let max = REXMT_MAX_S * i64::from(self.hz);
        (value + self.slop()).max(min).min(max)
    }

    /// `tcp_rexmit_min`: 30 ms.
    fn rexmit_min(&self) -> i64 {
        i64::from(self.hz / 33).max(1)
    }

    /// `tcp_rexmit_slop`: 200 ms.
    fn slop(&self) -> i64 {
        i64::from(self.hz / 5)
    }

    fn duration(&self, ticks: i64) -> Duration {
        Duration::from_nanos(scaled(ticks.unsigned_abs(), NANOS_PER_SECOND, u64::from(self.hz)))
    }
}

#[cfg(test)]
mod tests {
    use units::Offset;

    use super::*;

    fn echo(ms: u32) -> RttInput {
        RttInput {
            sample: RttMeasurement::Echo { ms },
            shift: 0,
            snd_una: Offset(0),
            snd_nxt: Offset(0),
        }
    }

    #[test]
    fn the_first_sample_sets_three_round_trips_and_the_slop() {
        // 100 ms at 1000 Hz: 101 ticks, 4 * 101 / 2 + 101 = 303, and 200 of slop.
        let mut rtt = RttFreeBsd::new(1_000);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        assert_eq!(rtt.srtt(), None);
        assert_eq!(rtt.on_sample(&echo(100)), Duration::from_millis(101));
        assert_eq!(rtt.rto(), Duration::from_millis(503));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(101)));
    }

    #[test]
    fn on_a_fast_network_at_100_hz_srtt_stays_at_seven_32nds_of_a_tick() {
        let mut rtt = RttFreeBsd::new(100);
        for _ in 0..60 {
            let _ = rtt.on_sample(&echo(0));
        }
        assert_eq!(rtt.t_srtt(), 7);
        assert_eq!(rtt.srtt(), Some(Duration::from_nanos(2_187_500)));
        assert_eq!(rtt.rto(), Duration::from_millis(230));
    }

    #[test]
    fn successive_timeouts_double_up_to_64_seconds() {
        // With minimum values: max(30 ms, ...) * 2^shift + 200 ms.
        let mut rtt = RttFreeBsd::new(1_000);
        for _ in 0..60 {
            let _ = rtt.on_sample(&echo(0));
        }
        let after = |shift| {
            let mut rtt = rtt.clone();
            rtt.on_timeout(shift);
            rtt.rto()
        };
        assert_eq!(after(1), Duration::from_millis(260));
        assert_eq!(after(2), Duration::from_millis(320));
        assert_eq!(after(9), Duration::from_millis(30 * 512 + 200));
        assert_eq!(after(99), after(9));
        let mut slow = RttFreeBsd::new(1_000);
        slow.on_timeout(7);
        assert_eq!(slow.rto(), Duration::from_secs(64));
    }

    #[test]
    fn a_timed_sample_counts_elapsed_ticks() {
        // From 9.9 ms to 20.1 ms two ticks of 10 ms begin, at 10 and at 20.
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        let mut rtt = RttFreeBsd::new(100);
        let sampled = RttInput {
            sample: RttMeasurement::Timed { sent: at(9_900), acked: at(20_100) },
            ..echo(0)
        };
        assert_eq!(rtt.on_sample(&sampled), Duration::from_millis(20));
    }
}
