//! BBR as the IETF draft has it: draft-ietf-ccwg-bbr, ietf-wg-ccwg/draft-ietf-ccwg-bbr 4ce5e87d (after revision 06), for
//! senders of QUIC and of TCP by the RFCs, with the dialects of QUIC stacks as [`params`].
//!
//! Reading order: this file (the state and the steps of an acknowledgment, `UpdateOnACK`), `params`, `sample` (what an
//! acknowledgment measured), `model` (rounds, bandwidth, minimum RTT, aggregation), `full_pipe` (Startup and Drain),
//! `probe_bw`, `long_term` (the long-term bound), `short_term` (losses outside of probes), `undo`, `probe_rtt`, `output` (rate,
//! quantum, window), `controller` (the events of a controller).
//!
//! All data volumes are bytes, rates bytes per second, gains thousandths. Functions and fields have the draft's names in
//! lower case. Where the draft is silent: `probe_rtt_min_delay` begins as `min_rtt`, a cycle without bandwidth samples does
//! not advance the maximum filter, and losses of one acknowledgment are one discontiguous range. State is saved once in a
//! recovery, as its prose says: `HandleInflightTooHigh` resets `is_loss_in_round`, so by `NoteLoss` alone the next lost packet
//! of the same burst would overwrite what is to be undone.

mod controller;
mod full_pipe;
mod long_term;
mod model;
mod output;
pub mod params;
mod probe_bw;
mod probe_rtt;
mod sample;
mod short_term;
#[cfg(test)]
mod tests;
mod undo;

use serde::{Deserialize, Serialize};
use units::{Duration, Instant, Offset, RandomStream};

use model::ExtraAckedFilter;
use params::UNIT;
pub use params::{BbrDraftParams, DIALECTS, DRAFT, MarkRule, UpExit};
use sample::DraftSample;

/// No bound (`Infinity`).
const INFINITY: u64 = u64::MAX;

/// `BBR.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum BbrDraftPhase {
    /// The rate doubles with each round.
    Startup,
    /// The queue built in Startup is drained.
    Drain,
    /// ProbeBW: sends below the bandwidth.
    Down,
    /// ProbeBW: sends at the bandwidth, with headroom.
    Cruise,
    /// ProbeBW: fills the pipe before a probe.
    Refill,
    /// ProbeBW: probes for more bandwidth.
    Up,
    /// Little is in flight, to measure the minimum RTT.
    ProbeRtt,
}

impl BbrDraftPhase {
    /// `IsInAProbeBWState`.
    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// `BBR.ack_phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum BbrAckPhase {
    /// Not probing.
    Init,
    /// Filling the pipe.
    Refilling,
    /// The flight rises.
    ProbeStarting,
    /// Feedback of the probe arrives.
    ProbeFeedback,
    /// The probe has ended, its feedback still arrives.
    ProbeStopping,
}

/// BBR of the draft on one connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BbrDraft {
    /// Index of [`DIALECTS`].
    dialect: usize,
    rng: RandomStream,
    /// Bytes of a unit in which the stack counts; 0: a segment.
    unit: u64,
    mss: u64,
    initial_cwnd: u64,
    cwnd: u64,
    prior_cwnd: u64,
    /// Bytes per second.
    pacing_rate: u64,
    has_seen_rtt: bool,
    send_quantum: u64,
    state: BbrDraftPhase,
    pacing_gain: u64,
    cwnd_gain: u64,
    in_recovery: bool,
    after_timeout: bool,
    recovery_point: Offset,
    /// `C.delivered`, `C.inflight` at the last event.
    delivered: u64,
    inflight: u64,
    round_count: u64,
    round_start: bool,
    next_round_delivered: u64,
    idle_restart: bool,
    drain_start_round: u64,
    max_bw_filter: [u64; 2],
    bw: u64,
    bw_latest: u64,
    bw_shortterm: u64,
    inflight_latest: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    loss_events_in_round: u32,
    recovery_round: u64,
    lost_in_probe: u32,
    full_bw_reached: bool,
    full_bw_now: bool,
    full_bw: u64,
    full_bw_count: u32,
    rounds_with_queue: u32,
    min_inflight_in_round: u64,
    extra_acked: ExtraAckedFilter,
    ack_phase: BbrAckPhase,
    is_bw_probe_sample: bool,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: u64,
    probe_up_acked_per_inc: u64,
    rounds_since_probe_up: u64,
    bw_probe_wait: Duration,
    cycle_stamp: Instant,
    phase_stamp: Instant,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    /// The state of this recovery has been saved.
    has_saved: bool,
    undo_state: Option<BbrDraftPhase>,
    undo_bw_shortterm: u64,
    undo_inflight_shortterm: u64,
    undo_inflight_longterm: u64,
    min_rtt: Option<Duration>,
    min_rtt_stamp: Instant,
    probe_rtt_min_delay: Option<Duration>,
    probe_rtt_min_stamp: Instant,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Instant>,
    probe_rtt_round_done: bool,
    undone: u32,
}

/// The model that recorders show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BbrDraftModel {
    /// `BBR.state`.
    pub state: BbrDraftPhase,
    /// `BBR.max_bw` in bytes per second.
    pub max_bw: u64,
    /// `BBR.bw_shortterm` in bytes per second.
    pub bw_shortterm: Option<u64>,
    /// `BBR.inflight_longterm` in segments.
    pub inflight_longterm: Option<u32>,
    /// `BBR.inflight_shortterm` in segments.
    pub inflight_shortterm: Option<u32>,
    /// Gains of rate and window in thousandths.
    pub gains: [u64; 2],
    /// `BBR.min_rtt`.
    pub min_rtt: Option<Duration>,
}

impl BbrDraft {
    /// BBR of this dialect, which draws its waits from `rng`.
    pub fn new(params: &'static BbrDraftParams, rng: RandomStream) -> Self {
        let dialect = DIALECTS.iter().position(|known| known.name == params.name).unwrap_or(0);
        Self {
            dialect,
            rng,
            unit: 0,
            mss: 1,
            initial_cwnd: 0,
            cwnd: 1,
            prior_cwnd: 0,
            pacing_rate: 0,
            has_seen_rtt: false,
            send_quantum: 0,
            state: BbrDraftPhase::Startup,
            pacing_gain: params.startup_pacing_gain,
            cwnd_gain: params.cwnd_gain,
            in_recovery: false,
            after_timeout: false,
            recovery_point: Offset(0),
            delivered: 0,
            inflight: 0,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            idle_restart: false,
            drain_start_round: 0,
            max_bw_filter: [0; 2],
            bw: 0,
            bw_latest: 0,
            bw_shortterm: INFINITY,
            inflight_latest: 0,
            inflight_shortterm: INFINITY,
            inflight_longterm: INFINITY,
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            loss_events_in_round: 0,
            recovery_round: 0,
            lost_in_probe: 0,
            full_bw_reached: false,
            full_bw_now: false,
            full_bw: 0,
            full_bw_count: 0,
            rounds_with_queue: 0,
            min_inflight_in_round: INFINITY,
            extra_acked: ExtraAckedFilter::new(Instant::ZERO),
            ack_phase: BbrAckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0,
            probe_up_acked_per_inc: INFINITY,
            rounds_since_probe_up: 0,
            bw_probe_wait: Duration::ZERO,
            cycle_stamp: Instant::ZERO,
            phase_stamp: Instant::ZERO,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            has_saved: false,
            undo_state: None,
            undo_bw_shortterm: 0,
            undo_inflight_shortterm: 0,
            undo_inflight_longterm: 0,
            min_rtt: None,
            min_rtt_stamp: Instant::ZERO,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: Instant::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            undone: 0,
        }
    }

    /// The same of a stack whose samples count bytes, not segments, and that begins with this window.
    #[must_use]
    pub const fn counting_bytes(mut self, initial_cwnd: u64) -> Self {
        (self.unit, self.initial_cwnd) = (1, initial_cwnd);
        self
    }

    /// Its parameters.
    pub fn params(&self) -> &'static BbrDraftParams {
        DIALECTS.get(self.dialect).copied().unwrap_or(&DRAFT)
    }

    /// Passes the named state to `visit`: data in bytes, rates in bytes per second, gains in thousandths, times in
    /// nanoseconds, flags as 0 or 1, the state in the order of [`BbrDraftPhase`]. `None`: infinite or unset.
    pub fn visit_state(&self, visit: &mut dyn FnMut(&'static str, Option<u64>)) {
        let finite = |bound: u64| (bound != INFINITY).then_some(bound);
        let nanos = |span: Option<Duration>| span.map(Duration::as_nanos);
        for (name, value) in [
            ("state", Some(self.state as u64)),
            ("ack_phase", Some(self.ack_phase as u64)),
            ("pacing_gain", Some(self.pacing_gain)),
            ("cwnd_gain", Some(self.cwnd_gain)),
            ("max_bw", Some(self.max_bw())),
            ("bw", Some(self.bw)),
            ("bw_shortterm", finite(self.bw_shortterm)),
            ("inflight_shortterm", finite(self.inflight_shortterm)),
            ("inflight_longterm", finite(self.inflight_longterm)),
            ("min_rtt", nanos(self.min_rtt)),
            ("probe_rtt_min_delay", nanos(self.probe_rtt_min_delay)),
            ("extra_acked", Some(self.extra_acked.most())),
            ("round_count", Some(self.round_count)),
            ("full_bw_count", Some(u64::from(self.full_bw_count))),
            ("full_bw_now", Some(u64::from(self.full_bw_now))),
            ("full_bw_reached", Some(u64::from(self.full_bw_reached))),
            ("prev_probe_too_high", Some(u64::from(self.prev_probe_too_high))),
            ("prev_probe_precautionary", Some(u64::from(self.prev_probe_precautionary))),
            ("probe_up_acked_per_inc", finite(self.probe_up_acked_per_inc)),
            ("bw_probe_wait", Some(self.bw_probe_wait.as_nanos())),
            ("cycle_stamp", Some(self.cycle_stamp.as_nanos())),
            ("drain_start_round", Some(self.drain_start_round)),
            ("idle_restart", Some(u64::from(self.idle_restart))),
            ("undo_state", self.undo_state.map(|state| state as u64)),
            ("undo_bw_shortterm", finite(self.undo_bw_shortterm)),
            ("undo_inflight_shortterm", finite(self.undo_inflight_shortterm)),
            ("undo_inflight_longterm", finite(self.undo_inflight_longterm)),
            ("undone", Some(u64::from(self.undone))),
            ("inflight", Some(self.inflight)),
            ("inflight_target", Some(self.inflight_of(self.bw, UNIT))),
            ("inflight_with_headroom", finite(self.inflight_with_headroom())),
            ("cwnd", Some(self.cwnd)),
            ("pacing_rate", Some(self.pacing_rate)),
            ("smss", Some(self.mss)),
        ] {
            visit(name, value);
        }
    }

    /// `BBR.state`, `BBR.max_bw` and `BBR.bw_shortterm` in bytes per second, `BBR.inflight_longterm` and
    /// `BBR.inflight_shortterm` in segments, gains of rate and window in thousandths, `BBR.min_rtt`.
    pub fn model(&self) -> BbrDraftModel {
        let finite = |bound: u64| (bound != INFINITY).then_some(bound);
        let segments = |bound: u64| finite(bound).map(|bound| bound.div_ceil(self.mss) as u32);
        BbrDraftModel {
            state: self.state,
            max_bw: self.max_bw(),
            bw_shortterm: finite(self.bw_shortterm),
            inflight_longterm: segments(self.inflight_longterm),
            inflight_shortterm: segments(self.inflight_shortterm),
            gains: [self.pacing_gain, self.cwnd_gain],
            min_rtt: self.min_rtt,
        }
    }

    /// `UpdateOnACK`.
    fn update_on_ack(&mut self, rs: &DraftSample) {
        (self.delivered, self.inflight) = (rs.total_delivered, rs.inflight);
        self.note_marks(rs);
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(rs);
        self.update_ack_aggregation(rs);
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(rs);
        self.update_probe_bw_cycle_phase(rs);
        self.update_min_rtt(rs);
        self.check_probe_rtt(rs);
        self.advance_latest_delivery_signals(rs);
        self.bw = self.max_bw().min(self.bw_shortterm);
        self.set_pacing_rate(rs);
        self.set_send_quantum();
        self.set_cwnd(rs);
    }

    /// A state begins, with its gains.
    fn enter(&mut self, state: BbrDraftPhase, now: Instant) {
        let params = self.params();
        (self.state, self.phase_stamp) = (state, now);
        (self.pacing_gain, self.cwnd_gain) = match state {
            BbrDraftPhase::Startup => (params.startup_pacing_gain, params.cwnd_gain),
            BbrDraftPhase::Drain => (params.drain_pacing_gain, params.cwnd_gain),
            BbrDraftPhase::Down => (params.down_pacing_gain, params.cwnd_gain),
            BbrDraftPhase::Cruise | BbrDraftPhase::Refill => (UNIT, params.cwnd_gain),
            BbrDraftPhase::Up => (params.up_pacing_gain, params.up_cwnd_gain),
            BbrDraftPhase::ProbeRtt => (UNIT, params.probe_rtt_cwnd_gain),
        };
    }
}

/// `value` times `gain` thousandths.
const fn times(value: u64, gain: u64) -> u64 {
    if value == INFINITY {
        return INFINITY;
    }
    let product = value as u128 * gain as u128 / UNIT as u128;
    if product > INFINITY as u128 { INFINITY } else { product as u64 }
}

/// Bytes at `rate` bytes per second in `span`.
const fn volume(rate: u64, span: Duration) -> u64 {
    let bytes = rate as u128 * span.as_nanos() as u128 / 1_000_000_000;
    if bytes > INFINITY as u128 { INFINITY } else { bytes as u64 }
}
