//! What limits the sender between two events.

use units::{Duration, Instant};

use super::round_trips::GRANULARITY;
use super::{ENOUGH_PACING, QuicSender};
use crate::quic::analysis::{QuicAnalysis, QuicPlateau};
use crate::quic::budget::QuicLimiter;

/// Time that the pacer seems to hold the next packet: charged to the window, unless the packet comes much later, and then
/// quiet.
#[derive(Debug, Default)]
pub(super) struct PacerHold {
    /// Parts of it, with the limiter and the congestion event that were charged.
    parts: Vec<(QuicLimiter, Option<usize>, u64)>,
    until: Option<Instant>,
}

/// Datagrams of the first window (RFC 9002 section 7.2).
const FIRST_WINDOW: u64 = 10;
/// Most parts that are kept: further ones stay charged.
const MOST_PARTS: usize = 64;

impl QuicSender {
    /// The pacer seems to hold the next packet.
    pub(super) fn hold(&mut self, limiter: QuicLimiter, from: Instant, until: Instant) {
        let is_held = matches!(
            limiter,
            QuicLimiter::SlowStart
                | QuicLimiter::Window
                | QuicLimiter::Recovery
                | QuicLimiter::Application
        );
        if is_held && until > from && self.held.parts.len() < MOST_PARTS {
            let part = (limiter, self.recovery.episode, until.since(from).as_nanos());
            self.held.parts.push(part);
            self.held.until = Some(until);
        }
    }

    /// A packet is sent: if the pacer would have let one with data leave long before, there was nothing to send.
    pub(super) fn release(&mut self, out: &mut QuicAnalysis, now: Instant, carries_data: bool) {
        if !carries_data {
            return;
        }
        let held: u64 = self.held.parts.iter().map(|part| part.2).sum();
        let late = self.held.until.take().map_or(Duration::ZERO, |until| now.since(until));
        let is_paced = held == 0 || late <= GRANULARITY.max(Duration::from_nanos(held));
        for (limiter, episode, ns) in self.held.parts.drain(..).filter(|_| !is_paced) {
            if limiter == QuicLimiter::Application {
                self.exchange.on_quiet(ns);
                continue;
            }
            let span = match episode {
                Some(index) => &mut out.episodes[index].span,
                None if out.episodes.is_empty() => &mut out.slow_start,
                None => &mut out.plain_window,
            };
            span.ns = span.ns.saturating_sub(ns);
            if out.frames_inferred {
                out.budget.move_part(limiter, QuicLimiter::Unknown, ns);
            } else {
                out.budget.move_part(limiter, QuicLimiter::Application, ns);
                self.exchange.on_quiet(ns);
            }
        }
        if !is_paced {
            self.plateau = QuicPlateau::default();
        }
    }

    /// Whether the congestion window is full.
    pub(super) fn is_full(&self, out: &QuicAnalysis) -> bool {
        // Few logs have the size of a full datagram: it is that of the largest that arrived.
        let datagram = out.datagram.max(out.sizes.largest_acked);
        let is_full = |(window, flight): (u64, u64)| flight.saturating_add(datagram) > window;
        self.window.size.zip(self.flight.known()).is_some_and(is_full)
    }

    pub(super) fn limiter(&self, out: &QuicAnalysis) -> QuicLimiter {
        if out.handshake.complete.is_none() {
            let limited = out.handshake.is_amplification_limited();
            return if limited { QuicLimiter::AntiAmplification } else { QuicLimiter::Handshake };
        }
        // An inferred window is what was in flight: at a limit of the peer that is the limit.
        let is_blocked = self.streams.is_blocked() || self.streams.is_stream_blocked();
        let is_peers = out.window_inferred && is_blocked;
        if !is_peers && self.is_full(out) {
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

    /// Counts the bytes that the bottleneck carries in a time in which the application has no more: their ACKs come when something
    /// else is the limit.
    pub(super) fn carry(&mut self, out: &mut QuicAnalysis, time: Duration) {
        let bytes = self.delivery.bytes_in(time, self.spacing.rate());
        let bytes = bytes.min(self.flight.bytes().saturating_sub(self.carried));
        self.carried += bytes;
        out.budget.spans[QuicLimiter::Path as usize].bytes += bytes;
    }

    /// What a full window means.
    pub(super) fn window_limiter(&self, out: &QuicAnalysis) -> QuicLimiter {
        if self.recovery.is_open() {
            QuicLimiter::Recovery
        } else if self.round_trips.is_queued || self.fills_path_anew() {
            QuicLimiter::Path
        } else if self.window.is_in_slow_start(out.episodes.is_empty()) {
            QuicLimiter::SlowStart
        } else {
            QuicLimiter::Window
        }
    }

    /// Whether the flight of the first round trip after a pause holds what the path carries in that time: then the bottleneck is
    /// busy, though no ACK shows its queue yet.
    fn fills_path_anew(&self) -> bool {
        let rate = self.spacing.rate().or_else(|| self.delivery.bottleneck(false));
        let (Some(rate), Some(min)) = (rate, self.round_trips.min) else { return false };
        let carried = rate * min.as_secs_f64();
        self.is_first_trip && self.flight.bytes() as f64 >= carried
    }

    /// Whether the peer's flow control, which a log without frames does not show, may hold the sender: a peer that grants less
    /// than the first window (ten datagrams, RFC 9002 section 7.2) would hold each connection from its begin on.
    pub(super) const fn may_be_limited(&self, out: &QuicAnalysis) -> bool {
        out.frames_inferred && self.peak > FIRST_WINDOW * out.datagram
    }

    /// What limits the sender while the pacer holds the next packet: the window, if the pacer only
    /// spreads it over the round trip; the pacer, if it allows less. A window that was neither full in a round trip nor grew
    /// is not used: the application sends less.
    pub(super) fn pacer(&self, out: &QuicAnalysis, now: Instant) -> QuicLimiter {
        let round_trip = self.round_trips.smoothed.unwrap_or(Duration::ZERO);
        let is_unused = self.window.used.is_some_and(|used| now > used + round_trip);
        match self.pacing_ratio() {
            Some(ratio) if ratio < ENOUGH_PACING => QuicLimiter::Pacing,
            _ if is_unused && self.may_be_limited(out) => QuicLimiter::Unknown,
            _ if is_unused => QuicLimiter::Application,
            _ => self.window_limiter(out),
        }
    }

    /// Pacing rate over the window's rate (window / smoothed RTT), if the log has a pacing rate.
    pub(super) fn pacing_ratio(&self) -> Option<f64> {
        self.pacer.ratio(self.window.size, self.round_trips.smoothed)
    }
}
