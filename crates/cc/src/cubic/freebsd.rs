//! FreeBSD's CUBIC, in all its versions.
//!
//! Source: cc_cubic.c (cubic_ack_received, cubic_cong_signal, cubic_ssthresh_update,
//! cubic_get_ssthresh, cubic_post_recovery, cubic_record_rtt, cubic_after_idle, cubic_conn_init).
//! Versions differ by [`CubicParams`] only. It uses NewReno's slow start, response to idle and,
//! since D46546, growth and decrease: see `CcTcpcb`.
//!
//! Where it departs from RFC 8312 and RFC 9438 it follows the kernel:
//! - Time since the epoch advances by ticks of `kern.hz`, even where it is counted in microseconds.
//! - The smoothed RTT cannot fall below 7/32 of a tick (see `recovery::RttFreeBsd`), and is at
//!   least a whole tick in the versions that count in ticks. On a fast network at 100 Hz it is 15
//!   to 100 times too long, and the modelled TCP-friendly window grows that much too slowly.
//! - After a recovery the window is 0.7 of the plateau, which fast convergence may have reduced,
//!   independent of the threshold.

use units::{Bytes, Offset};

use super::fixed::{BETA, FC_FACTOR, cubic_cwnd, cubic_k, cubic_k_from, share, tf_cwnd};
use super::params::{ClockUnit, CubicGrowth, CubicParams, CubicTimeoutRule, FriendlyWindow};
use crate::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, Growth, IdleEvent, RecoveryEnd, RttSample, SmoothedRtt,
    WindowChange, WindowController,
};
use crate::freebsd::{CcTcpcb, clamped};
use crate::hystart::HyStartFreeBsd;
use crate::newreno::{self, NewReno};

/// `CUBIC_MIN_RTT_SAMPLES`: samples before the smoothed RTT is used.
const MIN_RTT_SAMPLES: u32 = 8;
/// Fraction bits of the estimator (`TCP_RTT_SHIFT`).
const RTT_SHIFT: u32 = 5;

/// FreeBSD's CUBIC on one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct FreeBsdCubic {
    params: CubicParams,
    /// Ticks per second, and microseconds per tick as the kernel rounds them (`hz`, `tick`).
    hz: i32,
    tick_us: i32,
    tcb: CcTcpcb,
    state: FreeBsdCubicState,
}

/// `struct cubic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub struct FreeBsdCubicState {
    /// Seconds from the epoch to the plateau, eight fraction bits (`K`).
    pub k: i64,
    /// Plateau in bytes (`W_max`).
    pub w_max: u64,
    /// Ticks at which the epoch began (`t_epoch`).
    pub t_epoch: i32,
    /// Window in bytes at that time (`cwnd_epoch`); the RFC 9438 follow-up only.
    pub cwnd_epoch: u32,
    /// True after a loss, an ECN echo or a timeout (`CUBICFLAG_CONG_EVENT`).
    pub cong_event: bool,
    /// True if the last acknowledgment was in slow start (`CUBICFLAG_IN_SLOWSTART`).
    pub in_slow_start: bool,
    /// The sender was application-limited (`CUBICFLAG_IN_APPLIMIT`).
    pub in_applimit: bool,
    /// True in the slow start after a timeout (`CUBICFLAG_RTO_EVENT`).
    pub rto_event: bool,
    /// In the TCP-friendly region (`CUBICFLAG_IN_TF`).
    pub in_tf: bool,
    /// Minimum smoothed RTT, 0 before there is one; ticks or microseconds (`min_rtt`).
    pub min_rtt: i32,
    /// Mean of the smoothed RTT over the previous epoch (`mean_rtt`).
    pub mean_rtt: i32,
    /// Sum of the smoothed RTT over this epoch (`sum_rtt`).
    pub sum_rtt: i64,
    /// Acknowledgments in this epoch (`epoch_ack_count`).
    pub epoch_acks: i32,
    /// `K`, `W_max`, `t_epoch` and `cwnd_epoch` for the undo of a timeout; the versions in ticks
    /// recompute `K` and keep one more plateau.
    before: (i64, u64, i32, u32),
    older_w_max: u64,
}

impl FreeBsdCubic {
    /// A controller of that version with that NewReno, whose slow start and sysctls it shares, on a
    /// host of `hz` ticks per second (`kern.hz`, 1 to 1,000,000). Start it with
    /// [`on_established`](Controller::on_established).
    pub fn new(params: CubicParams, newreno: newreno::NewRenoParams, hz: u32) -> Self {
        let hz = hz.clamp(1, 1_000_000) as i32;
        Self {
            params,
            hz,
            tick_us: 1_000_000 / hz,
            tcb: CcTcpcb::new(newreno::NewRenoParams { growth_unit: params.unit, ..newreno }),
            state: FreeBsdCubicState::default(),
        }
    }

    /// Its parameters.
    pub fn params(&self) -> &CubicParams {
        &self.params
    }

    /// The CUBIC state.
    pub fn epoch(&self) -> &FreeBsdCubicState {
        &self.state
    }

    /// State of HyStart++.
    pub fn hystart(&self) -> &HyStartFreeBsd {
        &self.tcb.hystart
    }

    /// `snd_cwnd` in bytes.
    pub fn snd_cwnd(&self) -> u32 {
        self.tcb.snd_cwnd
    }

    /// `snd_ssthresh` in bytes; 1,073,725,440 while unset.
    pub fn snd_ssthresh(&self) -> u32 {
        self.tcb.snd_ssthresh
    }

    /// `t_bytes_acked`: bytes counted towards the next segment of NewReno's growth.
    pub fn bytes_acked(&self) -> u32 {
        self.tcb.bytes_acked
    }

    /// `CCF_ABC_SENTAWND`: true if that next segment is due.
    pub fn sent_a_wnd(&self) -> bool {
        self.tcb.sent_a_wnd
    }

    /// True if the window was reduced for congestion in the current flight (`TF_CONGRECOVERY`).
    pub fn in_congrecovery(&self) -> bool {
        self.tcb.in_congrecovery
    }

    /// The TCP-friendly window in bytes `ticks` after the start of the epoch, in versions that
    /// model it; `None` in others.
    pub fn modelled_friendly_window(&self, ticks: i32) -> Option<u64> {
        let model = self.params.friendly == FriendlyWindow::Modelled;
        model.then(|| {
            let unit = self.tcb.growth_unit();
            tf_cwnd(self.in_units(ticks), self.state.mean_rtt, self.state.w_max, unit)
        })
    }

    /// Converts ticks to this version's unit of time.
    fn in_units(&self, ticks: i32) -> i32 {
        match self.params.clock {
            ClockUnit::Ticks => ticks,
            ClockUnit::Micros => ticks.wrapping_mul(self.tick_us),
        }
    }

    /// Units of time per second.
    fn units_per_second(&self) -> i64 {
        match self.params.clock {
            ClockUnit::Ticks => i64::from(self.hz),
            ClockUnit::Micros => i64::from(self.hz) * i64::from(self.tick_us),
        }
    }

    /// `cubic_k` for the plateau, in segments of `unit`.
    fn time_to_plateau(&self, unit: u32) -> i64 {
        let unit = unit.max(1);
        match self.params.avoidance {
            CubicGrowth::Jump => cubic_k(self.state.w_max / u64::from(unit)),
            CubicGrowth::Steps => {
                cubic_k_from(clamped(self.state.w_max) / unit, self.state.cwnd_epoch / unit)
            }
        }
    }

    /// `cubic_record_rtt`.
    fn record_rtt(&mut self, srtt: &SmoothedRtt) {
        if srtt.samples < MIN_RTT_SAMPLES {
            return;
        }
        let (srtt, floor) = match self.params.clock {
            ClockUnit::Ticks => (srtt.ticks, 1),
            ClockUnit::Micros => (srtt.micros, self.tick_us >> RTT_SHIFT),
        };
        let srtt = i32::try_from(srtt).unwrap_or(i32::MAX);
        let state = &mut self.state;
        if srtt < state.min_rtt || state.min_rtt == 0 {
            state.min_rtt = srtt.max(floor);
            state.mean_rtt = state.mean_rtt.max(state.min_rtt);
        }
        state.sum_rtt += i64::from(srtt);
        state.epoch_acks = state.epoch_acks.wrapping_add(1);
    }

    fn slow_start(&mut self, event: &AckEvent, bytes: u32) -> WindowChange {
        self.state.in_slow_start = true;
        if self.params.borrowed_slow_start {
            return NewReno::ack_received(&mut self.tcb, event, bytes);
        }
        let increase = self.tcb.slow_start_increase(event, bytes);
        if increase == 0 {
            return WindowChange::None;
        }
        self.tcb.grow_to(self.tcb.enlarged(increase), Growth::SlowStart)
    }

    /// Time since the start of the epoch, in units. On overflow the start of the epoch is moved.
    fn since_epoch(&mut self, ticks: i32) -> i32 {
        let since = self.in_units(ticks.wrapping_sub(self.state.t_epoch));
        if since >= 0 {
            return since;
        }
        self.state.t_epoch = ticks.wrapping_sub(i32::MAX);
        i32::MAX
    }

    fn avoidance(&mut self, event: &AckEvent) -> WindowChange {
        self.tcb.hystart.on_threshold_passed();
        let ticks = event.ticks as i32;
        let unit = self.tcb.growth_unit();
        match self.params.avoidance {
            CubicGrowth::Jump => self.maybe_begin_epoch(ticks, unit),
            CubicGrowth::Steps => self.begin_epoch_if_due(ticks, unit),
        }
        let since = self.since_epoch(ticks);
        let state = self.state;
        let friendly = match self.params.friendly {
            FriendlyWindow::Modelled => {
                self.tcb.sent_a_wnd = false;
                tf_cwnd(since, state.mean_rtt, state.w_max, unit)
            }
            FriendlyWindow::NewReno => {
                let increase = self.tcb.avoidance_increase();
                let same = self.tcb.snd_cwnd;
                u64::from(if increase > 0 { self.tcb.enlarged(increase) } else { same })
            }
        };
        let ahead = since.wrapping_add(state.mean_rtt);
        let curve = cubic_cwnd(ahead, state.w_max, unit, state.k, self.units_per_second());
        match self.params.avoidance {
            CubicGrowth::Jump => self.jump(friendly, curve, unit),
            // The curve is a 32-bit number here.
            CubicGrowth::Steps => self.step(friendly, u64::from(curve as u32), unit),
        }
    }

    /// Versions that jump: an epoch begins when slow start ends or the sender was
    /// application-limited.
    fn maybe_begin_epoch(&mut self, ticks: i32, unit: u32) {
        let state = &mut self.state;
        if state.rto_event && state.in_slow_start {
            // RFC 8312 section 4.7.
            state.rto_event = false;
            state.in_slow_start = false;
            state.w_max = u64::from(self.tcb.snd_cwnd);
            state.k = 0;
            if self.params.timeout_rule == CubicTimeoutRule::SharePipeOnceNewEpoch {
                state.t_epoch = ticks;
            }
        } else if state.in_slow_start || state.in_applimit {
            state.in_slow_start = false;
            state.in_applimit = false;
            state.t_epoch = ticks;
            self.state.k = self.time_to_plateau(unit);
        }
    }

    /// The RFC 9438 follow-up: an epoch also begins after congestion.
    fn begin_epoch_if_due(&mut self, ticks: i32, unit: u32) {
        let state = &mut self.state;
        if !state.in_slow_start && !state.cong_event && !state.in_applimit {
            return;
        }
        state.in_slow_start = false;
        state.cong_event = false;
        state.in_applimit = false;
        state.t_epoch = ticks;
        state.cwnd_epoch = self.tcb.snd_cwnd;
        self.state.k = self.time_to_plateau(unit);
        if self.state.rto_event {
            // RFC 9438 section 4.8.
            self.state.rto_event = false;
            self.state.w_max = u64::from(self.tcb.snd_cwnd);
            self.state.k = 0;
        }
    }

    fn jump(&mut self, friendly: u64, curve: u64, unit: u32) -> WindowChange {
        let window = |window: u64| window.min(i32::MAX as u64) as u32;
        let before = self.tcb.snd_cwnd;
        if curve < friendly {
            if self.params.friendly == FriendlyWindow::NewReno || u64::from(before) < friendly {
                self.tcb.snd_cwnd = window(friendly);
            }
            self.state.in_tf |= self.params.friendly == FriendlyWindow::NewReno;
        } else if u64::from(before) < curve {
            self.tcb.snd_cwnd = window(curve);
            self.state.in_tf = false;
        }
        let cwnd = u64::from(self.tcb.snd_cwnd);
        if !self.state.cong_event && self.state.w_max < cwnd {
            // No loss so far: the plateau is the current window.
            self.state.w_max = cwnd;
            self.state.k = self.time_to_plateau(unit);
        }
        grown(before, self.tcb.snd_cwnd)
    }

    fn step(&mut self, friendly: u64, curve: u64, unit: u32) -> WindowChange {
        let before = self.tcb.snd_cwnd;
        if curve < friendly {
            self.tcb.snd_cwnd = clamped(friendly);
            self.state.in_tf = true;
        } else {
            let most = before.wrapping_mul(3) >> 1;
            let target = clamped(curve).clamp(before, most.max(before));
            let step = ((target - before) << 8) / before.max(1);
            self.tcb.snd_cwnd = before.wrapping_add(step.wrapping_mul(unit) >> 8);
        }
        grown(before, self.tcb.snd_cwnd)
    }

    /// `cubic_ssthresh_update`, `cubic_get_ssthresh`: the plateau and the threshold after a loss.
    fn ssthresh_update(&mut self, event: &CongestionEvent) -> u32 {
        let mut cwnd = u64::from(self.tcb.snd_cwnd);
        let state = &mut self.state;
        if cwnd < state.w_max {
            cwnd = share(cwnd, FC_FACTOR);
        }
        match self.params.timeout_rule {
            CubicTimeoutRule::ShareWindowEachTime => state.older_w_max = state.w_max,
            _ if self.params.avoidance == CubicGrowth::Jump => state.before.1 = state.w_max,
            _ => {}
        }
        state.w_max = cwnd;
        if state.in_tf {
            return self.tcb.fraction_of(self.tcb.snd_cwnd, self.tcb.params.beta);
        }
        match self.params.avoidance {
            CubicGrowth::Jump if !state.cong_event => {
                state.w_max = share(cwnd, BETA);
                (cwnd >> 1) as u32
            }
            CubicGrowth::Jump => share(cwnd, BETA) as u32,
            // The product is a 32-bit number.
            CubicGrowth::Steps => clamped(event.pipe).wrapping_mul(BETA as u32) >> 8,
        }
    }

    /// Reduces the threshold for a loss or an ECN echo and begins an epoch; returns the window
    /// after an echo.
    fn reduce(&mut self, event: &CongestionEvent) -> u32 {
        let mss = self.tcb.mss;
        let ssthresh = self.ssthresh_update(event);
        self.tcb.snd_ssthresh = ssthresh.max(mss.saturating_mul(2));
        self.state.cong_event = true;
        if self.params.avoidance == CubicGrowth::Steps {
            return ssthresh.max(mss);
        }
        self.state.t_epoch = event.ticks as i32;
        self.state.k = self.time_to_plateau(mss);
        self.tcb.snd_ssthresh
    }

    fn on_timeout(&mut self, event: &CongestionEvent, shift: u32) -> WindowChange {
        self.tcb.enter_timeout(event, shift);
        let mss = self.tcb.mss;
        let state = &mut self.state;
        let in_ticks = self.params.timeout_rule == CubicTimeoutRule::ShareWindowEachTime;
        if shift == 1 {
            // The versions in ticks keep the plateau before the last one.
            let w_max = if in_ticks { state.older_w_max } else { state.w_max };
            state.before = (state.k, w_max, state.t_epoch, state.cwnd_epoch);
        }
        if in_ticks {
            state.older_w_max = state.w_max;
            self.tcb.snd_ssthresh = share(u64::from(self.tcb.snd_cwnd), BETA) as u32;
        } else if shift == 1 {
            let flight_bytes = clamped(event.snd_wnd).min(clamped(event.pipe));
            let segments = share(u64::from(flight_bytes), BETA) / u64::from(mss.max(1));
            self.tcb.snd_ssthresh = (segments.max(2) as u32).wrapping_mul(mss);
        }
        state.rto_event = true;
        if self.params.avoidance == CubicGrowth::Jump {
            state.cong_event = true;
            if !in_ticks {
                state.before.1 = state.w_max;
            }
        }
        self.tcb.snd_cwnd = mss;
        WindowChange::Collapsed
    }

    fn undo_timeout(&mut self) -> WindowChange {
        self.tcb.undo_timeout();
        let state = &mut self.state;
        let (k, w_max, t_epoch, cwnd_epoch) = state.before;
        state.rto_event = false;
        state.t_epoch = t_epoch;
        if self.params.avoidance == CubicGrowth::Jump {
            state.cong_event = false;
        }
        if self.params.timeout_rule == CubicTimeoutRule::ShareWindowEachTime {
            state.w_max = state.older_w_max;
            state.older_w_max = w_max;
            self.state.k = self.time_to_plateau(self.tcb.mss);
        } else {
            state.k = k;
            state.w_max = w_max;
            state.cwnd_epoch = cwnd_epoch;
        }
        WindowChange::Undone
    }
}

fn grown(before: u32, after: u32) -> WindowChange {
    if after > before { WindowChange::Grew(Growth::Avoidance) } else { WindowChange::None }
}

impl DeclaredInputs for FreeBsdCubic {
    const INPUTS: ControllerInputs = ControllerInputs::SRTT;
}

impl Controller for FreeBsdCubic {
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        self.tcb.open(event);
        let (w_max, t_epoch) = match self.params.avoidance {
            // cubic_cb_init sets the time, cubic_conn_init the window.
            CubicGrowth::Jump => (u64::from(self.tcb.snd_cwnd), event.created_ticks as i32),
            CubicGrowth::Steps => (u64::from(u32::MAX), 0),
        };
        self.state =
            FreeBsdCubicState { w_max, t_epoch, mean_rtt: 1, ..FreeBsdCubicState::default() };
        WindowChange::None
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        let bytes = clamped(event.bytes);
        let cwnd_limited = self.tcb.is_cwnd_limited(event);
        self.tcb.count(bytes, event.nsegs);
        self.record_rtt(&event.srtt);
        if self.tcb.in_recovery() || event.ends_recovery {
            return WindowChange::None;
        }
        if !cwnd_limited {
            self.state.in_applimit = true;
            return WindowChange::None;
        }
        if self.tcb.in_slow_start() || self.state.min_rtt == 0 {
            self.slow_start(event, bytes)
        } else {
            self.avoidance(event)
        }
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        match event.signal {
            CongestionSignal::Loss => {
                let Some(first) = self.tcb.enter_recovery(event) else { return WindowChange::None };
                if first {
                    let _ = self.reduce(event);
                }
                // The stack's PRR sets the window.
                WindowChange::RecoveryBegan
            }
            CongestionSignal::Ecn => {
                if !self.tcb.enter_ecn_recovery(event) {
                    return WindowChange::None;
                }
                self.tcb.snd_cwnd = self.reduce(event);
                WindowChange::RecoveryBegan
            }
            CongestionSignal::Timeout { shift } => self.on_timeout(event, shift),
            CongestionSignal::SpuriousTimeout => self.undo_timeout(),
            CongestionSignal::SpuriousRecovery | CongestionSignal::PathMtu => WindowChange::None,
        }
    }

    fn on_recovered(&mut self, event: &RecoveryEnd) -> WindowChange {
        if self.tcb.in_fastrecovery {
            let two = self.tcb.growth_unit().saturating_mul(2);
            let drained = self.tcb.window_after_drain(event.pipe);
            let kept = clamped(share(self.state.w_max, BETA)).max(two);
            self.tcb.snd_cwnd = drained.unwrap_or(kept);
        }
        let state = &mut self.state;
        if state.epoch_acks > 0 && state.sum_rtt >= i64::from(state.epoch_acks) {
            state.mean_rtt = (state.sum_rtt / i64::from(state.epoch_acks)) as i32;
        }
        state.epoch_acks = 0;
        state.sum_rtt = 0;
        self.tcb.end_recovery();
        WindowChange::RecoveryEnded
    }

    fn on_idle(&mut self, event: &IdleEvent) -> WindowChange {
        self.state.w_max = self.state.w_max.max(u64::from(self.tcb.snd_cwnd));
        self.state.k = self.time_to_plateau(self.tcb.growth_unit());
        self.state.t_epoch = event.ticks as i32;
        self.tcb.after_idle()
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        self.tcb.mss = mss;
        self.tcb.maxseg = maxseg;
    }

    fn control(&self) -> Control {
        self.tcb.control()
    }

    fn set_window(&mut self, window: Bytes) {
        self.tcb.set_window(window);
    }

    fn leave_recovery(&mut self) {
        self.tcb.leave_recovery();
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        self.tcb.set_threshold(ssthresh);
    }

    fn in_recovery(&self) -> bool {
        self.tcb.in_fastrecovery
    }

    fn in_slow_start(&self) -> bool {
        self.tcb.in_slow_start()
    }

    fn recovery_point(&self) -> Offset {
        self.tcb.snd_recover
    }

    fn t_bytes_acked(&self) -> Option<u32> {
        Some(self.tcb.bytes_acked)
    }
}

impl WindowController for FreeBsdCubic {
    fn on_duplicate(&mut self, event: &AckEvent) {
        // cubic_ack_received samples the RTT before it checks the type.
        self.record_rtt(&event.srtt);
    }

    fn on_round(&mut self, round: u32) -> WindowChange {
        self.tcb.on_round(round)
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> WindowChange {
        self.tcb.hystart.rtt_sample(sample);
        WindowChange::None
    }

    fn on_window_used(&mut self, window: Bytes) {
        self.tcb.window_used = Some(clamped(window.get()));
    }
}

#[cfg(test)]
mod tests {
    use units::Instant;

    use super::*;
    use crate::contract::ConnectionStart;

    #[test]
    fn time_counts_from_the_creation_of_the_control_block() {
        // golden/freebsd-closed, 13.0's random-74: the first window after a timeout is 52,160 bytes,
        // 10 ticks of the handshake more than from its end.
        let newreno = newreno::NewRenoParams::FREEBSD_13_0;
        let mut cc = FreeBsdCubic::new(CubicParams::FREEBSD_13_0, newreno, 1_000);
        let _ = cc.on_established(&ConnectionStart {
            now: Instant::ZERO,
            ticks: 17,
            created_ticks: 7,
            una: Offset(1),
            mss: 1_448,
            maxseg: 1_460,
            snd_scale: 6,
            syn_retransmitted: false,
            rtt: None,
            ssthresh: None,
        });
        assert_eq!(cc.epoch().t_epoch, 7);
    }
}
