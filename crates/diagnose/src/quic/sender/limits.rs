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
        let full = match self.window {
            Some(window) if self.knows_flight() => {
                self.flight.saturating_add(out.datagram) > window
            }
            _ => false,
        };
        if full {
            return self.window_limiter(out);
        }
        if self.streams.is_blocked() {
            QuicLimiter::ConnectionFlow
        } else if self.streams.is_stream_blocked() {
            QuicLimiter::StreamFlow
        } else if self.streams.count_blocked {
            QuicLimiter::StreamCount
        } else if self.window.is_none() || !self.knows_flight() {
            QuicLimiter::Unknown
        } else {
            QuicLimiter::Application
        }
    }

    /// What a full window means.
    pub(super) fn window_limiter(&self, out: &QuicAnalysis) -> QuicLimiter {
        if self.recovery.is_some() {
            QuicLimiter::Recovery
        } else if self.queue {
            QuicLimiter::Path
        } else if self.in_slow_start(out) {
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
        let window = self.window.filter(|&window| window > 0)?;
        let (rate, smoothed) = (self.pacing_rate?, self.smoothed?);
        Some(rate as f64 / 8.0 * smoothed as f64 / 1e9 / window as f64)
    }

    pub(super) fn in_slow_start(&self, out: &QuicAnalysis) -> bool {
        let below = self.ssthresh.zip(self.window).is_some_and(|(at, window)| window < at);
        self.slow_start.unwrap_or(below || (self.ssthresh.is_none() && out.episodes.is_empty()))
    }
}
