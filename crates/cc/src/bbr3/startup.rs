//! Startup and Drain: the rate doubles per round until the bandwidth stops growing or the losses of a round are too
//! many; then the queue is drained (`bbr_check_full_bw_reached`, `bbr_check_loss_too_high_in_startup`,
//! `bbr_check_drain`).

use super::{Bbr3, BbrCaState, BbrMode, UNIT};
use crate::contract::RateSample;

impl Bbr3 {
    /// `bbr_check_loss_too_high_in_startup`.
    pub(super) fn check_loss_too_high_in_startup(&mut self, sample: &RateSample) {
        if self.full_bw_reached {
            return;
        }
        if sample.losses > 0 && self.loss_events_in_round < 0xf {
            self.loss_events_in_round += 1;
        }
        let count = self.params.full_loss_cnt;
        if count > 0
            && self.loss_round_start
            && self.state == BbrCaState::Recovery
            && self.loss_events_in_round >= count
            && self.is_inflight_too_high(&sample.signals.tx)
        {
            self.handle_queue_too_high_in_startup();
            return;
        }
        if self.loss_round_start {
            self.loss_events_in_round = 0;
        }
    }

    /// `bbr_handle_queue_too_high_in_startup`.
    pub(super) fn handle_queue_too_high_in_startup(&mut self) {
        self.full_bw_reached = true;
        let bdp = self.inflight(self.max_bandwidth(), UNIT);
        self.inflight_hi = bdp.max(self.inflight_latest);
    }

    /// `bbr_check_full_bw_reached`.
    pub(super) fn check_full_bw_reached(&mut self, sample: &RateSample, bw: u32) {
        if self.full_bw_now || sample.signals.tx.app_limited {
            return;
        }
        let wanted = (u64::from(self.full_bw) * u64::from(self.params.full_bw_thresh)) >> 8;
        if u64::from(bw) >= wanted {
            self.reset_full_bw();
            self.full_bw = bw;
            return;
        }
        if !self.round_start {
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_now = self.full_bw_cnt >= self.params.full_bw_cnt;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// `bbr_check_drain`.
    pub(super) fn check_drain(&mut self, sample: &RateSample) {
        if self.mode == BbrMode::Startup && self.full_bw_reached {
            self.mode = BbrMode::Drain;
            self.snd_ssthresh = self.inflight(self.max_bandwidth(), UNIT);
            self.reset_congestion_signals();
        }
        if self.mode == BbrMode::Drain
            && self.packets_in_net_at_edt(sample, sample.in_flight)
                <= self.inflight(self.max_bandwidth(), UNIT)
        {
            self.mode = BbrMode::ProbeBw;
            self.start_down(sample.signals.now, sample.delivered);
        }
    }
}
