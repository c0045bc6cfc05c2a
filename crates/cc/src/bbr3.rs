//! Linux's BBR, version 3 (tcp_bbr.c of google/bbr, branch v3, as carried to 6.12 by the patch `6.12/0002-bbr3.patch` of
//! CachyOS/kernel-patches), with the kernel's integers.
//!
//! Reading order: this file (the state and the processing of an acknowledgment, `bbr_main`), `params`, `bandwidth`
//! (rounds, samples, the maximum of two cycles), `lower_bounds` (the signals of a round and the short-term bounds),
//! `upper_bounds` (the long-term bound and lost packets), `ecn`, `aggregation`, `pacing`, `window`; the phases:
//! `startup` (with Drain), `probe_bw`, `probe_rtt`; `draws` (what the kernel draws at random), `controller` (the events of
//! a controller and the congestion state).
//!
//! Rates are packets per microsecond times 2^24, gains are in 256ths, times whole microseconds. Delivery-rate samples, the
//! flight recorded with each packet, and the pacing timer belong to the stack. Not modelled: PLB (a new flow label after
//! rounds with many marks) and the receiver's ACKs at each change of CE (`bbr_precise_ece_ack`).

mod aggregation;
mod bandwidth;
mod controller;
mod draws;
mod ecn;
mod lower_bounds;
mod pacing;
mod params;
mod probe_bw;
mod probe_rtt;
mod startup;
mod upper_bounds;
mod window;

use serde::{Deserialize, Serialize};
use units::{Duration, Instant, Offset, RandomStream};

use crate::contract::RateSample;

use aggregation::ExtraAcked;
pub use draws::ProbeDraw;
use draws::ProbeDraws;
use ecn::EcnState;
pub use params::Bbr3Params;
use params::UNIT;

/// 1 in units of bandwidth (`BW_UNIT`).
const BW_UNIT: u64 = 1 << 24;
/// No bound, or no sample (`~0U`).
const UNSET: u32 = u32::MAX;
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
    /// Few packets are in flight, to empty the queue.
    ProbeRtt,
}

/// Phase of ProbeBW (`bbr->cycle_idx`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum ProbePhase {
    /// Probes for more bandwidth.
    Up,
    /// Drains the queue that the probe built.
    Down,
    /// Sends at the bandwidth, with headroom in the queue.
    Cruise,
    /// Fills the pipe for a round before a probe.
    Refill,
}

/// What an acknowledgment says about a probe (`bbr->ack_phase`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Congestion state, in the kernel's order (`icsk_ca_state`, `prev_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
enum BbrCaState {
    Open,
    Cwr,
    Recovery,
    Loss,
}

/// BBR version 3 on one connection. The fields have the kernel's names where it has them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Bbr3 {
    params: Bbr3Params,
    /// Ticks of the kernel clock per second.
    hz: u64,
    draws: ProbeDraws,
    /// The draw of the current cycle.
    draw: ProbeDraw,
    mss: u32,
    /// `tcp_init_cwnd`: packets of the initial window.
    initial: u32,
    init_cwnd: u32,
    snd_cwnd: u32,
    snd_ssthresh: u32,
    prior_ssthresh: u32,
    high_seq: Offset,
    state: BbrCaState,
    prev_ca_state: BbrCaState,
    mode: BbrMode,
    phase: ProbePhase,
    ack_phase: AckPhase,
    pacing_gain: u32,
    cwnd_gain: u32,
    /// In bytes per second (`sk_pacing_rate`).
    pacing_rate: u64,
    has_seen_rtt: bool,
    /// `tp->delivered` at the last sample.
    delivered: u64,
    next_rtt_delivered: u64,
    round_start: bool,
    min_rtt: u32,
    min_rtt_stamp: u64,
    probe_rtt_min: u32,
    probe_rtt_min_stamp: u64,
    probe_rtt_done_stamp: Option<u64>,
    probe_rtt_round_done: bool,
    /// The last sample was one of ProbeRTT.
    probed_rtt: bool,
    /// Beginning of the phase in microseconds (`cycle_mstamp`).
    cycle_us: u64,
    prior_cwnd: u32,
    idle_restart: bool,
    try_fast_path: bool,
    full_bw_reached: bool,
    full_bw_now: bool,
    full_bw_cnt: u32,
    full_bw: u32,
    extra_acked: ExtraAcked,
    bw_latest: u32,
    bw_lo: u32,
    bw_hi: [u32; 2],
    inflight_latest: u32,
    inflight_lo: u32,
    inflight_hi: u32,
    undo_bw_lo: u32,
    undo_inflight_lo: u32,
    undo_inflight_hi: u32,
    bw_probe_up_rounds: u32,
    bw_probe_up_cnt: u32,
    bw_probe_up_acks: u32,
    rounds_since_probe: u32,
    bw_probe_samples: bool,
    prev_probe_too_high: bool,
    stopped_risky_probe: bool,
    loss_round_delivered: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    loss_in_cycle: bool,
    loss_events_in_round: u32,
    ecn_in_round: bool,
    ecn_in_cycle: bool,
    ecn: EcnState,
}

impl Bbr3 {
    /// The kernel's BBR on a kernel with `hz` ticks per second, which draws its waits from `rng`.
    pub const fn new(hz: u32, rng: RandomStream) -> Self {
        let params = Bbr3Params::KERNEL;
        Self {
            params,
            hz: hz as u64,
            draws: ProbeDraws::new(rng),
            draw: ProbeDraw { rounds: 0, wait_us: 0 },
            mss: 1,
            initial: INIT_CWND,
            init_cwnd: INIT_CWND,
            snd_cwnd: INIT_CWND,
            snd_ssthresh: SSTHRESH_UNSET,
            prior_ssthresh: 0,
            high_seq: Offset(0),
            state: BbrCaState::Open,
            prev_ca_state: BbrCaState::Open,
            mode: BbrMode::Startup,
            phase: ProbePhase::Up,
            ack_phase: AckPhase::Init,
            pacing_gain: params.startup_pacing_gain,
            cwnd_gain: params.startup_cwnd_gain,
            pacing_rate: 0,
            has_seen_rtt: false,
            delivered: 0,
            next_rtt_delivered: 0,
            round_start: false,
            min_rtt: UNSET,
            min_rtt_stamp: 0,
            probe_rtt_min: UNSET,
            probe_rtt_min_stamp: 0,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            probed_rtt: false,
            cycle_us: 0,
            prior_cwnd: 0,
            idle_restart: false,
            try_fast_path: false,
            full_bw_reached: false,
            full_bw_now: false,
            full_bw_cnt: 0,
            full_bw: 0,
            extra_acked: ExtraAcked::new(0),
            bw_latest: 0,
            bw_lo: UNSET,
            bw_hi: [0; 2],
            inflight_latest: 0,
            inflight_lo: UNSET,
            inflight_hi: UNSET,
            undo_bw_lo: 0,
            undo_inflight_lo: 0,
            undo_inflight_hi: 0,
            bw_probe_up_rounds: 0,
            bw_probe_up_cnt: UNSET,
            bw_probe_up_acks: 0,
            rounds_since_probe: 0,
            bw_probe_samples: false,
            prev_probe_too_high: false,
            stopped_risky_probe: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            loss_in_cycle: false,
            loss_events_in_round: 0,
            ecn_in_round: false,
            ecn_in_cycle: false,
            ecn: EcnState::new(false),
        }
    }

    /// The same with an initial window of this many packets (`RTAX_INITCWND` of the route).
    #[must_use]
    pub const fn beginning_at(mut self, packets: u32) -> Self {
        self.initial = packets;
        self.snd_cwnd = packets;
        self
    }

    /// The same with these draws for the first cycles, as a recording of a kernel shows them.
    #[must_use]
    pub const fn drawing(mut self, draws: &'static [ProbeDraw]) -> Self {
        self.draws.give(draws);
        self
    }

    /// The same on a route with CE marks of a low threshold (`features ecn_low`) and ECN negotiated.
    #[must_use]
    pub const fn with_low_marks(mut self, usable: bool) -> Self {
        self.ecn = EcnState::new(usable);
        self
    }

    /// Mode and phase of ProbeBW.
    pub const fn mode(&self) -> (BbrMode, ProbePhase) {
        (self.mode, self.phase)
    }

    /// Congestion window in packets.
    pub const fn snd_cwnd(&self) -> u32 {
        self.snd_cwnd
    }

    /// `sk_pacing_rate`, in bytes per second.
    pub const fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }

    /// Gains of rate and window, in 256ths.
    pub const fn gains(&self) -> [u32; 2] {
        [self.pacing_gain, self.cwnd_gain]
    }

    /// `bbr_max_bw`, and `bw_lo` while it is set, in packets per microsecond times 2^24.
    pub fn bandwidths(&self) -> (u32, Option<u32>) {
        (self.max_bandwidth(), (self.bw_lo != UNSET).then_some(self.bw_lo))
    }

    /// The bounds `inflight_hi` and `inflight_lo` in packets, while they are set.
    pub fn inflight_bounds(&self) -> [Option<u32>; 2] {
        [self.inflight_hi, self.inflight_lo].map(|bound| (bound != UNSET).then_some(bound))
    }

    /// Replaces the draw of the current cycle, which has just begun.
    pub const fn redraw(&mut self, draw: ProbeDraw) {
        self.draw = draw;
        self.rounds_since_probe = draw.rounds;
    }

    /// The draw of the current cycle, and the number of draws made.
    pub const fn draw(&self) -> (ProbeDraw, u32) {
        (self.draw, self.draws.made())
    }

    /// A bandwidth in bytes per second (`bbr_bw_bytes_per_sec`).
    pub fn bytes_per_second_of(&self, bw: u32) -> u64 {
        ((u128::from(bw) * u128::from(self.mss) * 1_000_000) >> 24) as u64
    }

    /// A duration in ticks of the kernel's clock, rounded up (`msecs_to_jiffies`).
    const fn ticks(&self, span: Duration) -> u64 {
        (span.as_millis() * self.hz).div_ceil(1_000)
    }

    /// `bbr_update_model`.
    fn update_model(&mut self, sample: &RateSample, bw: u32) {
        self.update_congestion_signals(sample, bw);
        self.update_ack_aggregation(sample);
        self.check_loss_too_high_in_startup(sample);
        self.check_full_bw_reached(sample, bw);
        self.check_drain(sample);
        self.update_cycle_phase(sample, bw);
        self.update_min_rtt(sample);
    }

    /// `bbr_run_fast_path`: an application-limited sample below the bandwidth changes the model little. Returns
    /// whether the model is to be updated, and rate and window.
    fn run_fast_path(&mut self, sample: &RateSample, bw: u32) -> (bool, bool) {
        let applies = self.try_fast_path
            && sample.signals.tx.app_limited
            && bw < self.max_bandwidth()
            && !self.loss_in_round
            && !self.ecn_in_round;
        if !applies {
            return (true, true);
        }
        let before = (self.mode, self.min_rtt);
        self.check_drain(sample);
        self.update_cycle_phase(sample, bw);
        self.update_min_rtt(sample);
        let unchanged = before == (self.mode, self.min_rtt) && self.try_fast_path;
        (false, !unchanged)
    }

    /// `bbr_main`.
    fn process(&mut self, sample: &RateSample) {
        self.delivered = sample.delivered;
        self.update_round_start(sample);
        if self.round_start {
            self.rounds_since_probe = (self.rounds_since_probe + 1).min(0xff);
            self.update_ecn_alpha(sample);
        }
        self.ecn_in_round |= self.ecn.eligible && sample.signals.ece;
        let bw = Self::bw_sample(sample);
        self.update_latest(sample, bw);
        let (models, controls) = self.run_fast_path(sample, bw);
        if models {
            self.update_model(sample, bw);
        }
        if controls {
            self.update_gains();
            let bandwidth = self.bandwidth();
            self.set_pacing_rate(sample.srtt_us, bandwidth, self.pacing_gain);
            self.set_cwnd(sample, bandwidth, self.cwnd_gain);
            self.bound_cwnd();
        }
        self.advance_latest(sample, bw);
        self.prev_ca_state = self.state;
        self.loss_in_cycle |= sample.signals.tx.lost > 0;
        self.ecn_in_cycle |= sample.signals.tx.delivered_ce > 0;
    }

    /// `bbr_update_gains`.
    const fn update_gains(&mut self) {
        let params = &self.params;
        (self.pacing_gain, self.cwnd_gain) = match (self.mode, self.phase) {
            (BbrMode::Startup, _) => (params.startup_pacing_gain, params.startup_cwnd_gain),
            (BbrMode::Drain, _) => (params.drain_gain, params.startup_cwnd_gain),
            (BbrMode::ProbeBw, ProbePhase::Up) => {
                let more = UNIT * params.bw_probe_cwnd_gain / 4;
                (params.pacing_gain[0], params.cwnd_gain + more)
            }
            (BbrMode::ProbeBw, ProbePhase::Down) => (params.pacing_gain[1], params.cwnd_gain),
            (BbrMode::ProbeBw, ProbePhase::Cruise) => (params.pacing_gain[2], params.cwnd_gain),
            (BbrMode::ProbeBw, ProbePhase::Refill) => (params.pacing_gain[3], params.cwnd_gain),
            (BbrMode::ProbeRtt, _) => (UNIT, UNIT),
        };
    }
}

/// An instant in whole microseconds.
const fn whole_micros(at: Instant) -> u64 {
    at.as_nanos() / 1_000
}

#[cfg(test)]
mod tests;
