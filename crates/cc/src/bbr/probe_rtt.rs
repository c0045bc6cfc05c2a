//! ProbeRTT: after ten seconds without a lower RTT, the window is four packets for 200 ms
//! (`bbr_update_min_rtt`).

use units::{Duration, Instant};

use super::{Bbr, BbrMode, MIN_CWND, ticks};
use crate::contract::RateSample;

/// Lifetime of a minimum RTT (`bbr_min_rtt_win_sec`).
const WINDOW: Duration = Duration::from_secs(10);
/// Minimum time with few packets in flight (`bbr_probe_rtt_mode_ms`).
const STAY: Duration = Duration::from_millis(200);

impl Bbr {
    /// `bbr_update_min_rtt`.
    pub(super) fn update_min_rtt(&mut self, sample: &RateSample) {
        let expired = sample.ticks > self.min_rtt_stamp + ticks(WINDOW, self.hz);
        if let Some(rtt) = sample.rtt_us
            && (self.min_rtt.is_none_or(|least| rtt < least) || (expired && !sample.ack_delayed))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_stamp = sample.ticks;
        }
        if expired && !self.idle_restart && self.mode != BbrMode::ProbeRtt {
            self.save_cwnd();
            self.mode = BbrMode::ProbeRtt;
            self.probe_rtt_done_stamp = None;
        }
        self.probed_rtt = self.mode == BbrMode::ProbeRtt;
        if self.mode == BbrMode::ProbeRtt {
            match self.probe_rtt_done_stamp {
                None if sample.in_flight <= MIN_CWND => {
                    self.probe_rtt_done_stamp = Some(sample.ticks + ticks(STAY, self.hz));
                    self.probe_rtt_round_done = false;
                    self.next_rtt_delivered = sample.delivered;
                }
                None => {}
                Some(_) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done {
                        self.check_probe_rtt_done(sample.ticks, sample.delivered_at);
                    }
                }
            }
        }
        if sample.rate.as_ref().is_some_and(|rate| rate.delivered > 0) {
            self.idle_restart = false;
        }
    }

    /// `bbr_check_probe_rtt_done`, and `bbr_reset_mode`.
    pub(super) fn check_probe_rtt_done(&mut self, ticks: u64, now: Instant) {
        if self.probe_rtt_done_stamp.is_none_or(|done| ticks <= done) {
            return;
        }
        self.min_rtt_stamp = ticks;
        self.snd_cwnd = self.snd_cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.reset_probe_bw(now);
        } else {
            self.reset_startup();
        }
    }
}
