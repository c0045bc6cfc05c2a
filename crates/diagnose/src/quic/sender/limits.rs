//! What limits the sender between two events.

use super::{ENOUGH_PACING, QuicSender};
use crate::quic::analysis::QuicAnalysis;
use crate::quic::budget::QuicLimiter;

impl QuicSender {
    pub(super) fn limiter(&self, out: &QuicAnalysis) -> QuicLimiter {
        if out.handshake.complete.is_none() {
            let limited = out.handshake.is_amplification_limited();
            return if limited { QuicLimiter::AntiAmplification } else { QuicLimiter::Handshake };
        }
        let is_full = |(window, flight): (u64, u64)| flight.saturating_add(out.datagram) > window;
        // An inferred window is what was in flight: at a limit of the peer that is the limit.
        let is_blocked = self.streams.is_blocked() || self.streams.is_stream_blocked();
        let is_peers = out.window_inferred && is_blocked;
        if !is_peers && self.window.size.zip(self.flight.known()).is_some_and(is_full) {
            return self.window_limiter(out);
        }
        if self.streams.is_blocked() {
            QuicLimiter::ConnectionFlow
        } else if self.streams.is_stream_blocked() {
            QuicLimiter::StreamFlow
        } else if self.streams.count_blocked {
            QuicLimiter::StreamCount
        } else if self.window.size.is_none() || !self.flight.is_known() {
            QuicLimiter::Unknown
        } else {
            QuicLimiter::Application
        }
    }

    /// What a full window means.
    pub(super) fn window_limiter(&self, out: &QuicAnalysis) -> QuicLimiter {
        if self.recovery.is_open() {
            QuicLimiter::Recovery
        } else if self.round_trips.is_queued {
            QuicLimiter::Path
        } else if self.window.is_in_slow_start(out.episodes.is_empty()) {
            QuicLimiter::SlowStart
        } else {
            QuicLimiter::Window
        }
    }

    /// What limits the sender while the pacer holds the next packet: the window, if the pacer only
    /// spreads it over the round trip; the pacer, if it allows less.
    pub(super) fn pacer(&self, out: &QuicAnalysis) -> QuicLimiter {
        match self.pacing_ratio() {
            Some(ratio) if ratio < ENOUGH_PACING => QuicLimiter::Pacing,
            _ => self.window_limiter(out),
        }
    }

    /// Pacing rate over the window's rate (window / smoothed RTT), if the log has a pacing rate.
    pub(super) fn pacing_ratio(&self) -> Option<f64> {
        self.pacer.ratio(self.window.size, self.round_trips.smoothed)
    }
}
