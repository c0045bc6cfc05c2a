//! Losses outside of probes: the short-term bounds (sections "When not Probing for Bandwidth", "Updating the Model Upon Packet
//! Loss").

use super::params::MarkRule;
use super::sample::DraftSample;
use super::{BbrDraft, INFINITY, times};

impl BbrDraft {
    /// `NoteLoss`.
    pub(super) fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
            self.save_state_upon_loss();
        }
        self.is_loss_in_round = true;
    }

    /// CE marks that count as losses.
    pub(super) fn note_marks(&mut self, rs: &DraftSample) {
        if rs.is_marked && self.params().marks == MarkRule::AsLosses {
            self.note_loss();
        }
    }

    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_delivery_signals(&mut self, rs: &DraftSample) {
        self.loss_round_start = false;
        if !rs.has_data {
            return;
        }
        self.bw_latest = self.bw_latest.max(rs.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered);
        if rs.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) const fn advance_latest_delivery_signals(&mut self, rs: &DraftSample) {
        if self.loss_round_start {
            self.bw_latest = rs.delivery_rate;
            self.inflight_latest = rs.delivered;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) const fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// `UpdateCongestionSignals`.
    pub(super) fn update_congestion_signals(&mut self, rs: &DraftSample) {
        self.update_max_bw(rs);
        if !self.loss_round_start {
            return;
        }
        if self.is_loss_in_round && !self.is_probing_bw() {
            self.adapt_lower_bounds();
        }
        self.is_loss_in_round = false;
        self.lost_in_probe = 0;
        // Marks begin no recovery.
        self.has_saved &= self.in_recovery || self.after_timeout;
    }

    /// `InitLowerBounds`, `LossLowerBounds`.
    fn adapt_lower_bounds(&mut self) {
        if self.bw_shortterm == INFINITY {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm == INFINITY {
            self.inflight_shortterm = self.cwnd;
        }
        let beta = self.params().beta;
        self.bw_shortterm = self.bw_latest.max(times(self.bw_shortterm, beta));
        self.inflight_shortterm = self.inflight_latest.max(times(self.inflight_shortterm, beta));
    }

    /// `ResetShortTermModel`.
    pub(super) const fn reset_short_term_model(&mut self) {
        self.bw_shortterm = INFINITY;
        self.inflight_shortterm = INFINITY;
    }
}
