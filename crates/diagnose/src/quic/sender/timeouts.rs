//! Probe timeouts (RFC 9002 section 6.2): reported by the log, or inferred from the silence.

use super::{GRANULARITY, INITIAL_RTT, MAX_ACK_DELAY, QuicSender};
use crate::quic::analysis::QuicAnalysis;
use crate::quic::budget::QuicLimiter;

impl QuicSender {
    /// Probe timeout (RFC 9002 section 6.2.1).
    pub(super) fn timeout(&self, out: &QuicAnalysis) -> u64 {
        let smoothed = self.smoothed.unwrap_or(INITIAL_RTT);
        let variance = self.variance.unwrap_or(smoothed / 2);
        smoothed
            .saturating_add(variance.saturating_mul(4).max(GRANULARITY))
            .saturating_add(out.max_ack_delay.unwrap_or(MAX_ACK_DELAY))
    }

    /// Takes a silence of a probe timeout with bytes in flight for one, if the log has no timers.
    pub(super) fn guess_timeout(&mut self, out: &mut QuicAnalysis, at: u64, event: u64) {
        let quiet: u64 = self.pending.iter().map(|(_, _, from, to)| to - from).sum();
        if quiet >= self.timeout(out) {
            self.timeout_at(out, at, event);
        }
    }

    /// A probe timeout expired: the silence before it was spent on waiting for it.
    pub(in crate::quic) fn timeout_at(&mut self, out: &mut QuicAnalysis, at: u64, event: u64) {
        // Logs may report one timeout as a timer and as a count.
        if self.last_timeout == Some(at) {
            return;
        }
        self.last_timeout = Some(at);
        out.timeouts += 1;
        out.unanswered += 1;
        if out.handshake.complete.is_none() {
            out.handshake.timeouts += 1;
        }
        let mut waited = core::mem::take(&mut self.pending);
        if waited.is_empty() && self.silence_end == at {
            waited = core::mem::take(&mut self.silence);
        }
        for (limiter, episode, from, to) in waited {
            // The handshake has its own rules.
            if matches!(limiter, QuicLimiter::Handshake | QuicLimiter::AntiAmplification) {
                continue;
            }
            let ns = to - from;
            let span = &mut out.budget.spans[limiter as usize];
            span.ns = span.ns.saturating_sub(ns);
            let span = match episode {
                Some(index) => &mut out.episodes[index].span,
                None if out.episodes.is_empty() => &mut out.slow_start,
                None => &mut out.plain_window,
            };
            span.ns = span.ns.saturating_sub(ns);
            out.budget.spans[QuicLimiter::Timeout as usize].add(from, to, event);
        }
    }

    pub(in crate::quic) fn timer_expired(&mut self, out: &mut QuicAnalysis, at: u64, event: u64) {
        self.timers = true;
        self.timeout_at(out, at, event);
    }
}
