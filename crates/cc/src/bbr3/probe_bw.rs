//! ProbeBW: down, cruise, refill, up (`bbr_update_cycle_phase`).

use units::Instant;

use super::lower_bounds::times;
use super::{AckPhase, Bbr3, BbrCaState, BbrMode, ProbePhase, UNIT, UNSET, whole_micros};
use crate::contract::RateSample;

impl Bbr3 {
    /// `bbr_update_cycle_phase`.
    pub(super) fn update_cycle_phase(&mut self, sample: &RateSample, bw: u32) {
        if !self.full_bw_reached || self.adapt_upper_bounds(sample) || self.mode != BbrMode::ProbeBw
        {
            return;
        }
        let inflight = self.packets_in_net_at_edt(sample, sample.prior_in_flight);
        match self.phase {
            ProbePhase::Cruise => {
                self.check_time_to_probe(sample);
            }
            ProbePhase::Refill => {
                if self.round_start {
                    self.bw_probe_samples = true;
                    self.start_up(sample, bw);
                }
            }
            ProbePhase::Up => self.probe_up(sample, inflight, bw),
            ProbePhase::Down => {
                if !self.check_time_to_probe(sample) && self.is_time_to_cruise(inflight) {
                    self.start_cruise();
                }
            }
        }
    }

    /// The end of a probe without too many losses: the bound of the last one is reached, or the bandwidth grows no
    /// more.
    fn probe_up(&mut self, sample: &RateSample, inflight: u32, bw: u32) {
        let mut done = false;
        if self.prev_probe_too_high && inflight >= self.inflight_hi {
            self.stopped_risky_probe = true;
            done = true;
        } else if sample.signals.window_limited && self.snd_cwnd >= self.inflight_hi {
            self.reset_full_bw();
            self.full_bw = bw;
        } else if self.full_bw_now {
            done = true;
        }
        if done {
            self.prev_probe_too_high = false;
            self.start_down(sample.signals.now, sample.delivered);
        }
    }

    /// `bbr_check_time_to_probe_bw`; returns whether a probe was started.
    fn check_time_to_probe(&mut self, sample: &RateSample) -> bool {
        if self.params.ecn_reprobe_gain > 0
            && self.ecn.eligible
            && self.ecn_in_cycle
            && !self.loss_in_cycle
            && self.state == BbrCaState::Open
        {
            let growth = times(self.inflight_hi, self.params.ecn_reprobe_gain);
            self.start_refill(sample.delivered, growth.max(1).ilog2());
            return true;
        }
        let elapsed =
            whole_micros(sample.signals.now) > self.cycle_us + u64::from(self.draw.wait_us);
        let rounds = self.params.bw_probe_max_rounds.min(self.target_inflight());
        let due = elapsed || self.rounds_since_probe >= rounds;
        if due {
            self.start_refill(sample.delivered, 0);
        }
        due
    }

    /// `bbr_check_time_to_cruise`.
    fn is_time_to_cruise(&self, inflight: u32) -> bool {
        inflight <= self.inflight_with_headroom()
            && inflight <= self.inflight(self.max_bandwidth(), UNIT)
    }

    /// `bbr_start_bw_probe_refill`.
    pub(super) const fn start_refill(&mut self, delivered: u64, up_rounds: u32) {
        self.reset_lower_bounds();
        self.bw_probe_up_rounds = up_rounds;
        self.bw_probe_up_acks = 0;
        self.stopped_risky_probe = false;
        self.ack_phase = AckPhase::Refilling;
        self.next_rtt_delivered = delivered;
        self.set_phase(ProbePhase::Refill);
    }

    /// `bbr_start_bw_probe_up`.
    fn start_up(&mut self, sample: &RateSample, bw: u32) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.next_rtt_delivered = sample.delivered;
        self.cycle_us = whole_micros(sample.signals.now);
        self.reset_full_bw();
        self.full_bw = bw;
        self.set_phase(ProbePhase::Up);
        self.raise_inflight_hi_slope();
    }

    /// `bbr_start_bw_probe_down`, and `bbr_pick_probe_wait`.
    pub(super) fn start_down(&mut self, now: Instant, delivered: u64) {
        self.reset_congestion_signals();
        self.bw_probe_up_cnt = UNSET;
        self.draw = self.draws.next(&self.params);
        self.rounds_since_probe = self.draw.rounds;
        self.cycle_us = whole_micros(now);
        self.ack_phase = AckPhase::ProbeStopping;
        self.next_rtt_delivered = delivered;
        self.set_phase(ProbePhase::Down);
    }

    /// `bbr_start_bw_probe_cruise`.
    pub(super) fn start_cruise(&mut self) {
        if self.inflight_lo != UNSET {
            self.inflight_lo = self.inflight_lo.min(self.inflight_hi);
        }
        self.set_phase(ProbePhase::Cruise);
    }

    /// `bbr_set_cycle_idx`.
    const fn set_phase(&mut self, phase: ProbePhase) {
        self.phase = phase;
        self.try_fast_path = false;
    }
}
