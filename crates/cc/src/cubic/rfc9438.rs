//! CUBIC of RFC 9438, with HyStart++ (RFC 9406).
//!
//! Sections: 4.2 (the curve), 4.3 (Reno-friendly region), 4.4 and 4.5 (towards the target), 4.6
//! (decrease), 4.7 (fast convergence), 4.8 (timeout), 4.9 (spurious events), 4.10 (slow start).
//! Where the text leaves a choice:
//! - The decrease uses the bytes in flight (4.6); the stack's PRR sets the window until the
//!   recovery ends.
//! - Application-limited time does not count (4.2, `t_epoch` is shifted).
//! - `(target - cwnd) / cwnd` is added "for each received new ACK", not for each segment of one.
//!
//! Integers throughout: microseconds, and bytes with 16 fraction bits.

use units::{Bytes, Instant, Offset};

use crate::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, Growth, IdleEvent, RecoveryEnd, WindowChange,
    WindowController,
};
use crate::hystart_rfc::HyStartRfc;

/// Fraction bits of windows.
const FRACTION: u32 = 16;
/// `C` in segments per second cubed: 0.4.
const C: (u128, u128) = (2, 5);
/// `beta_cubic`: 0.7.
const BETA: (u64, u64) = (7, 10);
/// `alpha_cubic` until the window before the reduction is reached: 3 (1 - beta) / (1 + beta).
const ALPHA: (u64, u64) = (9, 17);
/// Initial window in segments and in bytes (RFC 6928).
const INITIAL: (u64, u64) = (10, 14_600);
/// Cubic microseconds in a cubic second.
const MICROS_CUBED: u128 = 1_000_000_000_000_000_000;
/// Maximum distance from the plateau: beyond it the curve exceeds any window, and its cube would
/// overflow.
const LONGEST_US: u64 = 2_000_000_000;
/// Largest window: 1 GiB, the largest that can be advertised (RFC 7323).
const MOST: u64 = 1 << 30;

/// RFC 9438's CUBIC on one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct RfcCubic {
    smss: u64,
    state: RfcCubicState,
    recover: Offset,
    reduction: ReductionState,
    hystart: Option<HyStartRfc>,
    before: Option<(RfcCubicState, Option<HyStartRfc>)>,
    last_ack: Option<Instant>,
}

/// The state that a spurious event restores (section 4.9). Windows in bytes, with fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct RfcCubicState {
    cwnd: u64,
    ssthresh: Option<u64>,
    w_max: u64,
    /// Window when `ssthresh` was last set (`cwnd_prior`).
    cwnd_prior: u64,
    w_est: u64,
    epoch: Option<RfcCubicEpoch>,
    /// The next epoch begins at its plateau: after a timeout, or slow start that ended without a
    /// loss.
    at_plateau: bool,
}

/// A congestion avoidance stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct RfcCubicEpoch {
    began: Instant,
    /// Microseconds from its start to the plateau (`K`).
    k_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
enum ReductionState {
    None,
    Recovery,
    Ecn,
}

impl RfcCubic {
    /// A controller that opens with [`on_established`](Controller::on_established).
    pub fn new() -> Self {
        Self {
            smss: 1,
            state: RfcCubicState {
                cwnd: 1 << FRACTION,
                ssthresh: None,
                w_max: 0,
                cwnd_prior: 0,
                w_est: 0,
                epoch: None,
                at_plateau: true,
            },
            recover: Offset(0),
            reduction: ReductionState::None,
            hystart: Some(HyStartRfc::default()),
            before: None,
            last_ack: None,
        }
    }

    /// The window in whole bytes.
    fn cwnd(&self) -> u64 {
        self.state.cwnd >> FRACTION
    }

    fn set_cwnd(&mut self, bytes: u64) {
        self.state.cwnd = bytes.clamp(1, MOST) << FRACTION;
    }

    fn slow_start(&mut self, event: &AckEvent) {
        let growth = match &mut self.hystart {
            // The first slow start only (RFC 9406 section 4.3).
            Some(hystart) => {
                let rtt = event.rtt;
                hystart.on_acked(event.una, event.snd_nxt, rtt, event.bytes, self.smss)
            }
            None => Some(event.bytes.min(self.smss)),
        };
        match growth {
            Some(bytes) => self.set_cwnd(self.cwnd() + bytes),
            None => {
                self.hystart = None;
                self.state.ssthresh = Some(self.cwnd());
                self.state.cwnd_prior = self.state.cwnd;
            }
        }
    }

    /// The current congestion avoidance stage; begins one if there is none.
    fn epoch(&mut self, now: Instant) -> RfcCubicEpoch {
        if let Some(epoch) = self.state.epoch {
            return epoch;
        }
        let state = &mut self.state;
        if core::mem::take(&mut state.at_plateau) {
            state.w_max = state.cwnd;
        }
        state.w_est = state.cwnd;
        let distance = u128::from(state.w_max.saturating_sub(state.cwnd));
        // (W_max - cwnd) / C seconds cubed; 10^18 cubic microseconds in one.
        let per = (C.0 * u128::from(self.smss)) << FRACTION;
        let epoch =
            RfcCubicEpoch { began: now, k_us: cube_root(distance * C.1 * MICROS_CUBED / per) };
        state.epoch = Some(epoch);
        epoch
    }

    /// `W_cubic(t)` in bytes with fraction, `t_us` after the start of the epoch.
    fn curve(&self, epoch: &RfcCubicEpoch, t_us: u64) -> u64 {
        let distance = u128::from(t_us.abs_diff(epoch.k_us).min(LONGEST_US));
        let cube = distance * distance * distance;
        let steep = (C.0 * u128::from(self.smss)) << FRACTION;
        let grown = cube * steep / (C.1 * MICROS_CUBED);
        let grown = u64::try_from(grown).unwrap_or(u64::MAX);
        if t_us < epoch.k_us {
            self.state.w_max.saturating_sub(grown)
        } else {
            self.state.w_max.saturating_add(grown)
        }
    }

    fn avoidance(&mut self, event: &AckEvent) {
        let epoch = self.epoch(event.now);
        let t_us = event.now.since(epoch.began).as_micros();
        let target = self.curve(&epoch, t_us.saturating_add(u64::from(event.srtt.micros)));
        let curve = self.curve(&epoch, t_us);
        let state = &mut self.state;
        let cwnd = state.cwnd;
        // 4.3: segments acknowledged over segments of window, times alpha.
        let (num, den) = if state.w_est < state.cwnd_prior { ALPHA } else { (1, 1) };
        let share = (u128::from(event.bytes) * u128::from(self.smss)) << (2 * FRACTION);
        let grown = share * u128::from(num) / (u128::from(den) * u128::from(cwnd.max(1)));
        state.w_est = state.w_est.saturating_add(u64::try_from(grown).unwrap_or(u64::MAX));
        let next = if curve < state.w_est {
            state.w_est.max(cwnd)
        } else {
            let target = target.clamp(cwnd, cwnd.saturating_add(cwnd / 2));
            let step = (u128::from(target - cwnd) * u128::from(self.smss)) << FRACTION;
            cwnd.saturating_add((step / u128::from(cwnd.max(1))) as u64)
        };
        state.cwnd = next.min(MOST << FRACTION);
    }

    /// Sections 4.6 and 4.7; the window is unchanged.
    fn reduce(&mut self, event: &CongestionEvent) {
        self.before = Some((self.state, self.hystart.take()));
        let state = &mut self.state;
        state.cwnd_prior = state.cwnd;
        state.w_max = if state.cwnd < state.w_max {
            // cwnd (1 + beta) / 2
            state.cwnd / (2 * BETA.1) * (BETA.0 + BETA.1)
        } else {
            state.cwnd
        };
        state.epoch = None;
        state.at_plateau = false;
        state.ssthresh = Some((event.pipe / BETA.1 * BETA.0).max(2 * self.smss));
        self.recover = event.snd_max;
    }

    fn undo(&mut self) -> WindowChange {
        let Some((state, hystart)) = self.before.take() else { return WindowChange::None };
        let cwnd = self.state.cwnd.max(state.cwnd);
        self.state = RfcCubicState { cwnd, ..state };
        self.hystart = hystart;
        self.reduction = ReductionState::None;
        WindowChange::Undone
    }
}

impl Default for RfcCubic {
    fn default() -> Self {
        Self::new()
    }
}

/// The largest number whose cube is at most `n`.
fn cube_root(n: u128) -> u64 {
    let (mut low, mut high) = (0_u128, 1 << 42);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= n { low = middle } else { high = middle - 1 }
    }
    low as u64
}

impl DeclaredInputs for RfcCubic {
    const INPUTS: ControllerInputs = ControllerInputs::SRTT;
}

impl Controller for RfcCubic {
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        *self = Self::new();
        self.smss = u64::from(event.mss.clamp(1, 65_535));
        self.recover = event.una;
        let initial = (INITIAL.0 * self.smss).min(INITIAL.1.max(2 * self.smss));
        self.set_cwnd(if event.syn_retransmitted { self.smss } else { initial });
        self.state.ssthresh = event.ssthresh.map(|bytes| bytes.get().max(2 * self.smss));
        WindowChange::None
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        let last = self.last_ack.replace(event.now);
        if !event.window_limited {
            if let (Some(epoch), Some(last)) = (&mut self.state.epoch, last) {
                epoch.began += event.now.since(last);
            }
            return WindowChange::None;
        }
        if self.reduction != ReductionState::None {
            return WindowChange::None;
        }
        let before = self.cwnd();
        let slow_start = self.in_slow_start();
        if slow_start {
            self.slow_start(event);
        } else {
            self.avoidance(event);
        }
        match self.cwnd() > before {
            true if slow_start => WindowChange::Grew(Growth::SlowStart),
            true => WindowChange::Grew(Growth::Avoidance),
            false if slow_start && !self.in_slow_start() => WindowChange::SlowStartEnded,
            false => WindowChange::None,
        }
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        match event.signal {
            CongestionSignal::Loss if self.reduction == ReductionState::Recovery => {
                WindowChange::None
            }
            CongestionSignal::Loss => {
                if self.reduction == ReductionState::None {
                    self.reduce(event);
                }
                self.recover = event.snd_max;
                self.reduction = ReductionState::Recovery;
                WindowChange::RecoveryBegan
            }
            CongestionSignal::Ecn if self.reduction == ReductionState::None => {
                self.reduce(event);
                self.reduction = ReductionState::Ecn;
                // One segment would be allowed here (4.6); the threshold is at least two.
                self.set_cwnd(self.state.ssthresh.unwrap_or(self.smss));
                WindowChange::RecoveryBegan
            }
            CongestionSignal::Ecn | CongestionSignal::PathMtu => WindowChange::None,
            CongestionSignal::Timeout { shift } => {
                if shift <= 1 {
                    self.reduce(event);
                }
                self.recover = event.snd_max;
                self.reduction = ReductionState::None;
                self.state.epoch = None;
                self.state.at_plateau = true;
                self.set_cwnd(self.smss);
                WindowChange::Collapsed
            }
            CongestionSignal::SpuriousTimeout | CongestionSignal::SpuriousRecovery => self.undo(),
        }
    }

    fn on_recovered(&mut self, _event: &RecoveryEnd) -> WindowChange {
        if let (ReductionState::Recovery, Some(ssthresh)) = (self.reduction, self.state.ssthresh) {
            self.set_cwnd(ssthresh);
        }
        self.reduction = ReductionState::None;
        WindowChange::RecoveryEnded
    }

    /// RFC 5681 section 4.1; the curve restarts from the window after it.
    fn on_idle(&mut self, _event: &IdleEvent) -> WindowChange {
        let before = self.cwnd();
        let initial = (INITIAL.0 * self.smss).min(INITIAL.1.max(2 * self.smss));
        self.state.ssthresh = self.state.ssthresh.map(|bytes| bytes.max(before / 4 * 3));
        self.state.epoch = None;
        if before <= initial {
            return WindowChange::None;
        }
        self.set_cwnd(initial);
        WindowChange::Shrank
    }

    fn on_mss(&mut self, mss: u32, _maxseg: u32) {
        self.smss = u64::from(mss.clamp(1, 65_535));
    }

    fn control(&self) -> Control {
        Control {
            window: Bytes(self.cwnd()),
            ssthresh: self.state.ssthresh.map(Bytes),
            pacing: None,
        }
    }

    fn set_window(&mut self, window: Bytes) {
        self.set_cwnd(window.get());
    }

    fn leave_recovery(&mut self) {
        self.reduction = ReductionState::None;
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        self.state.ssthresh = ssthresh.map(Bytes::get);
    }

    fn in_recovery(&self) -> bool {
        self.reduction == ReductionState::Recovery
    }

    fn in_slow_start(&self) -> bool {
        self.state.ssthresh.is_none_or(|ssthresh| self.cwnd() < ssthresh)
    }

    fn recovery_point(&self) -> Offset {
        self.recover
    }
}

impl WindowController for RfcCubic {}
