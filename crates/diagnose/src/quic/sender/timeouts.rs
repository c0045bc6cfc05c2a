//! Probe timeouts (RFC 9002 section 6.2): reported by the log, or inferred from the silence.

use units::{Duration, Instant};

use super::waits::LimitedInterval;
use super::{MAX_ACK_DELAY, QuicSender};
use crate::quic::analysis::{QuicAnalysis, QuicPlateau};
use crate::quic::budget::QuicLimiter;
use crate::quic::clock::LogEvent;
use crate::quic::packets::SentPacket;

/// Probe timeouts in a row that an outage has: one may be the last packets of a flight, unless nothing of a full window
/// arrives.
const OUTAGE: u64 = 2;

impl QuicSender {
    /// Probe timeout (RFC 9002 section 6.2.1).
    pub(super) fn timeout(&self, out: &QuicAnalysis) -> Duration {
        self.round_trips.timeout(out.max_ack_delay.map_or(MAX_ACK_DELAY, Duration::from_nanos))
    }

    /// Takes a silence of a probe timeout with bytes in flight for one, if the log has no timers.
    pub(super) fn infer_timeout(&mut self, out: &mut QuicAnalysis, now: LogEvent) {
        let timeout = self.timeout(out);
        if !self.flight.is_empty() && self.timeouts.is_shown_by_silence(timeout) {
            self.timeout_at(out, now);
        }
    }

    /// An acknowledgment of 1-RTT packets ends a silence: that of an outage, if all of a full window is missing of what was
    /// sent before its first timeout.
    pub(super) fn answered(&mut self, now: Instant, newly: &[SentPacket]) {
        let Some(since) = self.full_at_timeout.take() else { return };
        let mut eliciting = newly.iter().filter(|packet| packet.eliciting).peekable();
        if eliciting.peek().is_some() && eliciting.all(|packet| packet.at >= since) {
            self.outage_end = Some(now);
        }
    }

    /// An acknowledgment ends a silence of this number of timeouts.
    pub(super) const fn end_silence(&mut self, now: Instant, timeouts: u64) {
        if timeouts >= OUTAGE {
            self.outage_end = Some(now);
        }
    }

    /// Whether losses that are found now are those of an outage: within the round trip in which the probes are acknowledged.
    pub(super) fn is_after_outage(&self, now: Instant) -> bool {
        let round_trip = self.round_trips.min.unwrap_or(Duration::ZERO);
        self.outage_end.is_some_and(|end| now <= end + round_trip)
    }

    /// A probe timeout expired: the silence before it was spent on waiting for it.
    pub(super) fn timeout_at(&mut self, out: &mut QuicAnalysis, now: LogEvent) {
        let Some(waited) = self.timeouts.expire(now.at) else { return };
        self.exchange.on_loss();
        if out.unanswered == 0 && out.handshake.complete.is_some() {
            self.full_at_timeout = Some(now.at).filter(|_| self.is_full(out));
            out.acks_due += self.due(&waited).as_nanos();
        }
        out.timeouts += 1;
        out.unanswered += 1;
        out.max_timeouts = out.max_timeouts.max(out.unanswered);
        // Nothing is acknowledged, so nothing can grow.
        self.plateau = QuicPlateau::default();
        if out.handshake.complete.is_none() {
            out.handshake.timeouts += 1;
        }
        for interval in waited {
            // The handshake has its own rules.
            if matches!(interval.limiter, QuicLimiter::Handshake | QuicLimiter::AntiAmplification) {
                continue;
            }
            let ns = interval.to.since(interval.from).as_nanos();
            let span = &mut out.budget.spans[interval.limiter as usize];
            span.ns = span.ns.saturating_sub(ns);
            let span = match interval.episode {
                Some(index) => &mut out.episodes[index].span,
                None if out.episodes.is_empty() => &mut out.slow_start,
                None => &mut out.plain_window,
            };
            span.ns = span.ns.saturating_sub(ns);
            let (from, to) = (interval.from.as_nanos(), interval.to.as_nanos());
            out.budget.spans[QuicLimiter::Timeout as usize].add(from, to, now.index);
        }
    }

    /// The bottleneck was idle for `idle` before the packets of `acked` bytes, although it seemed to be the limit: what was to
    /// keep it busy was lost, or is still to be found lost.
    pub(super) fn on_stall(
        &mut self,
        out: &QuicAnalysis,
        now: Instant,
        idle: Duration,
        acked: u64,
    ) {
        let is_path = !core::mem::take(&mut self.is_interrupted) && out.unanswered == 0;
        let Some(carried) = self.delivery.time_of(acked, self.spacing.rate()) else { return };
        let stall = idle.saturating_sub(carried).as_nanos();
        if !is_path || stall == 0 {
            return;
        }
        let before = self.take_stall(now);
        self.stall = Some((now, before + stall));
    }

    /// The stall of packets that are found lost now, in ns.
    pub(super) fn take_stall(&mut self, now: Instant) -> u64 {
        let round_trip = self.round_trips.smoothed.unwrap_or(Duration::ZERO);
        self.stall.take().filter(|(end, _)| now <= *end + round_trip).map_or(0, |stall| stall.1)
    }

    /// The part of a silence after which the first ACK was due.
    fn due(&self, silence: &[LimitedInterval]) -> Duration {
        let (Some(first), Some(last)) = (silence.first(), silence.last()) else {
            return Duration::ZERO;
        };
        let oldest = self.spaces[2].oldest_sent().unwrap_or(first.from);
        let due = oldest + self.round_trips.smoothed.unwrap_or(Duration::ZERO);
        due.clamp(first.from, last.to).since(first.from)
    }

    pub(in crate::quic) fn timer_expired(&mut self, out: &mut QuicAnalysis, now: LogEvent) {
        self.timeouts.on_logged();
        self.timeout_at(out, now);
    }
}
