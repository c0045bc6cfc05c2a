//! Linux's `cubic`, in the kernel's fixed point.
//!
//! Source: tcp_cubic.c of kernel 6.18 with its module parameters at their defaults (bictcp_update,
//! cubictcp_cong_avoid, cubictcp_recalc_ssthresh, cubictcp_state, cubictcp_cwnd_event_tx_start,
//! cubictcp_acked); [`hystart`] ends slow start.
//!
//! Time is counted in jiffies, and on the curve in 1/1024 s. While the window is constant the
//! increment is recomputed only every HZ/32 jiffies (28 to 32 ms at HZ = 250): at short RTTs it
//! keeps for many of them the value computed at the first acknowledgment after a change.

mod cubic_root;
pub mod hystart;

use units::{Instant, Offset};

use crate::contract::AckSample;
use crate::contract::ControllerInputs;
use crate::linux::{LinuxCongestionOps, LinuxController};
use cubic_root::cubic_root;
use hystart::HyStartLinux;

/// Fraction of the window kept after a loss, in 1024ths (`beta`).
const BETA: u32 = 717;
/// `BICTCP_BETA_SCALE`.
const BETA_SCALE: u32 = 1_024;
/// The curve's factor C in 1024ths, times ten (`cube_rtt_scale`).
const CUBE_RTT_SCALE: u64 = 410;
/// Shift of C and of time cubed: 10 bits for C, 3 times `BICTCP_HZ`.
const CUBE_SHIFT: u32 = 40;
/// Reno's increment at this `beta`, in eighths of a packet per window (`beta_scale`).
const FRIENDLY_EIGHTHS: u32 = 15;
/// Maximum packets per increment before the first loss.
const UNPROVEN: u32 = 20;

/// A connection with `cubic`.
pub type LinuxCubic = LinuxController<Cubic>;

/// The `cubic` state of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Cubic {
    /// Jiffies per second (`CONFIG_HZ`).
    hz: u32,
    state: BicTcpState,
    hystart: HyStartLinux,
}

/// `struct bictcp` without the HyStart fields. Windows in packets, times in jiffies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct BicTcpState {
    /// Packets delivered per increment of the window (`cnt`).
    pub cnt: u32,
    /// The window before the last loss (`last_max_cwnd`).
    pub last_max_cwnd: u32,
    /// The window when `cnt` was computed (`last_cwnd`).
    pub last_cwnd: u32,
    /// Time of that computation (`last_time`).
    pub last_time: u64,
    /// The window at the inflection point of the curve (`bic_origin_point`).
    pub bic_origin_point: u32,
    /// Time from the start of the epoch to that point, in 1/1024 s (`bic_K`).
    pub bic_k: u32,
    /// Minimum RTT in microseconds; 0 before the first sample (`delay_min`).
    pub delay_min: u32,
    /// Start of the epoch, if there is one (`epoch_start`).
    pub epoch_start: Option<u64>,
    /// Packets counted for the window of a Reno sender (`ack_cnt`).
    pub ack_cnt: u32,
    /// The window of a Reno sender (`tcp_cwnd`).
    pub tcp_cwnd: u32,
}

impl LinuxCubic {
    /// A controller on a host with `hz` jiffies per second (`CONFIG_HZ`; 0 counts as 1); start it
    /// with [`on_established`](crate::Controller::on_established).
    pub fn new(hz: u32) -> Self {
        Self::with(Cubic {
            hz: hz.max(1),
            state: BicTcpState::default(),
            hystart: HyStartLinux::new(),
        })
    }
}

impl Cubic {
    /// The state of the curve.
    pub const fn state(&self) -> &BicTcpState {
        &self.state
    }

    /// The state of HyStart.
    pub const fn hystart(&self) -> &HyStartLinux {
        &self.hystart
    }

    /// The curve part of bictcp_update: `cnt` from the window one RTT ahead.
    fn update_curve(&mut self, jiffies: u64, cwnd: u32, acked: u32) {
        self.state.last_cwnd = cwnd;
        self.state.last_time = jiffies;
        let start = *self.state.epoch_start.get_or_insert_with(|| {
            self.state.ack_cnt = acked;
            self.state.tcp_cwnd = cwnd;
            if self.state.last_max_cwnd <= cwnd {
                self.state.bic_k = 0;
                self.state.bic_origin_point = cwnd;
            } else {
                let distance = u64::from(self.state.last_max_cwnd - cwnd);
                self.state.bic_k = cubic_root((1 << CUBE_SHIFT) / CUBE_RTT_SCALE * distance);
                self.state.bic_origin_point = self.state.last_max_cwnd;
            }
            jiffies
        });
        let hz = u64::from(self.hz);
        // usecs_to_jiffies rounds up.
        let ahead = jiffies.saturating_sub(start)
            + (u64::from(self.state.delay_min) * hz).div_ceil(1_000_000);
        let t = (ahead << 10) / hz;
        let k = u64::from(self.state.bic_k);
        let offs = t.abs_diff(k);
        // Windows below a million packets do not overflow 64 bits; larger ones saturate.
        let cubed = u128::from(CUBE_RTT_SCALE) * u128::from(offs).pow(3);
        let delta = u32::try_from(cubed >> CUBE_SHIFT).unwrap_or(u32::MAX);
        let target = if t < k {
            self.state.bic_origin_point.saturating_sub(delta)
        } else {
            self.state.bic_origin_point.saturating_add(delta)
        };
        self.state.cnt =
            if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        if self.state.last_max_cwnd == 0 {
            self.state.cnt = self.state.cnt.min(UNPROVEN);
        }
    }

    /// Not slower than Reno at this `beta`.
    fn apply_reno_friendly(&mut self, cwnd: u32) {
        let delta = ((u64::from(cwnd) * u64::from(FRIENDLY_EIGHTHS)) >> 3) as u32;
        if delta > 0 && self.state.ack_cnt > delta {
            // The kernel's loop: the remainder is above zero.
            let steps = (self.state.ack_cnt - 1) / delta;
            self.state.ack_cnt -= steps * delta;
            self.state.tcp_cwnd = self.state.tcp_cwnd.saturating_add(steps);
        }
        if self.state.tcp_cwnd > cwnd {
            self.state.cnt = self.state.cnt.min(cwnd / (self.state.tcp_cwnd - cwnd));
        }
    }
}

impl LinuxCongestionOps for Cubic {
    const INPUTS: ControllerInputs = ControllerInputs::ACK_SAMPLES;

    fn init(&mut self, now: Instant, snd_nxt: Offset) {
        self.state = BicTcpState::default();
        self.hystart = HyStartLinux::new();
        self.hystart.reset(now, snd_nxt);
    }

    /// cubictcp_recalc_ssthresh, with fast convergence.
    fn ssthresh(&mut self, snd_cwnd: u32) -> u32 {
        self.state.epoch_start = None;
        let share = |of: u32, parts: u32, whole: u32| {
            (u64::from(of) * u64::from(parts) / u64::from(whole)) as u32
        };
        self.state.last_max_cwnd = if snd_cwnd < self.state.last_max_cwnd {
            share(snd_cwnd, BETA_SCALE + BETA, 2 * BETA_SCALE)
        } else {
            snd_cwnd
        };
        share(snd_cwnd, BETA, BETA_SCALE).max(2)
    }

    /// bictcp_update.
    fn packets_per_growth(&mut self, jiffies: u64, snd_cwnd: u32, acked: u32) -> u32 {
        self.state.ack_cnt = self.state.ack_cnt.saturating_add(acked);
        let held = u64::from(self.hz / 32);
        let age = jiffies.saturating_sub(self.state.last_time);
        if self.state.last_cwnd == snd_cwnd && age <= held {
            return self.state.cnt;
        }
        if self.state.epoch_start.is_none() || age > 0 {
            self.update_curve(jiffies, snd_cwnd, acked);
        }
        self.apply_reno_friendly(snd_cwnd);
        // At most 1.5 times the window per RTT.
        self.state.cnt = self.state.cnt.max(2);
        self.state.cnt
    }

    /// Clears all state (bictcp_reset).
    fn on_loss_state(&mut self, now: Instant, snd_nxt: Offset) {
        self.init(now, snd_nxt);
    }

    /// Shifts the epoch by the pause, which does not count on the curve.
    fn on_tx_start(&mut self, jiffies: u64, last_sent: u64) {
        let pause = jiffies.saturating_sub(last_sent);
        self.state.epoch_start = self.state.epoch_start.map(|start| (start + pause).min(jiffies));
    }

    /// cubictcp_acked.
    fn ends_slow_start(&mut self, sample: &AckSample, snd_cwnd: u32, in_slow_start: bool) -> bool {
        let age = self.state.epoch_start.map(|start| sample.ticks.saturating_sub(start));
        if age.is_some_and(|age| age < u64::from(self.hz)) {
            return false;
        }
        let delay = u32::try_from(sample.rtt.as_micros()).unwrap_or(u32::MAX).max(1);
        if self.state.delay_min == 0 || delay < self.state.delay_min {
            self.state.delay_min = delay;
        }
        in_slow_start && self.hystart.update(sample, delay, self.state.delay_min, snd_cwnd)
    }
}

#[cfg(test)]
mod tests;
