//! What the analysis gets of the sender at the end of the log.

use units::Duration;

use super::return_path::ReturnPath;
use super::{MIN_DATAGRAM, PACKET_THRESHOLD, QuicSender};
use crate::quic::analysis::{QuicAnalysis, QuicEpisode, QuicSpacing};
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
        let is_most = busy >= out.budget.active() / 4;
        let delivered = self.delivery.bottleneck(is_most).filter(|_| is_of_path && is_lasting);
        out.largest_rate = Some(self.delivery.largest).filter(|&rate| rate > 0.0);
        // A policer drops at one window, too, and its rate is none of the path.
        let overflowing = out.largest_rate.filter(|_| {
            back.is_none() && out.policer.is_none() && lose_at_one_window(&out.episodes)
        });
        out.bottleneck = out.spacing.map(|spacing| spacing.rate).or(delivered).or(overflowing);
        out.path_drop = match out.spacing {
            Some(QuicSpacing { rate, fell: Some((at, after)), .. }) => {
                let [at, end] =
                    [at, self.delivery.at.as_nanos()].map(|at| at.saturating_sub(out.first));
                Some(RateDrop { at, end, rates: (rate, after) })
            }
            Some(_) if !self.spacing.is_coarse() => None,
            _ if out.bottleneck.is_some() && back.is_none() => {
                let lasting = out.rates.drop(0).filter(|drop| {
                    // The path was the limit for most of the time after it.
                    out.busy.share(0, (drop.at, drop.end)) >= 0.5
                });
                lasting.or_else(|| out.rates.drop_of_path(0, &out.busy))
            }
            _ => None,
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

/// Fewest congestion events whose windows are compared, and their largest coefficient of variation.
const FEWEST_EVENTS: usize = 4;
const ALIKE: f64 = 0.15;

/// Whether congestion events come at one size of the window, as where a queue overflows: the window is then that of the path
/// with its queue, so that the largest delivery is that of the path. Losses by chance come at any size. The first event is that
/// of slow start, which runs over.
fn lose_at_one_window(episodes: &[QuicEpisode]) -> bool {
    let is_loss = |one: &&QuicEpisode| !one.by_ce && !one.after_outage && !one.persistent;
    let windows = episodes.iter().filter(is_loss).skip(1).filter_map(|one| one.window_before);
    let windows: Vec<f64> = windows.map(|window| window as f64).collect();
    let count = windows.len() as f64;
    let mean = windows.iter().sum::<f64>() / count;
    let square =
        windows.iter().map(|window| (window - mean) * (window - mean)).sum::<f64>() / count;
    windows.len() >= FEWEST_EVENTS && square <= ALIKE * ALIKE * mean * mean
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

#[cfg(test)]
mod tests {
    use super::*;

    fn events(windows: &[u64]) -> Vec<QuicEpisode> {
        let event = |&window| QuicEpisode { window_before: Some(window), ..QuicEpisode::default() };
        windows.iter().map(event).collect()
    }

    #[test]
    fn a_short_queue_loses_at_one_window_and_chance_at_any() {
        // Slow start ran to 60 kB; CUBIC comes near to 40 kB each time.
        let queue = [60_000, 40_000, 41_500, 39_000, 40_500, 42_000];
        assert!(lose_at_one_window(&events(&queue)));
        let chance = [60_000, 25_000, 55_000, 30_000, 18_000, 44_000];
        assert!(!lose_at_one_window(&events(&chance)));
        assert!(!lose_at_one_window(&events(&queue[..4])));
    }
}
