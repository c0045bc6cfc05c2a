//! Congestion signals of a round, and the short-term bounds that they lower (`bbr_update_latest_delivery_signals`,
//! `bbr_update_congestion_signals`, `bbr_adapt_lower_bounds`).

use super::{Bbr3, BbrMode, ProbePhase, UNIT, UNSET};
use crate::contract::RateSample;

impl Bbr3 {
    /// `bbr_update_latest_delivery_signals`.
    pub(super) fn update_latest(&mut self, sample: &RateSample, bw: u32) {
        self.loss_round_start = false;
        let Some(rate) = sample.rate.as_ref().filter(|_| sample.acked > 0) else { return };
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(rate.delivered);
        if rate.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = sample.delivered;
            self.loss_round_start = true;
        }
    }

    /// `bbr_advance_latest_delivery_signals`: once per round. An acknowledgment that may be of a probe
    /// keeps what the path delivered before it.
    pub(super) fn advance_latest(&mut self, sample: &RateSample, bw: u32) {
        if self.loss_round_start && !sample.signals.acks_probe {
            self.bw_latest = bw;
            self.inflight_latest = sample.signals.tx.delivered;
        }
    }

    /// `bbr_update_congestion_signals`.
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample, bw: u32) {
        let Some(rate) = sample.rate.as_ref().filter(|_| sample.acked > 0) else { return };
        if !rate.app_limited || bw >= self.max_bandwidth() {
            self.bw_hi[1] = self.bw_hi[1].max(bw);
        }
        self.loss_in_round |= sample.losses > 0;
        if !self.loss_round_start {
            return;
        }
        self.adapt_lower_bounds();
        self.loss_in_round = false;
        self.ecn_in_round = false;
    }

    /// `bbr_is_probing_bandwidth`.
    fn is_probing_bandwidth(&self) -> bool {
        match self.mode {
            BbrMode::Startup => true,
            BbrMode::ProbeBw => matches!(self.phase, ProbePhase::Refill | ProbePhase::Up),
            BbrMode::Drain | BbrMode::ProbeRtt => false,
        }
    }

    /// `bbr_adapt_lower_bounds`.
    fn adapt_lower_bounds(&mut self) {
        if self.is_probing_bandwidth() {
            return;
        }
        let mut ecn_inflight_lo = UNSET;
        if self.ecn_in_round && self.params.ecn_factor > 0 {
            self.init_inflight_lo();
            ecn_inflight_lo = times(self.inflight_lo, self.ecn_cut());
        }
        if self.loss_in_round {
            if self.bw_lo == UNSET {
                self.bw_lo = self.max_bandwidth();
            }
            self.init_inflight_lo();
            let cut = UNIT - self.params.beta;
            self.bw_lo = self.bw_latest.max(times(self.bw_lo, cut));
            self.inflight_lo = self.inflight_latest.max(times(self.inflight_lo, cut));
        }
        self.inflight_lo = self.inflight_lo.min(ecn_inflight_lo);
        self.bw_lo = self.bw_lo.max(1);
    }

    const fn init_inflight_lo(&mut self) {
        if self.inflight_lo == UNSET {
            self.inflight_lo = self.snd_cwnd;
        }
    }

    /// `bbr_reset_lower_bounds`.
    pub(super) const fn reset_lower_bounds(&mut self) {
        self.bw_lo = UNSET;
        self.inflight_lo = UNSET;
    }

    /// `bbr_reset_congestion_signals`.
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.ecn_in_round = false;
        self.loss_in_cycle = false;
        self.ecn_in_cycle = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// The bounds before a timeout, outside of a probe (`bbr_set_state`).
    pub(super) fn note_timeout(&mut self) {
        if !self.is_probing_bandwidth() && self.inflight_lo == UNSET {
            self.inflight_lo = self.snd_cwnd.max(self.prior_cwnd);
        }
    }
}

/// A value times a gain in 256ths.
pub(super) const fn times(value: u32, gain: u32) -> u32 {
    ((value as u64 * gain as u64) >> 8) as u32
}
