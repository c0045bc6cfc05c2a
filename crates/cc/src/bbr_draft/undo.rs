//! State saved when a loss recovery begins, and restored if the recovery was spurious (section "Updating the Model Upon
//! Detecting a Spurious Loss Recovery").

use units::Instant;

use super::{BbrDraft, BbrDraftPhase};

impl BbrDraft {
    /// `SaveStateUponLoss`.
    pub(super) fn save_state_upon_loss(&mut self) {
        if core::mem::replace(&mut self.has_saved, true) {
            return;
        }
        self.save_cwnd();
        self.undo_state = None;
        self.undo_bw_shortterm = self.bw_shortterm;
        self.undo_inflight_shortterm = self.inflight_shortterm;
        self.undo_inflight_longterm = self.inflight_longterm;
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn handle_spurious_loss_detection(&mut self, now: Instant) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.max(self.undo_bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo_inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo_inflight_longterm);
        match self.undo_state {
            Some(BbrDraftPhase::Startup) if self.state != BbrDraftPhase::Startup => {
                self.full_bw_reached = false;
                if self.state != BbrDraftPhase::ProbeRtt {
                    self.enter(BbrDraftPhase::Startup, now);
                }
            }
            Some(BbrDraftPhase::Up)
                if !matches!(self.state, BbrDraftPhase::Up | BbrDraftPhase::ProbeRtt) =>
            {
                self.start_refill(now);
            }
            _ => {}
        }
        self.undo_state = None;
        self.has_saved = false;
        self.undone += 1;
    }

    /// `SaveCwnd`.
    pub(super) fn save_cwnd(&mut self) {
        let is_modulated =
            self.in_recovery || self.after_timeout || self.state == BbrDraftPhase::ProbeRtt;
        self.prior_cwnd = if is_modulated { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// `RestoreCwnd`.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
