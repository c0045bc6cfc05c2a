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
        // Where the data have one rate, it is that of their bottleneck.
        let back = match self.spacing.is_single() {
            true => handshake_rate(out).and_then(|rate| self.returning.steady(rate)),
            false => self.returning.found(),
        };
        out.return_path = back.map(|back| back.rate);
        out.spacing = if back.is_none() { self.spacing.found() } else { None };
        let (rate, min_rtt) = (self.delivery.rate, self.round_trips.min.map(Duration::as_nanos));
        // What the way back lets pass is no rate of the way there, unless ACKs are lost on it and the queue there was full.
        let is_seen =
            |back: ReturnPath| back.is_thinned && out.episodes.iter().any(|one| one.is_queued);
        let is_of_path = rate > 0.0 && back.is_none_or(is_seen);
        let is_lasting = min_rtt.is_some_and(|min| busy >= min) || out.ce > 0;
        let delivered = (is_of_path && is_lasting).then_some(rate);
        out.bottleneck = out.spacing.map(|spacing| spacing.rate).or(delivered);
        out.path_drop = match out.spacing {
            Some(QuicSpacing { rate, fell: Some((at, after)), .. }) => {
                let [at, end] =
                    [at, self.delivery.at.as_nanos()].map(|at| at.saturating_sub(out.first));
                Some(RateDrop { at, end, rates: (rate, after) })
            }
            Some(_) => None,
            None => out.rates.drop(0).filter(|drop| {
                // The path was the limit for most of the time after it.
                let share = out.busy.share(0, (drop.at, drop.end));
                out.bottleneck.is_some() && share >= 0.5
            }),
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
    let is_slow = beyond > min && out.handshake.timeouts == 0;
    is_slow.then(|| out.handshake.bytes_received() as f64 * 1e9 / beyond as f64)
}
