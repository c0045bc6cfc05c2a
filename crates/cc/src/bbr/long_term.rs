//! Long-term bandwidth sampling, which detects policers: if losses are frequent and the rate
//! between them is constant, that rate is the bandwidth for a while (`bbr_lt_bw_sampling`).

use units::Instant;

use super::{BW_UNIT, Bbr, BbrMode};
use crate::contract::RateSample;

/// Minimum rounds of an interval (`bbr_lt_intvl_min_rtts`), at most four times as many.
const LEAST_ROUNDS: u32 = 4;
/// Loss threshold of an interval, in 256ths (`bbr_lt_loss_thresh`).
const LOSSES: u64 = 50;
/// Two rates are equal within an eighth (`bbr_lt_bw_ratio`), or 4 kbit/s in bytes per second
/// (`bbr_lt_bw_diff`).
const RATIO: u64 = 32;
const DIFFERENCE: u64 = 4_000 / 8;
/// Rounds for which the rate is used (`bbr_lt_bw_max_rtts`).
const MOST_ROUNDS: u32 = 48;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct LongTerm {
    sampling: bool,
    rounds: u32,
    used: bool,
    bw: u64,
    since: Instant,
    delivered: u64,
    lost: u64,
}

impl LongTerm {
    pub(super) const fn new() -> Self {
        Self {
            sampling: false,
            rounds: 0,
            used: false,
            bw: 0,
            since: Instant::ZERO,
            delivered: 0,
            lost: 0,
        }
    }

    /// The policer's rate while it is used.
    pub(super) const fn bw(&self) -> Option<u64> {
        if self.used { Some(self.bw) } else { None }
    }

    /// `bbr_reset_lt_bw_sampling_interval`.
    const fn begin(&mut self, sample: &RateSample) {
        self.since = sample.delivered_at;
        self.delivered = sample.delivered;
        self.lost = sample.lost;
        self.rounds = 0;
    }

    /// `bbr_reset_lt_bw_sampling`, except for the parts that need a sample.
    pub(super) const fn reset_sampling(&mut self) {
        (self.bw, self.used, self.sampling) = (0, false, false);
    }
}

impl Bbr {
    fn reset_long_term(&mut self, sample: &RateSample) {
        self.long_term.reset_sampling();
        self.long_term.begin(sample);
    }

    /// `bbr_lt_bw_sampling`.
    pub(super) fn sample_long_term(&mut self, sample: &RateSample) {
        if self.long_term.used {
            if self.mode == BbrMode::ProbeBw && self.round_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= MOST_ROUNDS {
                    self.reset_long_term(sample);
                    self.reset_probe_bw(sample.delivered_at);
                }
            }
            return;
        }
        // An interval begins and ends with a loss.
        if !self.long_term.sampling {
            if sample.losses == 0 {
                return;
            }
            self.long_term.begin(sample);
            self.long_term.sampling = true;
        }
        if sample.app_limited_now {
            return self.reset_long_term(sample);
        }
        let round_start = self.round_start;
        let all = &mut self.long_term;
        all.rounds += u32::from(round_start);
        if all.rounds < LEAST_ROUNDS {
            return;
        }
        if all.rounds > 4 * LEAST_ROUNDS {
            return self.reset_long_term(sample);
        }
        if sample.losses == 0 {
            return;
        }
        let (lost, delivered) = (sample.lost - all.lost, sample.delivered - all.delivered);
        if delivered == 0 || lost << 8 < LOSSES * delivered {
            return;
        }
        let millis = sample.delivered_at.since(all.since).as_nanos() / 1_000_000;
        if millis < 1 {
            return;
        }
        if millis >= u64::from(u32::MAX) / 1_000 {
            return self.reset_long_term(sample);
        }
        self.end_interval(sample, delivered * BW_UNIT / (millis * 1_000));
    }

    /// `bbr_lt_bw_interval_done`.
    fn end_interval(&mut self, sample: &RateSample, bw: u64) {
        let known = self.long_term.bw;
        if known > 0 {
            let apart = bw.abs_diff(known);
            if apart << 8 <= RATIO * known || self.to_bytes(apart) <= DIFFERENCE {
                let all = &mut self.long_term;
                (all.bw, all.used, all.rounds) = ((bw + known) >> 1, true, 0);
                self.pacing_gain = super::UNIT;
                return;
            }
        }
        self.long_term.bw = bw;
        self.long_term.begin(sample);
    }

    fn to_bytes(&self, bw: u64) -> u64 {
        ((u128::from(bw) * u128::from(self.mss) * 990_000) >> 24) as u64
    }
}
