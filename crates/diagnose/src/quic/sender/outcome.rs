//! What the analysis gets of the sender at the end of the log.

use units::Duration;

use super::return_path::ReturnPath;
use super::{MIN_DATAGRAM, PACKET_THRESHOLD, QuicSender};
use crate::quic::analysis::{QuicAnalysis, QuicSpacing};
use crate::quic::budget::{QuicLimiter, QuicSpan};
use crate::quic::rates::RateDrop;

impl QuicSender {
    pub(in crate::quic) fn finish(&mut self, out: &mut QuicAnalysis) {
        // After the last packet with data nothing was left to send.
        let rest = core::mem::take(&mut self.application);
        out.budget.move_part(QuicLimiter::Application, QuicLimiter::Idle, rest);
        out.exchange = self.exchange.out;
        if let Some(transfer) = &mut out.transfer {
            transfer.messages = self.exchange.take_messages().unwrap_or_default();
        }
        out.sizes.vanished = self.vanished.finish();
        self.bursts.close(&mut out.bursts);
        out.rhythm = self.rhythm.finish();
        if out.lost.is_empty() {
            out.passed_over = self.spaces[2].passed_over(PACKET_THRESHOLD);
        }
        if !out.handshake.is_stopped() {
            out.handshake.amplification = QuicSpan::default();
            out.budget.move_to(QuicLimiter::AntiAmplification, QuicLimiter::Handshake);
        }
        let busy = out.budget.of(QuicLimiter::Path).ns;
        out.policer = self.outcomes.policer(self.round_trips.min);
        // Where the data have one rate, it is that of their bottleneck. A coarse clock does not show whether they have, and of
        // a log without frames the lengths of ACKs are not known.
        let steady = || handshake_rate(out).and_then(|rate| self.returning.steady(rate));
        let back = match self.spacing.is_single() {
            true => steady(),
            false if self.returning.is_coarse() || out.frames_inferred => {
                self.returning.found().or_else(steady)
            }
            false => self.returning.found(),
        };
        out.return_path = back.map(|back| back.rate);
        // What was delivered at other times shows that what was spaced so is none of the link.
        let carries = |found: &QuicSpacing| !self.delivery.exceeds(found.rate);
        out.spacing = self.spacing.found().filter(|found| back.is_none() && carries(found));
        let min_rtt = self.round_trips.min.map(Duration::as_nanos);
        // What the way back lets pass is no rate of the way there, unless ACKs are lost on it and the queue there was full.
        let is_seen =
            |back: ReturnPath| back.is_thinned && out.episodes.iter().any(|one| one.is_queued);
        let is_of_path = back.is_none_or(is_seen);
        let is_lasting = min_rtt.is_some_and(|min| busy >= min) || out.ce > 0;
        let delivered = self.delivery.bottleneck().filter(|_| is_of_path && is_lasting);
        out.bottleneck = out.spacing.map(|spacing| spacing.rate).or(delivered);
        out.path_drop = match out.spacing {
            Some(QuicSpacing { rate, fell: Some((at, after)), .. }) => {
                let [at, end] =
                    [at, self.delivery.at.as_nanos()].map(|at| at.saturating_sub(out.first));
                Some(RateDrop { at, end, rates: (rate, after) })
            }
            Some(_) => None,
            None if out.bottleneck.is_some() && back.is_none() => {
                let lasting = out.rates.drop(0).filter(|drop| {
                    // The path was the limit for most of the time after it.
                    out.busy.share(0, (drop.at, drop.end)) >= 0.5
                });
                lasting.or_else(|| out.rates.drop_of_path(0, &out.busy))
            }
            None => None,
        };
        out.mean_rtt = self.round_trips.mean().map(Duration::as_nanos);
        out.flow.connection = self.streams.last_connection;
        out.flow.stream = self.streams.last_blocked;
        out.flow.first = self.streams.first_limits();
        out.flow.streams = self.streams.opened;
        if out.datagram == 0 {
            out.datagram = MIN_DATAGRAM;
        }
    }
}

/// Rate in bytes per second of the peer's packets of the handshake, beyond its round trip.
fn handshake_rate(out: &QuicAnalysis) -> Option<f64> {
    let [min, ..] = out.round_trips?;
    let beyond = out.handshake.duration()?.saturating_sub(min);
    let is_slow = beyond > min / 8 && out.handshake.timeouts == 0;
    // The datagrams with the peer's Initial are padded to 1,200 bytes (RFC 9000 section 14.1), whether or not the log has
    // lengths.
    let bytes = out.handshake.bytes_received().max(MIN_DATAGRAM);
    is_slow.then(|| bytes as f64 * 1e9 / beyond as f64)
}
