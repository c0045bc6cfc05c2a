//! ProbeBW: down, cruise, refill, up, and when to probe (sections "ProbeBW", "Time Scale for Bandwidth Probing").

use units::{Duration, Instant};

use super::params::{UNIT, UpExit};
use super::sample::DraftSample;
use super::{BbrAckPhase, BbrDraft, BbrDraftPhase, INFINITY, times};

impl BbrDraft {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = now;
        self.ack_phase = BbrAckPhase::ProbeStopping;
        self.start_round();
        self.enter(BbrDraftPhase::Down, now);
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) fn start_cruise(&mut self, now: Instant) {
        self.enter(BbrDraftPhase::Cruise, now);
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self, now: Instant) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0;
        self.prev_probe_precautionary = false;
        self.ack_phase = BbrAckPhase::Refilling;
        self.start_round();
        self.enter(BbrDraftPhase::Refill, now);
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, rs: &DraftSample) {
        self.ack_phase = BbrAckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = rs.delivery_rate;
        self.rounds_with_queue = 0;
        self.enter(BbrDraftPhase::Up, rs.now);
        self.raise_inflight_longterm_slope();
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, rs: &DraftSample) {
        if !self.full_bw_reached || self.adapt_long_term_model(rs) {
            return;
        }
        match self.state {
            BbrDraftPhase::Down => {
                if !self.probes_when_due(rs) && self.is_time_to_cruise(rs) {
                    self.start_cruise(rs.now);
                    if self.params().probe_rtt_after_down {
                        self.begin_due_probe_rtt(rs);
                    }
                }
            }
            BbrDraftPhase::Cruise => {
                self.probes_when_due(rs);
            }
            BbrDraftPhase::Refill => {
                if self.round_start {
                    self.is_bw_probe_sample = true;
                    self.start_up(rs);
                }
            }
            BbrDraftPhase::Up => {
                if self.is_time_to_go_down(rs) {
                    self.prev_probe_too_high = false;
                    self.start_down(rs.now);
                }
            }
            BbrDraftPhase::Startup | BbrDraftPhase::Drain | BbrDraftPhase::ProbeRtt => {}
        }
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, rs: &DraftSample) -> bool {
        let lasts = rs.now.since(self.phase_stamp);
        if self.params().down_for_min_rtt && self.min_rtt.is_some_and(|rtt| lasts > rtt) {
            return true;
        }
        rs.inflight <= self.inflight_with_headroom()
            && rs.inflight <= self.inflight_of(self.max_bw(), UNIT)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, rs: &DraftSample) -> bool {
        let params = self.params();
        let is_risky = self.prev_probe_too_high && rs.inflight >= self.inflight_longterm;
        if params.precautionary && is_risky {
            self.prev_probe_precautionary = true;
            return true;
        }
        match params.up_exit {
            UpExit::FullPipe => {
                if rs.is_cwnd_limited && self.cwnd >= self.inflight_longterm {
                    self.reset_full_bw();
                    self.full_bw = rs.delivery_rate;
                    return false;
                }
                self.full_bw_now
            }
            UpExit::Inflight => {
                let lasts = rs.now.since(self.phase_stamp);
                self.min_rtt.is_some_and(|rtt| lasts > rtt)
                    && rs.inflight > self.inflight_of(self.max_bw(), 1_250)
            }
            UpExit::Queue { rounds } => self.rounds_with_queue >= rounds,
        }
    }

    /// `IsProbingBW`.
    pub(super) const fn is_probing_bw(&self) -> bool {
        matches!(self.state, BbrDraftPhase::Startup | BbrDraftPhase::Refill | BbrDraftPhase::Up)
    }

    /// `IsTimeToProbeBW`.
    fn probes_when_due(&mut self, rs: &DraftSample) -> bool {
        let elapsed = rs.now.since(self.cycle_stamp) > self.bw_probe_wait;
        let due = elapsed || self.is_reno_coexistence_probe_time();
        if due {
            self.start_refill(rs.now);
        }
        due
    }

    /// `IsRenoCoexistenceProbeTime`: the target flight counts in segments.
    fn is_reno_coexistence_probe_time(&self) -> bool {
        let rounds = self.target_inflight() / self.mss;
        self.rounds_since_probe_up >= rounds.min(self.params().reno_rounds)
    }

    /// `TargetInflight`.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.bw, UNIT).min(self.cwnd)
    }

    /// `PickProbeWait`.
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = self.rng.below(2);
        let [least, more] = self.probe_waits();
        let drawn = if more.is_zero() { 0 } else { self.rng.below(more.as_nanos()) };
        self.bw_probe_wait = least + Duration::from_nanos(drawn);
    }

    /// The least time until the next probe, and the random part of it.
    pub fn probe_waits(&self) -> [Duration; 2] {
        let params = self.params();
        let long = params.long_rtt.and_then(|from| self.min_rtt.filter(|rtt| *rtt >= from));
        long.map_or(params.probe_wait, |rtt| [rtt.saturating_mul(8), rtt.saturating_mul(4)])
    }

    /// Replaces what was drawn for the current cycle, which has just begun: rounds that count as passed since a probe, and
    /// the wait until the next.
    pub const fn redraw(&mut self, rounds: u64, wait: Duration) {
        (self.rounds_since_probe_up, self.bw_probe_wait) = (rounds, wait);
    }

    /// When the current cycle of ProbeBW began; `None` outside of ProbeBW.
    pub fn cycle_began(&self) -> Option<Instant> {
        self.state.is_probe_bw().then_some(self.cycle_stamp)
    }

    /// `InflightWithHeadroom`.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == INFINITY {
            return INFINITY;
        }
        let headroom = times(self.inflight_longterm, self.params().headroom).max(self.mss);
        self.inflight_longterm.saturating_sub(headroom).max(self.least_cwnd())
    }
}
