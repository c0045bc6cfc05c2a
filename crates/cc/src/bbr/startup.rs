//! Startup: the rate doubles with each round until the bandwidth grows no more
//! (`bbr_check_full_bw_reached`).

use super::{Bbr, Mode, UNIT};
use crate::contract::RateSample;

/// A round must bring a quarter more (`bbr_full_bw_thresh`).
const GROWTH: u32 = UNIT * 5 / 4;
/// So many rounds in a row without it, and the bandwidth is found (`bbr_full_bw_cnt`).
const ROUNDS: u32 = 3;

impl Bbr {
    /// `bbr_reset_startup_mode`.
    pub(super) fn reset_startup(&mut self) {
        self.mode = Mode::Startup;
    }

    /// `bbr_check_full_bw_reached`.
    pub(super) fn check_full_bandwidth(&mut self, sample: &RateSample) {
        let limited = sample.rate.as_ref().is_some_and(|rate| rate.app_limited);
        if self.full_bw_reached || !self.round_start || limited {
            return;
        }
        let wanted = (self.full_bw * u64::from(GROWTH)) >> 8;
        if self.max_bw() >= wanted {
            self.full_bw = self.max_bw();
            self.full_bw_cnt = 0;
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= ROUNDS;
    }
}
