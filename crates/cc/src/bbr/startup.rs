//! Startup: the rate doubles per round until the bandwidth stops growing
//! (`bbr_check_full_bw_reached`).

use super::{Bbr, BbrMode, UNIT};
use crate::contract::RateSample;

/// A round must increase the bandwidth by a quarter (`bbr_full_bw_thresh`).
const GROWTH: u32 = UNIT * 5 / 4;
/// Rounds in a row without such an increase after which the pipe is full (`bbr_full_bw_cnt`).
const ROUNDS: u32 = 3;

impl Bbr {
    /// `bbr_reset_startup_mode`.
    pub(super) fn reset_startup(&mut self) {
        self.mode = BbrMode::Startup;
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
