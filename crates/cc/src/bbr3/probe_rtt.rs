//! ProbeRTT: after five seconds without a lower RTT, half of the bandwidth-delay product for 200 ms
//! (`bbr_update_min_rtt`).

use units::{Duration, Instant};

use super::{AckPhase, Bbr3, BbrMode, UNSET};
use crate::contract::RateSample;

impl Bbr3 {
    /// `bbr_update_min_rtt`.
    pub(super) fn update_min_rtt(&mut self, sample: &RateSample) {
        let interval = self.ticks(Duration::from_millis(self.params.probe_rtt_win_ms));
        let probe_expired = sample.ticks > self.probe_rtt_min_stamp + interval;
        if let Some(rtt) = sample.rtt_us
            && (rtt < self.probe_rtt_min || (probe_expired && !sample.ack_delayed))
        {
            self.probe_rtt_min = rtt;
            self.probe_rtt_min_stamp = sample.ticks;
        }
        let window = self.params.min_rtt_win_sec * self.hz;
        let expired = sample.ticks > self.min_rtt_stamp + window;
        if self.probe_rtt_min <= self.min_rtt || expired {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        if self.params.probe_rtt_mode_ms > 0
            && probe_expired
            && !self.idle_restart
            && self.mode != BbrMode::ProbeRtt
        {
            self.mode = BbrMode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.next_rtt_delivered = sample.delivered;
        }
        self.probed_rtt = self.mode == BbrMode::ProbeRtt;
        if self.probed_rtt {
            self.stay_in_probe_rtt(sample);
        }
        if sample.signals.tx.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn stay_in_probe_rtt(&mut self, sample: &RateSample) {
        match self.probe_rtt_done_stamp {
            None if sample.in_flight <= self.probe_rtt_cwnd() => {
                let stay = self.ticks(Duration::from_millis(self.params.probe_rtt_mode_ms));
                self.probe_rtt_done_stamp = Some(sample.ticks + stay);
                self.probe_rtt_round_done = false;
                self.next_rtt_delivered = sample.delivered;
            }
            None => {}
            Some(_) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(sample.ticks, sample.signals.now, sample.delivered);
                }
            }
        }
    }

    /// `bbr_probe_rtt_cwnd`.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        let part = self.bdp(self.bandwidth(), self.params.probe_rtt_cwnd_gain);
        part.max(self.params.cwnd_min_target)
    }

    /// `bbr_check_probe_rtt_done`, `bbr_exit_probe_rtt`.
    pub(super) fn check_probe_rtt_done(&mut self, ticks: u64, now: Instant, delivered: u64) {
        if self.probe_rtt_done_stamp.is_none_or(|done| ticks <= done) {
            return;
        }
        self.probe_rtt_min_stamp = ticks;
        self.snd_cwnd = self.snd_cwnd.max(self.prior_cwnd);
        self.reset_lower_bounds();
        if self.full_bw_reached {
            self.mode = BbrMode::ProbeBw;
            self.start_down(now, delivered);
            self.start_cruise();
        } else {
            self.mode = BbrMode::Startup;
        }
    }

    /// The minimum RTT in microseconds; `None` before the first sample.
    pub const fn min_rtt_us(&self) -> Option<u32> {
        if self.min_rtt == UNSET { None } else { Some(self.min_rtt) }
    }
}
