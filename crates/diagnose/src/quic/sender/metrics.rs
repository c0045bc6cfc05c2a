//! The congestion window, round trips and states that the log reports.

use units::Duration;

use super::QuicSender;
use super::window::ReportedState;
use crate::quic::analysis::QuicAnalysis;
use crate::quic::clock::LogEvent;
use crate::quic::record::QuicMetrics;
use crate::quic::rules::cc853::CHANGE_TRIPS;

impl QuicSender {
    pub(in crate::quic) fn metrics(
        &mut self,
        out: &mut QuicAnalysis,
        now: LogEvent,
        metrics: &QuicMetrics,
    ) {
        if let Some(count) = metrics.pto_count {
            out.max_timeouts = out.max_timeouts.max(count);
            if self.timeouts.set_count(count) {
                self.timeout_at(out, now);
            }
        }
        if let Some(flight) = metrics.bytes_in_flight {
            out.max_in_flight = out.max_in_flight.max(Some(flight));
            self.flight.on_sum(flight);
        }
        // Until an acknowledgment the log has the initial round trip, which is none.
        if out.acks > 0 || out.handshake.complete.is_some() || !has_packets(out) {
            self.logged_round_trips(out, metrics);
        }
        // Logs write all ones for an unset threshold.
        if let Some(ssthresh) = metrics.ssthresh {
            let set = Some(ssthresh).filter(|&bytes| bytes < u64::from(u32::MAX));
            self.window.ssthresh = set;
            if let Some(ssthresh) = set {
                out.ssthresh = Some(out.ssthresh.map_or(ssthresh, |old| old.min(ssthresh)));
            }
        }
        if let Some(rate) = metrics.pacing_rate.filter(|&rate| rate > 0) {
            out.pacing.logged = true;
            self.pacer.rate = Some(rate);
        }
        if let Some(window) = metrics.congestion_window {
            self.set_window(out, now, window);
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
        let nanos = |time: Option<u64>| time.map(Duration::from_nanos);
        self.round_trips.on_logged(
            Duration::from_nanos(trips[0]),
            nanos(metrics.latest_rtt.map(|_| latest)),
            nanos(metrics.smoothed_rtt),
            nanos(metrics.rtt_variance),
        );
    }

    fn set_window(&mut self, out: &mut QuicAnalysis, now: LogEvent, window: u64) {
        let windows = out.windows.get_or_insert([window; 3]);
        (windows[1], windows[2]) = (windows[1].max(window), window);
        self.window.set(now.at, window);
        let trip = self.round_trips.smoothed.map_or(0, Duration::as_nanos);
        let on_change = now.ns() <= out.challenges.1.saturating_add(trip * CHANGE_TRIPS);
        if out.challenges.0 > 0
            && on_change
            && let Some((_, after)) = &mut out.challenge_windows
        {
            *after = (*after).min(window);
        }
        let Some(index) = self.recovery.episode else { return };
        let floor = 2 * out.datagram;
        let episode = &mut out.episodes[index];
        if episode.window_after.is_none_or(|low| window < low) {
            episode.window_after = Some(window);
            episode.persistent |=
                window <= floor && episode.window_before.is_some_and(|before| before > 2 * floor);
        }
        let at = episode.at;
        self.recovery.on_window(window, now.ns() > at);
    }

    pub(in crate::quic) fn state(
        &mut self,
        out: &mut QuicAnalysis,
        now: LogEvent,
        new: &str,
        trigger: Option<&str>,
    ) {
        // A log without events of losses (quiche) has the state that they lead to; so does a CE mark.
        if new.eq_ignore_ascii_case("recovery")
            && out.lost.is_empty()
            && self.ce == 0
            && !self.recovery.is_open()
        {
            self.begin_episode(out, now, false);
        }
        self.window.state = match new {
            "slow_start" | "SlowStart" | "startup" => ReportedState::SlowStart,
            "application_limited" | "ApplicationLimited" => {
                out.reported_application += 1;
                self.window.state
            }
            _ => ReportedState::Other,
        };
        if trigger == Some("persistent_congestion")
            && let Some(episode) = out.episodes.last_mut()
        {
            episode.persistent = true;
        }
    }
}

/// Whether the log has packets, so that the first acknowledgment shows.
const fn has_packets(out: &QuicAnalysis) -> bool {
    out.sent + out.received > 0
}
