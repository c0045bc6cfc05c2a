//! Pacing: RFC 9002 section 7.7. The pacing rate is 5/4 of the window per round trip, after bursts
//! of at most an initial window, or those of quinn-proto.

use units::ratio::{scaled, scaled_up};
use units::{Bytes, Duration, Instant, Rate};

use crate::profile::PacerBursts;

/// A leaky bucket pacer.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    bursts: PacerBursts,
    datagram: u64,
    burst: u64,
    tokens: u64,
    since: Instant,
    /// The window for which the burst was computed.
    window: Bytes,
}

impl Pacer {
    /// A full bucket of `burst` bytes.
    pub(crate) const fn new(burst: u64, bursts: PacerBursts, datagram: u32) -> Self {
        let datagram = datagram as u64;
        Self { bursts, datagram, burst, tokens: burst, since: Instant::ZERO, window: Bytes::ZERO }
    }

    /// When a packet of `size` bytes may be sent; `None`: now.
    pub(crate) fn release(
        &mut self,
        now: Instant,
        size: u64,
        window: Bytes,
        smoothed: Duration,
    ) -> Option<Instant> {
        if let PacerBursts::Interval { time, least, most } = self.bursts {
            // The burst changes with the window only, not with the round trip.
            if window != self.window {
                let sent = scaled(window.get(), time.as_nanos(), smoothed.as_nanos().max(1));
                self.burst = sent.clamp(least * self.datagram, most * self.datagram);
                self.tokens = self.tokens.min(self.burst);
                self.window = window;
            }
            return self.release_burst(now, size, window, smoothed);
        }
        // Tokens earned at 5 windows per 4 round trips.
        let (gain, span) = (5 * window.get().max(1), 4 * smoothed.as_nanos().max(1));
        let refill = scaled(now.since(self.since).as_nanos(), gain, span);
        if refill > 0 {
            self.tokens = self.tokens.saturating_add(refill).min(self.burst);
            self.since = now;
        }
        if self.tokens >= size {
            return None;
        }
        let short = size.min(self.burst).saturating_sub(self.tokens);
        (short > 0).then(|| self.since + Duration::from_nanos(scaled_up(short, span, gain)))
    }

    /// When a burst may be sent, with the rounding of quinn-proto 0.11.19 (`Pacer::delay`): each attempt
    /// that lacks tokens drops the fraction of a byte earned so far.
    fn release_burst(
        &mut self,
        now: Instant,
        size: u64,
        window: Bytes,
        smoothed: Duration,
    ) -> Option<Instant> {
        let window = window.get();
        if self.tokens >= size || window > u64::from(u32::MAX) || smoothed == Duration::ZERO {
            return None;
        }
        let round_trips = now.since(self.since).as_secs_f64() / smoothed.as_secs_f64();
        let earned = (window as f64 * 1.25 * round_trips) as u64;
        self.tokens = self.tokens.saturating_add(earned).min(self.burst);
        self.since = now;
        if self.tokens >= size {
            return None;
        }
        let short = size.max(self.burst) - self.tokens;
        let unscaled = scaled(short, smoothed.as_nanos(), window.max(1));
        Some(now + Duration::from_nanos(unscaled / 5 * 4))
    }

    /// The pacing rate: 5/4 of the window per round trip.
    pub(crate) fn rate(window: Bytes, smoothed: Duration) -> Option<Rate> {
        const SECOND: u64 = Duration::from_secs(1).as_nanos();
        let (gain, span) = (5 * window.get(), 4 * smoothed.as_nanos().max(1));
        Rate::from_bits_per_second(scaled(SECOND, gain.saturating_mul(8), span))
    }

    /// Takes the tokens of a sent packet.
    pub(crate) const fn on_sent(&mut self, size: u64) {
        self.tokens = self.tokens.saturating_sub(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_quarters_of_a_window_in_a_round_trip_section_7_7() {
        // 120 kB in 100 ms are 9.6 Mbit/s.
        let rate = Pacer::rate(Bytes(120_000), Duration::from_millis(100)).unwrap();
        assert_eq!(rate.bits_per_second(), 12_000_000);
    }

    #[test]
    fn a_burst_is_sent_at_once_and_the_rest_at_five_quarters_of_the_rate_section_7_7() {
        let mut pacer = Pacer::new(12_000, PacerBursts::InitialWindow, 1_200);
        let (mut now, mut sent) = (Instant::ZERO, 0_u64);
        let end = now + Duration::from_millis(400);
        while now < end {
            let (window, rtt) = (Bytes(120_000), Duration::from_millis(100));
            match pacer.release(now, 1_200, window, rtt) {
                None => {
                    pacer.on_sent(1_200);
                    sent += 1_200;
                    if now == Instant::ZERO {
                        assert!(sent <= 12_000);
                    }
                }
                Some(at) => {
                    assert!(at > now);
                    now = at;
                }
            }
        }
        // 120 kB in 100 ms, times 5/4, for 400 ms, and the burst.
        assert!(sent.abs_diff(600_000 + 12_000) <= 1_200, "{sent}");
    }
}
