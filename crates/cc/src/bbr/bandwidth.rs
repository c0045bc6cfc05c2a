//! The bandwidth estimate: the maximum delivery rate of the last ten rounds (win_minmax.c,
//! `bbr_update_bw`).

use super::{BW_UNIT, Bbr};
use crate::contract::RateSample;

/// Rounds for which a sample counts (`bbr_bw_rtts`).
const ROUNDS: u32 = 10;

/// Kathleen Nichols' windowed maximum: the best sample of the window and the two best after it
/// (`minmax_running_max`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct MaxFilter([BandwidthSample; 3]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct BandwidthSample {
    round: u32,
    value: u64,
}

impl MaxFilter {
    pub(super) const fn new(round: u32) -> Self {
        Self([BandwidthSample { round, value: 0 }; 3])
    }

    pub(super) const fn get(&self) -> u64 {
        self.0[0].value
    }

    /// Adds the sample of a round.
    pub(super) fn update(&mut self, round: u32, value: u64) {
        let sample = BandwidthSample { round, value };
        let best = &mut self.0;
        if value >= best[0].value || round.wrapping_sub(best[2].round) > ROUNDS {
            *best = [sample; 3];
            return;
        }
        if value >= best[1].value {
            (best[1], best[2]) = (sample, sample);
        } else if value >= best[2].value {
            best[2] = sample;
        }
        self.age(sample);
    }

    /// `minmax_subwin_update`: expired samples are replaced by the next best.
    fn age(&mut self, sample: BandwidthSample) {
        let best = &mut self.0;
        let passed = sample.round.wrapping_sub(best[0].round);
        if passed > ROUNDS {
            *best = [best[1], best[2], sample];
            if sample.round.wrapping_sub(best[0].round) > ROUNDS {
                *best = [best[1], best[2], sample];
            }
        } else if best[1].round == best[0].round && passed > ROUNDS / 4 {
            (best[1], best[2]) = (sample, sample);
        } else if best[2].round == best[1].round && passed > ROUNDS / 2 {
            best[2] = sample;
        }
    }
}

impl Bbr {
    /// `bbr_update_bw`.
    pub(super) fn update_bandwidth(&mut self, sample: &RateSample) {
        self.round_start = false;
        let Some(rate) = &sample.rate else { return };
        if rate.prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = sample.delivered;
            self.rtt_cnt = self.rtt_cnt.wrapping_add(1);
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(sample.losses > 0, rate.app_limited);
        let bw = u64::from(rate.delivered) * BW_UNIT / u64::from(rate.interval_us.max(1));
        // An application-limited sample counts only if it exceeds the maximum.
        if !rate.app_limited || bw >= self.max_bw() {
            self.bw.update(self.rtt_cnt, bw);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lasts_ten_rounds_then_the_next_best_replaces_it() {
        let mut filter = MaxFilter::new(0);
        filter.update(1, 100);
        for round in 2..=11 {
            filter.update(round, 50 + u64::from(round));
            assert_eq!(filter.get(), 100, "{round}");
        }
        // Round 12 is the eleventh after it; of the rounds since, the latest were the best.
        filter.update(12, 10);
        assert_eq!(filter.get(), 61);
        filter.update(13, 200);
        assert_eq!(filter.get(), 200);
        // After a long gap only the current sample is left.
        filter.update(40, 5);
        assert_eq!(filter.get(), 5);
    }
}
