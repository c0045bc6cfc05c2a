//! Pacing: RFC 9002 section 7.7. The pacing rate is 5/4 of the window per round trip, after bursts
//! of at most an initial window, or those of quinn-proto.

use units::ratio::{scaled, scaled_up};
use units::{Bytes, Duration, Instant, Rate};

use crate::profile::{BucketCapacity, PacerBucket, PacerBursts};

/// A leaky bucket pacer.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    bursts: PacerBursts,
    datagram: u64,
    burst: u64,
    /// Below zero: a packet was sent before it was earned.
    tokens: i64,
    since: Instant,
    /// The window for which the burst was computed.
    window: Bytes,
    /// Bytes of the last packet of the present batch, whose tokens are not taken yet, and its packets.
    unfinished: u64,
    batched: u32,
}

/// What a pacer's rate follows from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacingBasis {
    pub(crate) window: Bytes,
    pub(crate) smoothed: Duration,
    /// Percentage of a window that is sent in a round trip.
    pub(crate) gain: u64,
}

impl PacingBasis {
    /// Tokens are earned at `gain` bytes in `span` ns.
    fn speed(&self) -> (u64, u64) {
        (self.gain * self.window.get().max(1), 100 * self.smoothed.as_nanos().max(1))
    }

    /// The pacing rate.
    pub(crate) fn rate(&self) -> Option<Rate> {
        const SECOND: u64 = Duration::from_secs(1).as_nanos();
        let span = 100 * self.smoothed.as_nanos().max(1);
        let bits = (self.gain * self.window.get()).saturating_mul(8);
        Rate::from_bits_per_second(scaled(SECOND, bits, span))
    }
}

/// The least time by which a wait advances.
const NANOSECOND: Duration = Duration::from_nanos(1);

/// Bytes earned in a time.
fn scaled_by(basis: PacingBasis, time: Duration) -> u64 {
    let (gain, span) = basis.speed();
    scaled(time.as_nanos(), gain, span)
}

impl Pacer {
    /// A full bucket of `burst` bytes.
    pub(crate) const fn new(burst: u64, bursts: PacerBursts, datagram: u32) -> Self {
        let datagram = datagram as u64;
        let tokens = burst as i64;
        Self {
            bursts,
            datagram,
            burst,
            tokens,
            since: Instant::ZERO,
            window: Bytes::ZERO,
            unfinished: 0,
            batched: 0,
        }
    }

    /// Full datagrams have this size from now on.
    pub(crate) const fn set_datagram(&mut self, datagram: u32) {
        self.datagram = datagram as u64;
        // quinn's burst changes with the datagram too.
        self.window = Bytes::ZERO;
    }

    /// Do packets that only acknowledge take tokens too (quic-go, `OnPacketSent`)?
    pub(crate) const fn counts_all_packets(&self) -> bool {
        matches!(self.bursts, PacerBursts::SinceLastSent(_))
    }

    /// When a packet of `size` bytes may be sent; `None`: now.
    pub(crate) fn release(
        &mut self,
        now: Instant,
        size: u64,
        basis: PacingBasis,
    ) -> Option<Instant> {
        match self.bursts {
            PacerBursts::InitialWindow => {
                self.refill(now, basis);
                let short = size.min(self.burst).saturating_sub(self.tokens.max(0) as u64);
                let (gain, span) = basis.speed();
                (short > 0).then(|| self.since + Duration::from_nanos(scaled_up(short, span, gain)))
            }
            PacerBursts::Interval { time, least, most, .. } => {
                // The burst changes with the window only, not with the round trip.
                if basis.window != self.window {
                    let smoothed = basis.smoothed.as_nanos().max(1);
                    let sent = scaled(basis.window.get(), time.as_nanos(), smoothed);
                    self.burst = sent.clamp(least * self.datagram, most * self.datagram);
                    self.tokens = self.tokens.min(self.burst as i64);
                    self.window = basis.window;
                }
                self.release_burst(now, size + self.unfinished, basis)
            }
            PacerBursts::Bucket(bucket) => self.release_from_bucket(now, size, basis, bucket),
            PacerBursts::SinceLastSent(bucket) => {
                let budget = self.budget(now, basis, bucket);
                let (gain, span) = basis.speed();
                let short = size.saturating_sub(self.tokens.max(0) as u64);
                let wait = Duration::from_nanos(scaled_up(short, span, gain)).max(bucket.wait);
                (budget < size).then(|| (self.since + wait).max(now + NANOSECOND))
            }
        }
    }

    /// When a packet of `size` bytes may be sent at a rate that the controller sets, after bursts of that many
    /// packets; `None`: now.
    pub(crate) fn release_at(
        &mut self,
        now: Instant,
        size: u64,
        rate: Rate,
        packets: u64,
    ) -> Option<Instant> {
        const SECOND: u64 = Duration::from_secs(1).as_nanos();
        self.burst = packets.max(1) * self.datagram;
        let bytes = (rate.bits_per_second() / 8).max(1);
        let earned = scaled(now.since(self.since).as_nanos(), bytes, SECOND);
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.tokens = self.tokens.saturating_add(earned);
            self.since = now;
        }
        self.tokens = self.tokens.min(self.burst as i64);
        let short = size.saturating_sub(self.tokens.max(0) as u64);
        (short > 0).then(|| self.since + Duration::from_nanos(scaled_up(short, SECOND, bytes)))
    }

    /// What may be sent now: the tokens left by the last packet and those earned since.
    fn budget(&self, now: Instant, basis: PacingBasis, bucket: PacerBucket) -> u64 {
        let earned = scaled_by(basis, now.since(self.since));
        let tokens = (self.tokens.max(0) as u64).saturating_add(earned);
        tokens.min(self.capacity(basis, bucket))
    }

    /// Most that a bucket holds.
    fn capacity(&self, basis: PacingBasis, bucket: PacerBucket) -> u64 {
        match bucket.capacity {
            BucketCapacity::Window => basis.window.get().max(self.datagram),
            BucketCapacity::QuarterWindow { least, most } => {
                (basis.window.get() / 4).clamp(least * self.datagram, most * self.datagram)
            }
            BucketCapacity::Datagrams { least, time } => {
                scaled_by(basis, time).max(least * self.datagram)
            }
        }
    }

    /// Adds the tokens earned since the last time, up to the burst.
    fn refill(&mut self, now: Instant, basis: PacingBasis) {
        let (gain, span) = basis.speed();
        let earned = scaled(now.since(self.since).as_nanos(), gain, span);
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.tokens = self.tokens.saturating_add(earned).min(self.burst as i64);
            self.since = now;
        }
    }

    /// When a burst may be sent, with the rounding of quinn-proto 0.11.19 (`Pacer::delay`): each attempt
    /// that lacks tokens drops the fraction of a byte earned so far.
    fn release_burst(&mut self, now: Instant, size: u64, basis: PacingBasis) -> Option<Instant> {
        let (window, smoothed) = (basis.window.get(), basis.smoothed);
        let tokens = self.tokens.max(0) as u64;
        if tokens >= size || window > u64::from(u32::MAX) || smoothed == Duration::ZERO {
            return None;
        }
        let round_trips = now.since(self.since).as_secs_f64() / smoothed.as_secs_f64();
        let gain = basis.gain as f64 / 100.0;
        let earned = (window as f64 * gain * round_trips) as u64;
        let tokens = tokens.saturating_add(earned).min(self.burst);
        self.tokens = tokens as i64;
        self.since = now;
        if tokens >= size {
            return None;
        }
        let short = size.max(self.burst) - tokens;
        let unscaled = scaled(short, smoothed.as_nanos(), window.max(1));
        // quinn's gain is 5/4: it divides by 5 and multiplies by 4.
        let wait = match basis.gain {
            125 => unscaled / 5 * 4,
            gain => (u128::from(unscaled) * 100 / u128::from(gain.max(1))) as u64,
        };
        Some(now + Duration::from_nanos(wait))
    }

    fn release_from_bucket(
        &mut self,
        now: Instant,
        size: u64,
        basis: PacingBasis,
        bucket: PacerBucket,
    ) -> Option<Instant> {
        let (gain, span) = basis.speed();
        self.burst = self.capacity(basis, bucket);
        self.tokens = self.tokens.min(self.burst as i64);
        self.refill(now, basis);
        let short = u64::try_from(size as i64 - self.tokens).unwrap_or(0);
        if short == 0 {
            return None;
        }
        let wait = Duration::from_nanos(scaled_up(short, span, gain));
        if bucket.in_advance {
            (wait >= bucket.wait).then(|| self.since + wait)
        } else {
            Some(now + wait.max(bucket.wait))
        }
    }

    /// Ends a batch of packets.
    pub(crate) const fn finish_batch(&mut self) {
        self.tokens = self.tokens.saturating_sub(self.unfinished as i64);
        if self.unfinished > 0 && self.tokens < 0 {
            self.tokens = 0;
        }
        (self.unfinished, self.batched) = (0, 0);
    }

    /// Takes the tokens of a packet sent now.
    pub(crate) fn on_sent(&mut self, now: Instant, size: u64, basis: PacingBasis) {
        if let PacerBursts::Interval { batch: 2.., .. } = self.bursts {
            let before = core::mem::replace(&mut self.unfinished, size);
            self.tokens = self.tokens.saturating_sub(before as i64).max(0);
            self.batched += 1;
            if let PacerBursts::Interval { batch, .. } = self.bursts
                && self.batched >= batch
            {
                self.finish_batch();
            }
            return;
        }
        if let PacerBursts::SinceLastSent(bucket) = self.bursts {
            let budget = self.budget(now, basis, bucket);
            self.tokens = budget.saturating_sub(size) as i64;
            self.since = now;
            return;
        }
        let in_advance =
            matches!(self.bursts, PacerBursts::Bucket(PacerBucket { in_advance: true, .. }));
        let left = self.tokens.saturating_sub(size as i64);
        self.tokens = if in_advance { left } else { left.max(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASIS: PacingBasis =
        PacingBasis { window: Bytes(120_000), smoothed: Duration::from_millis(100), gain: 125 };

    /// Send times in us of a sender that has always data, until 10 ms.
    fn sent(bucket: PacerBucket, basis: PacingBasis) -> Vec<u64> {
        let mut pacer = Pacer::new(0, PacerBursts::Bucket(bucket), 1_200);
        let (mut now, mut times) = (Instant::ZERO, Vec::new());
        while now.since(Instant::ZERO) < Duration::from_millis(10) {
            match pacer.release(now, 1_200, basis) {
                None => {
                    pacer.on_sent(now, 1_200, basis);
                    times.push(now.since(Instant::ZERO).as_micros());
                }
                Some(at) => now = at,
            }
        }
        times
    }

    #[test]
    fn a_bucket_waits_at_least_its_time_or_sends_in_advance() {
        // 1,200 bytes are earned in 0.8 ms.
        let capacity = BucketCapacity::Datagrams { least: 2, time: Duration::ZERO };
        let wait = Duration::from_millis(1);
        let waits = sent(PacerBucket { capacity, wait, in_advance: false }, BASIS);
        assert_eq!(waits[..6], [1_000, 2_000, 3_000, 4_000, 4_000, 5_000]);
        // At twice the window in a round trip 0.5 ms: in advance, until the debt is a millisecond.
        let fast = PacingBasis { gain: 200, ..BASIS };
        let advance = sent(PacerBucket { capacity, wait, in_advance: true }, fast);
        assert_eq!(advance[..5], [0, 1_000, 1_000, 2_000, 2_000]);
        // Both send at the rate in the end.
        assert!(waits.len().abs_diff(12) <= 1 && advance.len().abs_diff(20) <= 2);
    }

    /// 1,200 bytes are earned in 0.8 ms; the wait of a millisecond counts from the last packet, however often the pacer is
    /// asked, and what was earned meanwhile is not lost.
    #[test]
    fn a_bucket_since_the_last_packet_waits_from_it() {
        let capacity = BucketCapacity::Datagrams { least: 2, time: Duration::ZERO };
        let wait = Duration::from_millis(1);
        let bucket = PacerBucket { capacity, wait, in_advance: false };
        let mut pacer = Pacer::new(0, PacerBursts::SinceLastSent(bucket), 1_200);
        let at = |us: u64| Instant::ZERO + Duration::from_micros(us);
        assert_eq!(pacer.release(at(0), 1_200, BASIS), Some(at(1_000)));
        assert_eq!(pacer.release(at(700), 1_200, BASIS), Some(at(1_000)));
        // An attempt after 0.8 ms succeeds.
        assert_eq!(pacer.release(at(800), 1_200, BASIS), None);
        pacer.on_sent(at(1_000), 1_200, BASIS);
        // 300 bytes are left.
        assert_eq!(pacer.tokens, 300);
        assert_eq!(pacer.release(at(1_599), 1_200, BASIS), Some(at(2_000)));
        assert_eq!(pacer.release(at(1_600), 1_200, BASIS), None);
    }

    /// The check of a packet needs the tokens of the one before it, too, and a full bucket loses both.
    #[test]
    fn a_batch_of_quinn_takes_the_tokens_of_each_packet_late() {
        let time = Duration::from_millis(2);
        let bursts = |batch| PacerBursts::Interval { time, least: 10, most: 256, batch };
        let left = |batch| {
            let mut pacer = Pacer::new(12_000, bursts(batch), 1_200);
            let now = Instant::ZERO + Duration::from_millis(100);
            // The tenth finds too few and fills the bucket first.
            for _ in 0..10 {
                let size = if pacer.tokens == 12_000 { 1_250 } else { 1_200 };
                assert_eq!(pacer.release(now, size, BASIS), None);
                pacer.on_sent(now, size, BASIS);
            }
            pacer.finish_batch();
            pacer.tokens
        };
        assert_eq!([left(1), left(10)], [12_000 - 1_200, 12_000 - 2_400]);
    }

    #[test]
    fn five_quarters_of_a_window_in_a_round_trip_section_7_7() {
        // 120 kB in 100 ms are 9.6 Mbit/s.
        assert_eq!(BASIS.rate().unwrap().bits_per_second(), 12_000_000);
    }

    #[test]
    fn a_burst_is_sent_at_once_and_the_rest_at_five_quarters_of_the_rate_section_7_7() {
        let mut pacer = Pacer::new(12_000, PacerBursts::InitialWindow, 1_200);
        let (mut now, mut sent) = (Instant::ZERO, 0_u64);
        let end = now + Duration::from_millis(400);
        while now < end {
            match pacer.release(now, 1_200, BASIS) {
                None => {
                    pacer.on_sent(now, 1_200, BASIS);
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
