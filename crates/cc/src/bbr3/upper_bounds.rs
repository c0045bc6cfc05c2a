//! The long-term bound of the flight: lowered when a probe loses or marks too much, raised while it does not
//! (`bbr_adapt_upper_bounds`, `bbr_skb_marked_lost`).

use units::Instant;

use super::lower_bounds::times;
use super::{AckPhase, Bbr3, BbrMode, ProbePhase, UNIT, UNSET};
use crate::contract::{LostSegment, RateSample, TxSample};

impl Bbr3 {
    /// `bbr_adapt_upper_bounds`; returns whether the next phase was decided.
    pub(super) fn adapt_upper_bounds(&mut self, sample: &RateSample) -> bool {
        let tx = &sample.signals.tx;
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.bw_probe_samples = false;
            self.ack_phase = AckPhase::Init;
            let probes = self.mode == BbrMode::ProbeBw;
            if probes && !tx.app_limited {
                self.advance_max_bw_filter();
            }
            if probes && self.stopped_risky_probe && !self.prev_probe_too_high {
                self.start_refill(sample.delivered, 0);
                return true;
            }
        }
        if self.is_inflight_too_high(tx) {
            if self.bw_probe_samples {
                self.handle_inflight_too_high(sample.signals.now, sample.delivered, tx);
            }
            return false;
        }
        if self.inflight_hi == UNSET {
            return false;
        }
        self.inflight_hi = self.inflight_hi.max(tx.in_flight);
        if self.mode == BbrMode::ProbeBw && self.phase == ProbePhase::Up {
            self.probe_inflight_hi_upward(sample);
        }
        false
    }

    /// `bbr_is_inflight_too_high`.
    pub(super) fn is_inflight_too_high(&self, tx: &TxSample) -> bool {
        if tx.lost > 0 && tx.in_flight > 0 && tx.lost > times(tx.in_flight, self.params.loss_thresh)
        {
            return true;
        }
        tx.delivered_ce > 0
            && tx.delivered > 0
            && self.ecn.eligible
            && self.params.ecn_thresh > 0
            && tx.delivered_ce > times(tx.delivered, self.params.ecn_thresh)
    }

    /// `bbr_handle_inflight_too_high`.
    pub(super) fn handle_inflight_too_high(&mut self, now: Instant, delivered: u64, tx: &TxSample) {
        self.prev_probe_too_high = true;
        self.bw_probe_samples = false;
        if !tx.app_limited {
            let least = times(self.target_inflight(), UNIT - self.params.beta);
            self.inflight_hi = tx.in_flight.max(least);
        }
        if self.mode == BbrMode::ProbeBw && self.phase == ProbePhase::Up {
            self.start_down(now, delivered);
        }
    }

    /// `bbr_target_inflight`.
    pub(super) fn target_inflight(&self) -> u32 {
        self.inflight(self.bandwidth(), UNIT).min(self.snd_cwnd)
    }

    /// `bbr_probe_inflight_hi_upward`.
    fn probe_inflight_hi_upward(&mut self, sample: &RateSample) {
        if !sample.signals.window_limited || self.snd_cwnd < self.inflight_hi {
            return;
        }
        self.bw_probe_up_acks = self.bw_probe_up_acks.wrapping_add(sample.acked);
        if self.bw_probe_up_acks >= self.bw_probe_up_cnt {
            let more = self.bw_probe_up_acks / self.bw_probe_up_cnt;
            self.bw_probe_up_acks -= more * self.bw_probe_up_cnt;
            self.inflight_hi = self.inflight_hi.wrapping_add(more);
            self.try_fast_path = false;
        }
        if self.round_start {
            self.raise_inflight_hi_slope();
        }
    }

    /// `bbr_raise_inflight_hi_slope`.
    pub(super) fn raise_inflight_hi_slope(&mut self) {
        let growth = 1_u32 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.bw_probe_up_cnt = (self.snd_cwnd / growth).max(1);
    }

    /// `bbr_inflight_with_headroom`.
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        if self.inflight_hi == UNSET {
            return UNSET;
        }
        let headroom = times(self.inflight_hi, self.params.inflight_headroom).max(1);
        self.inflight_hi.saturating_sub(headroom).max(self.params.cwnd_min_target)
    }

    /// `bbr_note_loss`.
    fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.loss_round_delivered = delivered;
        }
        self.loss_in_round = true;
        self.loss_in_cycle = true;
    }

    /// `bbr_skb_marked_lost`.
    pub(super) fn skb_marked_lost(&mut self, lost: &LostSegment) {
        self.note_loss(lost.delivered);
        if !self.bw_probe_samples || lost.sacked_before {
            return;
        }
        let mut tx = TxSample {
            in_flight: lost.in_flight,
            lost: lost.lost_since,
            app_limited: lost.app_limited,
            ..TxSample::default()
        };
        if self.is_inflight_too_high(&tx) {
            tx.in_flight = self.inflight_hi_from_lost(&tx, lost.packets);
            self.handle_inflight_too_high(lost.now, lost.delivered, &tx);
        }
    }

    /// `bbr_inflight_hi_from_lost_skb`: the flight at which the losses exceeded the threshold.
    fn inflight_hi_from_lost(&self, tx: &TxSample, packets: u32) -> u32 {
        let (Some(inflight), Some(lost)) =
            (tx.in_flight.checked_sub(packets), tx.lost.checked_sub(packets))
        else {
            return UNSET;
        };
        let thresh = u64::from(self.params.loss_thresh);
        let budget = (u64::from(inflight) * thresh + u64::from(UNIT) - 1) >> 8;
        let prefix = match budget.checked_sub(u64::from(lost)) {
            None | Some(0) => 0,
            Some(rest) => (rest << 8) / (u64::from(UNIT) - thresh),
        };
        inflight.wrapping_add(prefix as u32)
    }

    /// `bbr_run_loss_probe_recovery`: a tail loss probe repaired the loss of one packet.
    pub(super) fn loss_probe_recovery(&mut self, now: Instant, delivered: u64, app_limited: bool) {
        self.note_loss(delivered);
        if !self.bw_probe_samples {
            return;
        }
        let tx = TxSample {
            lost: 1,
            in_flight: self.inflight_latest + 1,
            app_limited,
            ..TxSample::default()
        };
        if self.is_inflight_too_high(&tx) {
            self.handle_inflight_too_high(now, delivered, &tx);
        }
    }
}
