//! Linux's BBR, version 1 (tcp_bbr.c, kernel 6.18; Cardwell, Cheng, Gunn, Yeganeh and Jacobson,
//! "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016), with the kernel's integers.
//!
//! Reading order: this file (the state and the processing of an acknowledgment, `bbr_main`),
//! `bandwidth` (the windowed maximum and the round count), `long_term` (policer detection),
//! `aggregation` (ACK aggregation), `pacing` (rate and burst), `window` (the congestion window);
//! then the phases: `startup`, `drain`, `probe_bw`, `probe_rtt`.
//!
//! Rates are packets per microsecond times 2^24, gains are in 256ths, times whole microseconds.
//! Delivery-rate samples (tcp_rate.c) and the pacing timer belong to the stack. The long-term
//! sampling is not informed of timeouts (`bbr_set_state` reports one loss to it).

mod aggregation;
mod bandwidth;
mod drain;
mod long_term;
mod pacing;
mod probe_bw;
mod probe_rtt;
mod startup;
mod window;

use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Instant, Offset, RandomStream, Rate};

use crate::contract::{
    AckEvent, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, Growth, IdleEvent, RateController, RateSample, RecoveryEnd,
    WindowChange,
};

use aggregation::AckAggregation;
use bandwidth::MaxFilter;
use long_term::{LongTerm, Progress};

/// 1 in units of bandwidth (`BW_UNIT`).
const BW_UNIT: u64 = 1 << 24;
/// 1 in units of gain (`BBR_UNIT`).
const UNIT: u32 = 256;
/// Doubles the rate per round, 2/ln 2 (`bbr_high_gain`).
const HIGH_GAIN: u32 = UNIT * 2_885 / 1_000 + 1;
/// Its inverse (`bbr_drain_gain`).
const DRAIN_GAIN: u32 = UNIT * 1_000 / 2_885;
/// Gain of the window during ProbeBW (`bbr_cwnd_gain`).
const CWND_GAIN: u32 = 2 * UNIT;
/// The window during ProbeRTT (`bbr_cwnd_min_target`).
const MIN_CWND: u32 = 4;
/// `TCP_INIT_CWND`.
const INIT_CWND: u32 = 10;
const SSTHRESH_UNSET: u32 = 0x7fff_ffff;

/// Phase of the control loop (`bbr->mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum BbrMode {
    /// The rate doubles with each round.
    Startup,
    /// The queue built in startup is drained.
    Drain,
    /// The rate cycles around the bandwidth.
    ProbeBw,
    /// Very few packets are in flight, to empty the queue.
    ProbeRtt,
}

/// Congestion state, in the kernel's order (`icsk_ca_state`, `prev_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
enum BbrCaState {
    Open,
    Cwr,
    Recovery,
    Loss,
}

/// BBR on one connection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Bbr {
    /// Ticks of the kernel clock per second.
    hz: u64,
    rng: RandomStream,
    /// Phase in which ProbeBW begins; `None`: drawn.
    first_phase: Option<u8>,
    /// Phases in which it begins the first times, as a recording of a kernel shows them, and how often it has begun.
    #[serde(skip)]
    given_phases: &'static [u8],
    drawn: u32,
    mss: u32,
    /// `tcp_init_cwnd`: packets of the initial window.
    initial: u32,
    snd_cwnd: u32,
    snd_ssthresh: u32,
    high_seq: Offset,
    /// The stack's state, and the state at the previous acknowledgment.
    state: BbrCaState,
    prev_state: BbrCaState,
    mode: BbrMode,
    pacing_gain: u32,
    cwnd_gain: u32,
    /// In bytes per second (`sk_pacing_rate`).
    pacing_rate: u64,
    has_seen_rtt: bool,
    bw: MaxFilter,
    rtt_cnt: u32,
    next_rtt_delivered: u64,
    round_start: bool,
    /// In microseconds; `None` before the first sample.
    min_rtt: Option<u32>,
    min_rtt_stamp: u64,
    probe_rtt_done_stamp: Option<u64>,
    probe_rtt_round_done: bool,
    /// The last sample was one of PROBE_RTT.
    probed_rtt: bool,
    prior_cwnd: u32,
    packet_conservation: bool,
    idle_restart: bool,
    full_bw_reached: bool,
    full_bw_cnt: u32,
    full_bw: u64,
    cycle_idx: usize,
    cycle_stamp: Instant,
    long_term: LongTerm,
    aggregation: AckAggregation,
}

impl Bbr {
    /// BBR on a kernel with `hz` ticks per second, which draws its phases from `rng`.
    pub fn new(hz: u32, rng: RandomStream) -> Self {
        Self {
            hz: u64::from(hz),
            rng,
            first_phase: None,
            given_phases: &[],
            drawn: 0,
            mss: 1,
            initial: INIT_CWND,
            snd_cwnd: INIT_CWND,
            snd_ssthresh: SSTHRESH_UNSET,
            high_seq: Offset(0),
            state: BbrCaState::Open,
            prev_state: BbrCaState::Open,
            mode: BbrMode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: 0,
            has_seen_rtt: false,
            bw: MaxFilter::new(0),
            rtt_cnt: 0,
            next_rtt_delivered: 0,
            round_start: false,
            min_rtt: None,
            min_rtt_stamp: 0,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            probed_rtt: false,
            prior_cwnd: 0,
            packet_conservation: false,
            idle_restart: false,
            full_bw_reached: false,
            full_bw_cnt: 0,
            full_bw: 0,
            cycle_idx: 0,
            cycle_stamp: Instant::ZERO,
            long_term: LongTerm::new(),
            aggregation: AckAggregation::new(Instant::ZERO),
        }
    }

    /// The same with an initial window of this many packets (`RTAX_INITCWND` of the route). What BBR computes from
    /// `TCP_INIT_CWND` stays.
    #[must_use]
    pub const fn beginning_at(mut self, packets: u32) -> Self {
        self.initial = packets;
        self.snd_cwnd = packets;
        self
    }

    /// The same, but ProbeBW always begins in a phase of its cycle, 0 to 7. No kernel begins with
    /// phase 1, so this is the draw.
    #[must_use]
    pub const fn beginning_with(mut self, phase: u8) -> Self {
        self.first_phase = if phase == 1 { None } else { Some(phase) };
        self
    }

    /// The same, but ProbeBW begins in these phases the first times, as a recording of a kernel shows them.
    #[must_use]
    pub const fn drawing(mut self, phases: &'static [u8]) -> Self {
        self.given_phases = phases;
        self
    }

    /// The phase.
    pub const fn mode(&self) -> BbrMode {
        self.mode
    }

    /// Congestion window in packets.
    pub const fn snd_cwnd(&self) -> u32 {
        self.snd_cwnd
    }

    /// `sk_pacing_rate`, in bytes per second.
    pub const fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }

    /// Maximum bandwidth of the last ten rounds, in packets per microsecond times 2^24
    /// (`bbr_max_bw`).
    pub fn max_bw(&self) -> u64 {
        self.bw.get()
    }

    /// Minimum RTT in microseconds; `None` before the first sample.
    pub const fn min_rtt_us(&self) -> Option<u32> {
        self.min_rtt
    }

    /// Gains of rate and window, in 256ths.
    pub const fn gains(&self) -> [u32; 2] {
        [self.pacing_gain, self.cwnd_gain]
    }

    /// Number of rounds, whether the full bandwidth was reached, and for how many rounds it has not
    /// grown.
    pub const fn rounds(&self) -> (u32, bool, u32) {
        (self.rtt_cnt, self.full_bw_reached, self.full_bw_cnt)
    }

    /// The bandwidth in use (`bbr_bw`).
    fn bandwidth(&self) -> u64 {
        self.long_term.bw().unwrap_or_else(|| self.max_bw())
    }

    /// `bbr_update_model`.
    fn update_model(&mut self, sample: &RateSample) {
        self.long_term.advance(Progress {
            delivered: sample.delivered,
            lost: sample.lost,
            delivered_at: sample.delivered_at,
            delivered_ms: sample.delivered_clock / 1_000_000,
        });
        self.update_bandwidth(sample);
        self.update_aggregation(sample);
        self.update_cycle_phase(sample);
        self.check_full_bandwidth(sample);
        self.check_drain(sample);
        self.update_min_rtt(sample);
        self.update_gains();
    }

    /// The rest of `bbr_main`: sets rate and window from the model.
    fn apply(&mut self, sample: &RateSample) {
        let bw = self.bandwidth();
        self.set_pacing_rate(sample.srtt_us, bw, self.pacing_gain);
        self.set_cwnd(sample, bw, self.cwnd_gain);
    }

    /// `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            BbrMode::Startup => (HIGH_GAIN, HIGH_GAIN),
            BbrMode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            BbrMode::ProbeBw if self.long_term.bw().is_some() => (UNIT, CWND_GAIN),
            BbrMode::ProbeBw => (probe_bw::GAINS[self.cycle_idx], CWND_GAIN),
            BbrMode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// `bbr_save_cwnd`.
    fn save_cwnd(&mut self) {
        self.prior_cwnd =
            if self.prev_state < BbrCaState::Recovery && self.mode != BbrMode::ProbeRtt {
                self.snd_cwnd
            } else {
                self.prior_cwnd.max(self.snd_cwnd)
            };
    }

    /// `tcp_enter_loss`, and `bbr_set_state` with TCP_CA_Loss.
    fn enter_loss(&mut self, event: &CongestionEvent, shift: u32) -> WindowChange {
        let already_reduced = self.state != BbrCaState::Open && event.th_ack < self.high_seq;
        if !already_reduced || (self.state == BbrCaState::Loss && shift == 1) {
            self.save_cwnd();
        }
        self.enter_loss_state(event);
        // All packets in flight are marked lost.
        self.snd_cwnd = 1;
        WindowChange::Collapsed
    }

    /// `bbr_set_state`, TCP_CA_Loss.
    fn enter_loss_state(&mut self, event: &CongestionEvent) {
        self.high_seq = event.snd_max;
        self.state = BbrCaState::Loss;
        self.prev_state = BbrCaState::Loss;
        self.full_bw = 0;
        self.round_start = true;
        self.long_term.lose(event.lost);
        self.sample_long_term(true, false);
    }
}

impl DeclaredInputs for Bbr {
    const INPUTS: ControllerInputs = ControllerInputs::SRTT;
}

impl Controller for Bbr {
    /// `bbr_init`.
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        let (first_phase, given_phases) = (self.first_phase, self.given_phases);
        let new = Self::new(self.hz as u32, self.rng.clone()).beginning_at(self.initial);
        *self = Self { first_phase, given_phases, ..new };
        self.mss = event.mss.max(1);
        self.high_seq = event.una;
        if event.syn_retransmitted {
            self.snd_cwnd = 1;
        }
        let rtt = event.rtt.map(|rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX));
        self.min_rtt = rtt;
        self.min_rtt_stamp = event.ticks;
        // The SYN counts as delivered.
        self.next_rtt_delivered = 1;
        self.aggregation = AckAggregation::new(event.now);
        self.init_pacing_rate(rtt.unwrap_or(0));
        WindowChange::None
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        if self.state == BbrCaState::Loss && event.una >= self.high_seq {
            self.state = BbrCaState::Open;
        }
        WindowChange::None
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        match event.signal {
            CongestionSignal::Loss | CongestionSignal::Ecn
                if self.state == BbrCaState::Recovery =>
            {
                WindowChange::None
            }
            CongestionSignal::Loss if self.state == BbrCaState::Cwr => {
                // tcp_enter_recovery: the same reduction goes on.
                self.state = BbrCaState::Recovery;
                WindowChange::RecoveryBegan
            }
            CongestionSignal::Loss | CongestionSignal::Ecn => {
                // bbr_ssthresh: the window is saved, the threshold has no effect. An ECN echo
                // starts no recovery (TCP_CA_CWR), and version 1 ignores it.
                self.save_cwnd();
                self.high_seq = event.snd_max;
                let loss = event.signal == CongestionSignal::Loss;
                self.state = if loss { BbrCaState::Recovery } else { BbrCaState::Cwr };
                WindowChange::RecoveryBegan
            }
            CongestionSignal::Timeout { shift } => self.enter_loss(event, shift),
            CongestionSignal::SpuriousTimeout | CongestionSignal::SpuriousRecovery => {
                // bbr_undo_cwnd; the next sample restores the window.
                self.full_bw = 0;
                self.full_bw_cnt = 0;
                self.long_term.reset();
                self.state = BbrCaState::Open;
                WindowChange::Undone
            }
            CongestionSignal::PathMtu => {
                self.enter_loss_state(event);
                WindowChange::None
            }
        }
    }

    fn on_recovered(&mut self, _event: &RecoveryEnd) -> WindowChange {
        self.state = BbrCaState::Open;
        WindowChange::RecoveryEnded
    }

    fn on_idle(&mut self, _event: &IdleEvent) -> WindowChange {
        // tcp_slow_start_after_idle_check skips controllers with cong_control.
        WindowChange::None
    }

    fn on_mss(&mut self, mss: u32, _maxseg: u32) {
        self.mss = mss.max(1);
    }

    fn control(&self) -> Control {
        let bytes = |packets: u32| Bytes(u64::from(packets) * u64::from(self.mss));
        Control {
            window: bytes(self.snd_cwnd),
            ssthresh: (self.snd_ssthresh != SSTHRESH_UNSET).then_some(bytes(self.snd_ssthresh)),
            pacing: Rate::from_bits_per_second(self.pacing_rate.saturating_mul(8)),
        }
    }

    fn set_window(&mut self, window: Bytes) {
        let packets = window.get() / u64::from(self.mss);
        self.snd_cwnd = u32::try_from(packets).unwrap_or(u32::MAX);
    }

    fn leave_recovery(&mut self) {
        self.state = BbrCaState::Open;
    }

    fn set_threshold(&mut self, _ssthresh: Option<Bytes>) {}

    fn in_recovery(&self) -> bool {
        self.state == BbrCaState::Recovery
    }

    fn in_slow_start(&self) -> bool {
        self.mode == BbrMode::Startup
    }

    fn recovery_point(&self) -> Offset {
        self.high_seq
    }
}

impl RateController for Bbr {
    fn on_rate_sample(&mut self, sample: &RateSample) -> WindowChange {
        let before = (self.snd_cwnd, self.mode);
        self.update_model(sample);
        self.apply(sample);
        if before.1 == BbrMode::Startup && self.mode != BbrMode::Startup {
            return WindowChange::SlowStartEnded;
        }
        match self.snd_cwnd.cmp(&before.0) {
            core::cmp::Ordering::Greater if self.mode == BbrMode::Startup => {
                WindowChange::Grew(Growth::SlowStart)
            }
            core::cmp::Ordering::Greater => WindowChange::Grew(Growth::Avoidance),
            core::cmp::Ordering::Less => WindowChange::Shrank,
            core::cmp::Ordering::Equal => WindowChange::None,
        }
    }

    fn on_restart(&mut self, now: Instant, ticks: u64, app_limited: bool) {
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation = self.aggregation.after_idle(now);
        match self.mode {
            // At the bandwidth and no faster, since the queue is unknown.
            BbrMode::ProbeBw => {
                let bw = self.bandwidth();
                self.set_pacing_rate(0, bw, UNIT);
            }
            BbrMode::ProbeRtt => self.check_probe_rtt_done(ticks, now),
            BbrMode::Startup | BbrMode::Drain => {}
        }
    }

    /// `bbr_min_tso_segs`.
    fn min_burst(&self) -> u32 {
        self.min_tso_segs()
    }

    fn sends_little(&self) -> bool {
        self.probed_rtt
    }

    /// `bbr_sndbuf_expand`.
    fn windows_buffered(&self) -> u64 {
        3
    }
}

/// Microseconds between two instants.
fn micros(from: Instant, to: Instant) -> u64 {
    if to > from { to.since(from).as_nanos() / 1_000 } else { 0 }
}

/// A duration in ticks of the kernel's clock, rounded up (`msecs_to_jiffies`).
fn ticks(span: Duration, hz: u64) -> u64 {
    (span.as_millis() * hz).div_ceil(1_000)
}

#[cfg(test)]
mod recordings;
#[cfg(test)]
mod tests;
