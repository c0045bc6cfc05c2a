//! Startup and Drain, and whether the pipe is full (sections "Startup", "Drain").

use super::params::UNIT;
use super::sample::DraftSample;
use super::{BbrDraft, BbrDraftPhase, times};

impl BbrDraft {
    /// `ResetFullBW`.
    pub(super) const fn reset_full_bw(&mut self) {
        self.full_bw = 0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// `CheckFullBWReached`.
    pub(super) fn check_full_bw_reached(&mut self, rs: &DraftSample) {
        if self.full_bw_now || !self.round_start || rs.is_app_limited {
            return;
        }
        let params = self.params();
        let rate = if params.full_bw_of_max { self.max_bw() } else { rs.delivery_rate };
        if rate >= times(self.full_bw, params.full_bw_growth) {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= params.full_bw_rounds;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// `CheckStartupDone`, with `CheckStartupHighLoss`.
    pub(super) fn check_startup_done(&mut self, rs: &DraftSample) {
        if rs.newly_lost > 0 {
            self.loss_events_in_round += 1;
        }
        if self.state == BbrDraftPhase::Startup && !self.full_bw_reached {
            self.check_startup_high_loss(rs);
        }
        if self.loss_round_start {
            self.loss_events_in_round = 0;
        }
        if self.state == BbrDraftPhase::Startup && self.full_bw_reached {
            self.enter(BbrDraftPhase::Drain, rs.now);
            self.drain_start_round = self.round_count;
        }
    }

    /// `CheckStartupHighLoss`: losses of a whole round in recovery, in several ranges, above the threshold.
    fn check_startup_high_loss(&mut self, rs: &DraftSample) {
        let params = self.params();
        let in_recovery = !params.startup_in_recovery
            || (self.in_recovery && self.round_count > self.recovery_round);
        let is_high = self.loss_round_start
            && in_recovery
            && self.loss_events_in_round >= params.startup_full_losses
            && self.is_inflight_too_high(rs);
        if is_high {
            self.undo_state = Some(BbrDraftPhase::Startup);
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp(self.bw, UNIT).max(self.inflight_latest);
        }
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, rs: &DraftSample) {
        if self.state != BbrDraftPhase::Drain {
            return;
        }
        let rounds = self.params().drain_rounds;
        let is_late = rounds.is_some_and(|most| self.round_count > self.drain_start_round + most);
        if rs.inflight <= self.inflight_of(self.bw, UNIT) || is_late {
            self.start_down(rs.now);
        }
    }
}
