//! Drain: empties the queue that startup built (`bbr_check_drain`).

use super::{Bbr, BbrMode, UNIT};
use crate::contract::RateSample;

impl Bbr {
    /// `bbr_check_drain`.
    pub(super) fn check_drain(&mut self, sample: &RateSample) {
        if self.mode == BbrMode::Startup && self.full_bw_reached {
            self.mode = BbrMode::Drain;
            self.snd_ssthresh = self.inflight(self.max_bw(), UNIT);
        }
        if self.mode == BbrMode::Drain
            && self.packets_in_net_at_edt(sample, sample.in_flight)
                <= self.inflight(self.max_bw(), UNIT)
        {
            self.reset_probe_bw(sample.delivered_at);
        }
    }
}
