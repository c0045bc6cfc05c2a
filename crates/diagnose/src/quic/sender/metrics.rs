//! The congestion window, round trips and states that the log reports.

use super::{QuicSender, is_queue};
use crate::quic::analysis::QuicAnalysis;
use crate::quic::record::QuicMetrics;

impl QuicSender {
    pub(in crate::quic) fn metrics(
        &mut self,
        out: &mut QuicAnalysis,
        at: u64,
        event: u64,
        metrics: &QuicMetrics,
    ) {
        if let Some(count) = metrics.pto_count {
            self.timers = true;
            out.max_timeouts = out.max_timeouts.max(count);
            if count > self.pto_count {
                self.timeout_at(out, at, event);
            }
            self.pto_count = count;
        }
        if let Some(flight) = metrics.bytes_in_flight {
            self.logged_flight = true;
            out.max_in_flight = out.max_in_flight.max(Some(flight));
            // Logs that report the bytes of a packet before the packet itself must not count it
            // twice, so only a lower value corrects the own count.
            self.flight = if self.lengths { self.flight.min(flight) } else { flight };
        }
        self.logged_round_trips(out, metrics);
        // Logs write all ones for an unset threshold.
        if let Some(ssthresh) = metrics.ssthresh {
            let set = Some(ssthresh).filter(|&bytes| bytes < u64::from(u32::MAX));
            self.ssthresh = set;
            if let Some(ssthresh) = set {
                out.ssthresh = Some(out.ssthresh.map_or(ssthresh, |old| old.min(ssthresh)));
            }
        }
        if let Some(rate) = metrics.pacing_rate.filter(|&rate| rate > 0) {
            out.pacing.logged = true;
            self.pacing_rate = Some(rate);
        }
        if let Some(window) = metrics.congestion_window {
            self.set_window(out, at, window);
        }
    }

    fn logged_round_trips(&mut self, out: &mut QuicAnalysis, metrics: &QuicMetrics) {
        let latest = metrics.latest_rtt.or(metrics.smoothed_rtt).filter(|&rtt| rtt > 0);
        let least = metrics.min_rtt.filter(|&rtt| rtt > 0 && rtt < u64::from(u32::MAX) * 1_000);
        let Some(latest) = latest.or(least) else { return };
        let trips = out.round_trips.get_or_insert([latest; 3]);
        trips[0] = trips[0].min(least.unwrap_or(latest)).min(latest);
        trips[1] = metrics.smoothed_rtt.unwrap_or(trips[1]);
        trips[2] = trips[2].max(latest);
        self.min_rtt = Some(trips[0]);
        self.smoothed = metrics.smoothed_rtt.filter(|&rtt| rtt > 0).or(self.smoothed);
        self.variance = metrics.rtt_variance.or(self.variance);
        // The own samples lack the peer's ACK delay, which the logged ones have.
        if metrics.latest_rtt.is_some() && !self.own_samples {
            self.queue = is_queue(trips[0], latest);
        }
    }

    fn set_window(&mut self, out: &mut QuicAnalysis, at: u64, window: u64) {
        let windows = out.windows.get_or_insert([window; 3]);
        (windows[1], windows[2]) = (windows[1].max(window), window);
        if let Some(old) = self.window.filter(|&old| old != window) {
            match self.window_before {
                Some((_, changed)) if changed == at && old < window => {}
                _ => self.window_before = Some((old, at)),
            }
        }
        self.window = Some(window);
        if out.challenges.0 > 0
            && let Some((_, after)) = &mut out.challenge_windows
        {
            *after = (*after).min(window);
        }
        let Some(index) = self.episode else { return };
        let floor = 2 * out.datagram;
        let episode = &mut out.episodes[index];
        if episode.window_after.is_none_or(|low| window < low) {
            episode.window_after = Some(window);
            episode.persistent |=
                window <= floor && episode.window_before.is_some_and(|before| before > 2 * floor);
        }
        if window >= self.target && at > episode.at {
            self.episode = None;
        }
    }

    pub(in crate::quic) fn state(
        &mut self,
        out: &mut QuicAnalysis,
        new: &str,
        trigger: Option<&str>,
    ) {
        self.slow_start = match new {
            "slow_start" | "SlowStart" | "startup" => Some(true),
            "application_limited" | "ApplicationLimited" => {
                out.reported_application += 1;
                self.slow_start
            }
            _ => Some(false),
        };
        if trigger == Some("persistent_congestion")
            && let Some(episode) = out.episodes.last_mut()
        {
            episode.persistent = true;
        }
    }
}
