//! The bandwidth: round trips counted in packets, samples, and the maximum of the last two cycles
//! (`bbr_update_round_start`, `bbr_calculate_bw_sample`, `bbr_max_bw`).

use super::{BW_UNIT, Bbr3};
use crate::contract::RateSample;

impl Bbr3 {
    /// `bbr_update_round_start`.
    pub(super) fn update_round_start(&mut self, sample: &RateSample) {
        self.round_start = false;
        if let Some(rate) = &sample.rate
            && rate.prior_delivered >= self.next_rtt_delivered
        {
            self.next_rtt_delivered = sample.delivered;
            self.round_start = true;
        }
    }

    /// `bbr_calculate_bw_sample`: packets per microsecond times 2^24, rounded up; 0 without a sample.
    pub(super) fn bw_sample(sample: &RateSample) -> u32 {
        sample.rate.as_ref().map_or(0, |rate| {
            let delivered = u64::from(rate.delivered) * BW_UNIT;
            delivered.div_ceil(u64::from(rate.interval_us.max(1))) as u32
        })
    }

    /// `bbr_max_bw`.
    pub(super) fn max_bandwidth(&self) -> u32 {
        self.bw_hi[0].max(self.bw_hi[1])
    }

    /// `bbr_bw`.
    pub(super) fn bandwidth(&self) -> u32 {
        self.max_bandwidth().min(self.bw_lo)
    }

    /// `bbr_advance_max_bw_filter`: a cycle ends; without samples the old one counts on.
    pub(super) const fn advance_max_bw_filter(&mut self) {
        if self.bw_hi[1] != 0 {
            self.bw_hi = [self.bw_hi[1], 0];
        }
    }

    /// `bbr_reset_full_bw`.
    pub(super) const fn reset_full_bw(&mut self) {
        self.full_bw = 0;
        self.full_bw_cnt = 0;
        self.full_bw_now = false;
    }
}
