//! ACK aggregation: how much more than the bandwidth predicts is acknowledged at times, and the extra window for it
//! (`bbr_update_ack_aggregation`).

use serde::{Deserialize, Serialize};

use super::{BW_UNIT, Bbr3, whole_micros};
use crate::contract::RateSample;

/// Most packets of an epoch (`bbr_ack_epoch_acked_reset_thresh`).
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct ExtraAcked {
    /// Packets beyond the expected number, the maximum of each of two windows.
    extra: [u16; 2],
    window: usize,
    rounds: u32,
    /// Beginning of the epoch in microseconds, and the packets acknowledged since.
    epoch_us: u64,
    acked: u64,
}

impl ExtraAcked {
    pub(super) const fn new(now_us: u64) -> Self {
        Self { extra: [0; 2], window: 0, rounds: 0, epoch_us: now_us, acked: 0 }
    }

    /// Begins another epoch after idle.
    pub(super) const fn restart(&mut self, now_us: u64) {
        self.epoch_us = now_us;
        self.acked = 0;
    }

    /// `bbr_extra_acked`.
    pub(super) fn most(&self) -> u32 {
        u32::from(self.extra[0].max(self.extra[1]))
    }
}

impl Bbr3 {
    /// `bbr_update_ack_aggregation`.
    pub(super) fn update_ack_aggregation(&mut self, sample: &RateSample) {
        if sample.acked == 0 || sample.rate.is_none() {
            return;
        }
        let bw = u64::from(self.bandwidth());
        let rounds = if self.full_bw_reached { self.params.extra_acked_win_rtts } else { 1 };
        let (round, cwnd) = (self.round_start, u64::from(self.snd_cwnd));
        let all = &mut self.extra_acked;
        if round {
            all.rounds = (all.rounds + 1).min(0x1f);
            if all.rounds >= rounds {
                all.rounds = 0;
                all.window = 1 - all.window;
                all.extra[all.window] = 0;
            }
        }
        let delivered_us = whole_micros(sample.delivered_at);
        let span = delivered_us.saturating_sub(all.epoch_us);
        let mut expected = (u128::from(bw) * u128::from(span) / u128::from(BW_UNIT)) as u64;
        let acked = u64::from(sample.acked);
        if all.acked <= expected || all.acked + acked >= LONGEST {
            (all.acked, all.epoch_us, expected) = (0, delivered_us, 0);
        }
        all.acked = (all.acked + acked).min(LONGEST - 1);
        let extra = all.acked.saturating_sub(expected).min(cwnd);
        all.extra[all.window] = all.extra[all.window].max(extra as u16);
    }

    /// `bbr_ack_aggregation_cwnd`.
    pub(super) fn ack_aggregation_cwnd(&self) -> u32 {
        let most = u64::from(self.bandwidth()) * self.params.extra_acked_max_us / BW_UNIT;
        self.extra_acked.most().min(u32::try_from(most).unwrap_or(u32::MAX))
    }
}
