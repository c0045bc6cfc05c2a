//! CE marks: their share, and what follows from it (`bbr_update_ecn_alpha`). They count only where the route
//! declares marks of a low threshold (`ip route ... features ecn_low`) and ECN is negotiated.

use serde::{Deserialize, Serialize};

use super::{Bbr3, UNIT};
use crate::contract::RateSample;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct EcnState {
    /// `TCP_ECN_OK` and `TCP_ECN_LOW`.
    pub(super) usable: bool,
    /// `ecn_eligible`.
    pub(super) eligible: bool,
    /// Moving average of the share of marks, in 256ths (`ecn_alpha`).
    alpha: u32,
    /// Packets delivered, and those with marks, at the last update.
    last: [u64; 2],
    /// Rounds of Startup in a row with many marks.
    startup_rounds: u32,
}

impl EcnState {
    pub(super) const fn new(usable: bool) -> Self {
        Self { usable, eligible: false, alpha: UNIT, last: [0; 2], startup_rounds: 0 }
    }
}

impl Bbr3 {
    /// `bbr_update_ecn_alpha`, once per round.
    pub(super) fn update_ecn_alpha(&mut self, sample: &RateSample) {
        if !self.ecn.usable {
            return;
        }
        let most = self.params.ecn_max_rtt_us;
        if self.params.ecn_factor > 0 && (self.min_rtt <= most || most == 0) {
            self.ecn.eligible = true;
        }
        if !self.ecn.eligible {
            return;
        }
        let now = [sample.delivered, sample.signals.delivered_ce];
        let [delivered, marked] = [now[0] - self.ecn.last[0], now[1] - self.ecn.last[1]];
        if delivered == 0 {
            return;
        }
        let share = (marked << 8) / delivered;
        let gain = self.params.ecn_alpha_gain;
        let alpha =
            (u64::from((UNIT - gain) * self.ecn.alpha) >> 8) + ((u64::from(gain) * share) >> 8);
        self.ecn.alpha = alpha.min(u64::from(UNIT)) as u32;
        self.ecn.last = now;
        self.check_ecn_too_high_in_startup(share);
    }

    /// `bbr_check_ecn_too_high_in_startup`.
    fn check_ecn_too_high_in_startup(&mut self, share: u64) {
        let (count, thresh) = (self.params.full_ecn_cnt, self.params.ecn_thresh);
        if self.full_bw_reached || count == 0 || thresh == 0 {
            return;
        }
        // Two bits.
        let rounds = (self.ecn.startup_rounds + 1) & 3;
        self.ecn.startup_rounds = if share >= u64::from(thresh) { rounds } else { 0 };
        if self.ecn.startup_rounds >= count {
            self.handle_queue_too_high_in_startup();
        }
    }

    /// `bbr_ecn_cut`.
    pub(super) const fn ecn_cut(&self) -> u32 {
        UNIT - ((self.ecn.alpha * self.params.ecn_factor) >> 8)
    }
}
