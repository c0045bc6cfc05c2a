//! Drain: the queue that startup made is let go (`bbr_check_drain`).

use super::{Bbr, Mode, UNIT};
use crate::contract::RateSample;

impl Bbr {
    /// `bbr_check_drain`.
    pub(super) fn check_drain(&mut self, sample: &RateSample) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            self.snd_ssthresh = self.inflight(self.max_bw(), UNIT);
        }
        if self.mode == Mode::Drain
            && self.packets_in_net_at_edt(sample, sample.in_flight)
                <= self.inflight(self.max_bw(), UNIT)
        {
            self.reset_probe_bw(sample.delivered_at);
        }
    }
}
