//! Long-term bandwidth sampling, which detects policers: if losses are frequent and the rate
//! between them is constant, that rate is the bandwidth for a while (`bbr_lt_bw_sampling`).

use units::Instant;

use super::{BW_UNIT, Bbr, BbrMode};
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

/// What has been delivered and lost in total (`tp->delivered`, `tp->lost`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct Progress {
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// When a packet was last delivered (`tp->delivered_mstamp`), and in whole milliseconds of the kernel's clock.
    pub(super) delivered_at: Instant,
    pub(super) delivered_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct LongTerm {
    sampling: bool,
    rounds: u32,
    used: bool,
    bw: u64,
    /// When the interval began.
    began: Progress,
    /// Now.
    progress: Progress,
}

/// Nothing yet.
const NONE: Progress =
    Progress { delivered: 0, lost: 0, delivered_at: Instant::ZERO, delivered_ms: 0 };

impl LongTerm {
    pub(super) const fn new() -> Self {
        Self { sampling: false, rounds: 0, used: false, bw: 0, began: NONE, progress: NONE }
    }

    /// The policer's rate while it is used.
    pub(super) const fn bw(&self) -> Option<u64> {
        if self.used { Some(self.bw) } else { None }
    }

    /// `bbr_reset_lt_bw_sampling_interval`.
    const fn begin(&mut self) {
        self.began = self.progress;
        self.rounds = 0;
    }

    /// Takes the totals of an acknowledgment.
    pub(super) const fn advance(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// Takes the losses of a timeout.
    pub(super) const fn lose(&mut self, lost: u64) {
        if lost > self.progress.lost {
            self.progress.lost = lost;
        }
    }

    /// `bbr_reset_lt_bw_sampling`.
    pub(super) const fn reset(&mut self) {
        (self.bw, self.used, self.sampling) = (0, false, false);
        self.begin();
    }
}

impl Bbr {
    /// `bbr_lt_bw_sampling`; `losses`: packets were marked lost.
    pub(super) fn sample_long_term(&mut self, losses: bool, app_limited: bool) {
        if self.long_term.used {
            if self.mode == BbrMode::ProbeBw && self.round_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= MOST_ROUNDS {
                    self.long_term.reset();
                    self.reset_probe_bw(self.long_term.progress.delivered_at);
                }
            }
            return;
        }
        // An interval begins and ends with a loss.
        if !self.long_term.sampling {
            if !losses {
                return;
            }
            self.long_term.begin();
            self.long_term.sampling = true;
        }
        if app_limited {
            return self.long_term.reset();
        }
        let round_start = self.round_start;
        let all = &mut self.long_term;
        all.rounds += u32::from(round_start);
        if all.rounds < LEAST_ROUNDS {
            return;
        }
        if all.rounds > 4 * LEAST_ROUNDS {
            return self.long_term.reset();
        }
        if !losses {
            return;
        }
        let (now, began) = (all.progress, all.began);
        let (lost, delivered) = (now.lost - began.lost, now.delivered - began.delivered);
        if delivered == 0 || lost << 8 < LOSSES * delivered {
            return;
        }
        // Both stamps are rounded down (`lt_last_stamp`), so the clock's phase counts.
        let millis = now.delivered_ms.saturating_sub(began.delivered_ms);
        if millis < 1 {
            return;
        }
        if millis >= u64::from(u32::MAX) / 1_000 {
            return self.long_term.reset();
        }
        self.end_interval(delivered * BW_UNIT / (millis * 1_000));
    }

    /// `bbr_lt_bw_interval_done`.
    fn end_interval(&mut self, bw: u64) {
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
        self.long_term.begin();
    }

    fn to_bytes(&self, bw: u64) -> u64 {
        ((u128::from(bw) * u128::from(self.mss) * 990_000) >> 24) as u64
    }
}

#[cfg(test)]
mod tests {
    use units::{Offset, RandomStream};

    use super::*;
    use crate::Bbr;
    use crate::contract::{
        CongestionEvent, CongestionSignal, Controller, DeliveryRate, RateController, RateSample,
    };

    #[test]
    fn a_timeout_begins_an_interval() {
        let mut bbr = Bbr::new(250, RandomStream::named(1, "test", "bbr"));
        let delivered_at = Instant::from_nanos(7);
        let progress = Progress { delivered: 40, lost: 0, delivered_at, delivered_ms: 0 };
        bbr.long_term.advance(progress);
        let _ = bbr.on_congested(&CongestionEvent {
            now: Instant::ZERO,
            ticks: 0,
            signal: CongestionSignal::Timeout { shift: 1 },
            th_ack: Offset(1),
            snd_max: Offset(1_000_000),
            pipe: 0,
            snd_wnd: 0,
            lost: 12,
        });
        assert!(bbr.long_term.sampling);
        assert_eq!(bbr.long_term.began, Progress { lost: 12, ..progress });
    }

    #[test]
    fn samples_are_those_of_packets_sent_with_enough_data() {
        // What counts is the packet delivered (`rs->is_app_limited`).
        for app_limited in [false, true] {
            let mut bbr = Bbr::new(250, RandomStream::named(1, "test", "bbr"));
            let rate =
                DeliveryRate { delivered: 1, interval_us: 50_000, prior_delivered: 1, app_limited };
            let _ = bbr.on_rate_sample(&RateSample {
                ticks: 25,
                rate: Some(rate),
                acked: 1,
                losses: 1,
                delivered: 2,
                lost: 1,
                delivered_at: Instant::from_nanos(100_000_000),
                delivered_clock: 100_000_000,
                rtt_us: Some(50_000),
                ack_delayed: false,
                srtt_us: 50_000,
                prior_in_flight: 2,
                in_flight: 0,
                until_next_departure: units::Duration::ZERO,
                signals: crate::PathSignals::NONE,
            });
            assert_eq!(bbr.long_term.sampling, !app_limited);
        }
    }

    /// A 6.12 in User-Mode Linux whose clock was 390 us into a millisecond: seven packets in 5.3 ms, then twelve in
    /// 10.8 ms were 19,573 and 20,133, and policed to the mean of both.
    #[test]
    fn an_interval_is_the_difference_of_whole_milliseconds_of_the_kernels_clock() {
        let rates = |phase_us: u64| {
            let mut bbr = Bbr::new(250, RandomStream::named(1, "test", "bbr"));
            bbr.mss = 1_448;
            let mut seen = Vec::new();
            for (delivered, lost, at_us) in [(4, 8, 3_482), (11, 10, 8_799), (23, 19, 19_558)] {
                bbr.long_term.advance(Progress {
                    delivered,
                    lost,
                    delivered_at: Instant::from_nanos(1_000 * at_us),
                    delivered_ms: (at_us + phase_us) / 1_000,
                });
                bbr.long_term.rounds = LEAST_ROUNDS;
                bbr.sample_long_term(true, false);
                seen.push(bbr.long_term.bw);
            }
            (seen, bbr.long_term.used)
        };
        assert_eq!(rates(0), (vec![0, 23_488, 18_302], false));
        assert_eq!(rates(390), (vec![0, 19_573, (19_573 + 20_132) / 2], true));
    }
}
