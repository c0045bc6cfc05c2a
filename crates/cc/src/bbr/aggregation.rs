//! ACK aggregation: how much more than the bandwidth predicts is acknowledged at times, and the
//! extra window for it (`bbr_update_ack_aggregation`).

use units::Instant;

use super::{BW_UNIT, Bbr, micros};
use crate::contract::RateSample;

/// Rounds in each of the two windows (`bbr_extra_acked_win_rtts`).
const ROUNDS: u32 = 5;
/// Maximum number of packets in an epoch (`bbr_ack_epoch_acked_reset_thresh`).
const LONGEST: u64 = 1 << 20;
/// Maximum extra window in microseconds of bandwidth (`bbr_extra_acked_max_us`).
const MOST_US: u64 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct AckAggregation {
    /// Packets beyond the expected number, the maximum of this window and of the previous one.
    extra: [u32; 2],
    window: usize,
    rounds: u32,
    epoch: Instant,
    acked: u64,
}

impl AckAggregation {
    pub(super) const fn new(now: Instant) -> Self {
        Self { extra: [0; 2], window: 0, rounds: 0, epoch: now, acked: 0 }
    }

    #[cfg(test)]
    pub(super) const fn set_extra(&mut self, extra: [u32; 2]) {
        self.extra = extra;
    }

    /// The state after idle.
    pub(super) const fn after_idle(self, now: Instant) -> Self {
        Self { epoch: now, acked: 0, ..self }
    }
}

impl Bbr {
    /// `bbr_update_ack_aggregation`.
    pub(super) fn update_aggregation(&mut self, sample: &RateSample) {
        if sample.acked == 0 || sample.rate.is_none() {
            return;
        }
        let bw = self.bandwidth();
        let (round, cwnd) = (self.round_start, self.snd_cwnd);
        let all = &mut self.aggregation;
        if round {
            all.rounds = (all.rounds + 1).min(0x1f);
            if all.rounds >= ROUNDS {
                all.rounds = 0;
                all.window = 1 - all.window;
                all.extra[all.window] = 0;
            }
        }
        let span = micros(all.epoch, sample.delivered_at);
        let mut expected = (u128::from(bw) * u128::from(span) / u128::from(BW_UNIT)) as u64;
        if all.acked <= expected || all.acked + u64::from(sample.acked) >= LONGEST {
            (all.acked, all.epoch, expected) = (0, sample.delivered_at, 0);
        }
        all.acked = (all.acked + u64::from(sample.acked)).min(LONGEST - 1);
        let extra = all.acked.saturating_sub(expected).min(u64::from(cwnd)) as u32;
        all.extra[all.window] = all.extra[all.window].max(extra);
    }

    /// `bbr_ack_aggregation_cwnd`.
    pub(super) fn aggregation_cwnd(&self) -> u32 {
        if !self.full_bw_reached {
            return 0;
        }
        let most = u128::from(self.bandwidth()) * u128::from(MOST_US) / u128::from(BW_UNIT);
        let extra = self.aggregation.extra[0].max(self.aggregation.extra[1]);
        extra.min(u32::try_from(most).unwrap_or(u32::MAX))
    }
}
