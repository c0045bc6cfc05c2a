//! Linux's `cubic`, in the kernel's fixed point.
//!
//! Source: tcp_cubic.c of kernel 6.18 with its module parameters at their defaults (bictcp_update,
//! cubictcp_cong_avoid, cubictcp_recalc_ssthresh, cubictcp_state, cubictcp_cwnd_event_tx_start,
//! cubictcp_acked); slow start ends by [`hystart`].
//!
//! Time is counted in jiffies, and on the curve in 1/1024 s. While the window stands still the
//! increment is computed anew only every HZ/32 jiffies (28 to 32 ms at HZ = 250): at short round
//! trips it stays for many of them at what the first acknowledgment after a change made of it.

mod cubic_root;
pub mod hystart;

use units::{Instant, Offset};

use crate::contract::AckSample;
use crate::linux::{Linux, Operations};
use cubic_root::cubic_root;
use hystart::HyStart;

/// What is left of the window after a loss, in 1024ths (`beta`).
const BETA: u32 = 717;
/// `BICTCP_BETA_SCALE`.
const BETA_SCALE: u32 = 1_024;
/// The curve's factor C in 1024ths, times ten (`cube_rtt_scale`).
const CUBE_RTT_SCALE: u64 = 410;
/// Shift of C and of time cubed: 10 bits for C, 3 times `BICTCP_HZ`.
const CUBE_SHIFT: u32 = 40;
/// Reno's increment at this `beta`, in eighths of a packet per window (`beta_scale`).
const FRIENDLY_EIGHTHS: u32 = 15;
/// Packets for one of growth at most, while no loss was ever seen.
const UNPROVEN: u32 = 20;

/// The connection with `cubic`.
pub type LinuxCubic = Linux<Cubic>;

/// State of `cubic` (`struct bictcp`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubic {
    /// Jiffies per second (`CONFIG_HZ`).
    hz: u32,
    /// Packets delivered for one packet of growth.
    cnt: u32,
    /// The window before the last loss.
    last_max_cwnd: u32,
    /// The window when `cnt` was computed, and when.
    last_cwnd: u32,
    last_time: u64,
    /// The window at the middle of the curve.
    bic_origin_point: u32,
    /// Time from the start of the epoch to the middle of the curve, in 1/1024 s.
    bic_k: u32,
    /// Least round trip in microseconds; 0 before the first.
    delay_min: u32,
    /// When the epoch began, in jiffies.
    epoch_start: Option<u64>,
    /// Packets counted for the window that Reno would have.
    ack_cnt: u32,
    tcp_cwnd: u32,
    hystart: HyStart,
}

impl LinuxCubic {
    /// A controller of a host with `hz` jiffies per second (`CONFIG_HZ`; 0 counts as 1); it opens with
    /// [`on_established`](crate::Controller::on_established).
    pub const fn new(hz: u32) -> Self {
        Self::with(Cubic::new(if hz == 0 { 1 } else { hz }))
    }
}

impl Cubic {
    const fn new(hz: u32) -> Self {
        Self {
            hz,
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_time: 0,
            bic_origin_point: 0,
            bic_k: 0,
            delay_min: 0,
            epoch_start: None,
            ack_cnt: 0,
            tcp_cwnd: 0,
            hystart: HyStart::new(),
        }
    }

    /// `cnt`: packets delivered for one packet of growth.
    pub const fn cnt(&self) -> u32 {
        self.cnt
    }

    /// `last_max_cwnd`: the window before the last loss, in packets.
    pub const fn last_max_cwnd(&self) -> u32 {
        self.last_max_cwnd
    }

    /// `bic_origin_point`: the window at the middle of the curve, in packets.
    pub const fn bic_origin_point(&self) -> u32 {
        self.bic_origin_point
    }

    /// `bic_K`: from the start of the epoch to the middle of the curve, in 1/1024 s.
    pub const fn bic_k(&self) -> u32 {
        self.bic_k
    }

    /// `ack_cnt`: packets counted for the window that Reno would have.
    pub const fn ack_cnt(&self) -> u32 {
        self.ack_cnt
    }

    /// `tcp_cwnd`: that window, in packets.
    pub const fn tcp_cwnd(&self) -> u32 {
        self.tcp_cwnd
    }

    /// Jiffies from the start of the epoch to `last_time`; `None` outside an epoch.
    pub fn epoch_age(&self) -> Option<u64> {
        self.epoch_start.map(|start| self.last_time.saturating_sub(start))
    }

    /// `delay_min`: least round trip in microseconds; 0 before the first.
    pub const fn delay_min(&self) -> u32 {
        self.delay_min
    }

    /// Slow start's end.
    pub const fn hystart(&self) -> &HyStart {
        &self.hystart
    }

    /// The curve's part of bictcp_update: `cnt` from where the window will be one round trip on.
    fn follow_curve(&mut self, jiffies: u64, cwnd: u32, acked: u32) {
        self.last_cwnd = cwnd;
        self.last_time = jiffies;
        let start = *self.epoch_start.get_or_insert_with(|| {
            self.ack_cnt = acked;
            self.tcp_cwnd = cwnd;
            if self.last_max_cwnd <= cwnd {
                self.bic_k = 0;
                self.bic_origin_point = cwnd;
            } else {
                let distance = u64::from(self.last_max_cwnd - cwnd);
                self.bic_k = cubic_root((1 << CUBE_SHIFT) / CUBE_RTT_SCALE * distance);
                self.bic_origin_point = self.last_max_cwnd;
            }
            jiffies
        });
        let hz = u64::from(self.hz);
        // usecs_to_jiffies rounds up.
        let ahead =
            jiffies.saturating_sub(start) + (u64::from(self.delay_min) * hz).div_ceil(1_000_000);
        let t = (ahead << 10) / hz;
        let k = u64::from(self.bic_k);
        let offs = t.abs_diff(k);
        // Windows below a million packets do not overflow 64 bits; whatever else stops at the top.
        let cubed = u128::from(CUBE_RTT_SCALE) * u128::from(offs).pow(3);
        let delta = u32::try_from(cubed >> CUBE_SHIFT).unwrap_or(u32::MAX);
        let target = if t < k {
            self.bic_origin_point.saturating_sub(delta)
        } else {
            self.bic_origin_point.saturating_add(delta)
        };
        self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        if self.last_max_cwnd == 0 {
            self.cnt = self.cnt.min(UNPROVEN);
        }
    }

    /// Not slower than Reno would be at this `beta`.
    fn be_friendly(&mut self, cwnd: u32) {
        let delta = ((u64::from(cwnd) * u64::from(FRIENDLY_EIGHTHS)) >> 3) as u32;
        if delta > 0 && self.ack_cnt > delta {
            // The kernel's loop: what is left is above zero.
            let steps = (self.ack_cnt - 1) / delta;
            self.ack_cnt -= steps * delta;
            self.tcp_cwnd = self.tcp_cwnd.saturating_add(steps);
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
    }
}

impl Operations for Cubic {
    fn init(&mut self, now: Instant, snd_nxt: Offset) {
        *self = Self::new(self.hz);
        self.hystart.reset(now, snd_nxt);
    }

    /// cubictcp_recalc_ssthresh, with fast convergence.
    fn ssthresh(&mut self, snd_cwnd: u32) -> u32 {
        self.epoch_start = None;
        let share = |of: u32, parts: u32, whole: u32| {
            (u64::from(of) * u64::from(parts) / u64::from(whole)) as u32
        };
        self.last_max_cwnd = if snd_cwnd < self.last_max_cwnd {
            share(snd_cwnd, BETA_SCALE + BETA, 2 * BETA_SCALE)
        } else {
            snd_cwnd
        };
        share(snd_cwnd, BETA, BETA_SCALE).max(2)
    }

    /// bictcp_update.
    fn packets_per_growth(&mut self, jiffies: u64, snd_cwnd: u32, acked: u32) -> u32 {
        self.ack_cnt = self.ack_cnt.saturating_add(acked);
        let held = u64::from(self.hz / 32);
        let age = jiffies.saturating_sub(self.last_time);
        if self.last_cwnd == snd_cwnd && age <= held {
            return self.cnt;
        }
        if self.epoch_start.is_none() || age > 0 {
            self.follow_curve(jiffies, snd_cwnd, acked);
        }
        self.be_friendly(snd_cwnd);
        // At most half as much again per round trip.
        self.cnt = self.cnt.max(2);
        self.cnt
    }

    /// All is forgotten (bictcp_reset).
    fn on_loss_state(&mut self, now: Instant, snd_nxt: Offset) {
        self.init(now, snd_nxt);
    }

    /// The pause moves the epoch along: it is no time on the curve.
    fn on_tx_start(&mut self, jiffies: u64, last_sent: u64) {
        let pause = jiffies.saturating_sub(last_sent);
        self.epoch_start = self.epoch_start.map(|start| (start + pause).min(jiffies));
    }

    /// cubictcp_acked.
    fn ends_slow_start(&mut self, sample: &AckSample, snd_cwnd: u32, in_slow_start: bool) -> bool {
        let age = self.epoch_start.map(|start| sample.ticks.saturating_sub(start));
        if age.is_some_and(|age| age < u64::from(self.hz)) {
            return false;
        }
        let delay = u32::try_from(sample.rtt.as_micros()).unwrap_or(u32::MAX).max(1);
        if self.delay_min == 0 || delay < self.delay_min {
            self.delay_min = delay;
        }
        in_slow_start && self.hystart.update(sample, delay, self.delay_min, snd_cwnd)
    }
}

#[cfg(test)]
mod tests;
