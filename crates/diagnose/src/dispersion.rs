//! Estimates the rate of the bottleneck from the dispersion of deliveries.
//!
//! Packets sent in a burst leave the bottleneck at its rate (Keshav, "A control-theoretic approach
//! to flow control", SIGCOMM 1991), and their ACKs keep the spacing. Single gaps are noise
//! (Dovrolis, Ramanathan, Moore, "What do packet dispersion techniques measure?", INFOCOM 2001), so
//! a sample spans at least four gaps and eight segments, and less than half an RTT to exclude the
//! pause between two flights. Flights that are never so long are sampled over two gaps and four segments, or pair by
//! pair, as long as there is no better sample: that most pairs are as far apart is all that then separates rate and noise.
//! The samples go into a histogram over the logarithm of the rate,
//! weighted by bytes.

use units::{Duration, Instant};

/// Deliveries in the ring.
const RING: usize = 32;
/// Least gaps and segments of a sample, of one of short flights, and of one of a pair; the best first.
const SAMPLES: [(usize, u64); 3] = [(4, 8), (2, 4), (1, 1)];
const PAIR: usize = SAMPLES.len() - 1;
const SUB: u64 = 16;
/// Smallest and largest rate of the histogram: 2^10 and 2^36 bytes per second.
const LOW: u32 = 10;
const BINS: usize = 26 * SUB as usize;

/// Delivery rates over some segments, in bytes of payload per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BurstRates {
    /// The most frequent one, by bytes.
    pub usual: f64,
    /// The median.
    pub median: f64,
    /// The 90th percentile.
    pub most: f64,
    /// No flight was long enough for a sample of eight segments: those of four are less exact.
    pub of_short_flights: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Dispersion {
    ring: Vec<(Instant, u64)>,
    next: usize,
    bins: Vec<u64>,
    total: u64,
    /// Bytes delivered in all.
    delivered: u64,
    /// The best of [`SAMPLES`] so far, by its number: worse ones count no more.
    best: Option<usize>,
}

impl Dispersion {
    /// Adds a delivery of `bytes`, `total` since the beginning; `rtt` is the round-trip time.
    pub(crate) fn delivered(
        &mut self,
        at: Instant,
        bytes: u64,
        total: u64,
        mss: u64,
        rtt: Duration,
    ) {
        if self.ring.len() < RING {
            self.ring.push((at, total));
        } else {
            self.ring[self.next] = (at, total);
            self.next = (self.next + 1) % RING;
        }
        self.delivered += bytes;
        // The time of an ACK of more than a pair, or of a merged packet, is that of what merged it.
        let least = if bytes <= 2 * mss { PAIR } else { PAIR - 1 };
        let kinds = 0..=self.best.unwrap_or(PAIR).min(least);
        let sample = |kind: usize| Some((kind, self.sample(SAMPLES[kind], mss, rtt)?));
        let Some((kind, rate)) = kinds.into_iter().find_map(sample) else { return };
        if self.best.replace(kind).is_some_and(|before| kind < before) {
            self.bins.fill(0);
            self.total = 0;
        }
        self.count(rate, bytes);
    }

    /// The rate of the shortest run of deliveries up to the newest with these gaps and segments; `None` if it spans half a
    /// round trip or no time.
    fn sample(&self, (gaps, segments): (usize, u64), mss: u64, rtt: Duration) -> Option<u64> {
        let len = self.ring.len();
        let newest = if len < RING { len.checked_sub(1)? } else { (self.next + RING - 1) % RING };
        let (at, total) = self.ring[newest];
        let runs = (gaps..len).map(|back| self.ring[(newest + len - back) % len]);
        let (then, had) = runs.into_iter().find(|(_, had)| total - had >= segments * mss)?;
        let (span, moved) = (at.since(then), total - had);
        let is_burst = !span.is_zero() && span < rtt / 2;
        is_burst.then(|| units::ratio::scaled(moved, 1_000_000_000, span.as_nanos()))
    }

    fn count(&mut self, rate: u64, bytes: u64) {
        if self.bins.is_empty() {
            self.bins = vec![0; BINS];
        }
        let octave = rate.max(1).ilog2().max(LOW);
        let within = (rate >> (octave - 4)).saturating_sub(SUB).min(SUB - 1);
        let bin = (u64::from(octave - LOW) * SUB + within) as usize;
        self.bins[bin.min(BINS - 1)] += bytes;
        self.total += bytes;
    }

    /// The rates; `None` without a sample, or if pairs are all there is and less than half of the data came in them.
    pub(crate) fn rates(&self) -> Option<BurstRates> {
        if self.best == Some(PAIR) && self.total * 2 < self.delivered {
            return None;
        }
        Some(BurstRates {
            usual: self.mode()?,
            median: self.quantile(0.5)?,
            most: self.quantile(0.9)?,
            of_short_flights: self.best != Some(0),
        })
    }

    /// The quantile `share` of the rate, weighted by bytes, in bytes per second.
    fn quantile(&self, share: f64) -> Option<f64> {
        if self.total == 0 {
            return None;
        }
        let wanted = self.total as f64 * share;
        let mut seen = 0.0;
        for (bin, &bytes) in self.bins.iter().enumerate() {
            seen += bytes as f64;
            if seen >= wanted && bytes > 0 {
                return Some(middle(bin));
            }
        }
        None
    }

    /// The mode of the rate, in bytes per second.
    fn mode(&self) -> Option<f64> {
        let weight = |bin: usize| {
            let around = bin.saturating_sub(1)..(bin + 2).min(self.bins.len());
            self.bins[around].iter().sum::<u64>()
        };
        let best = (0..self.bins.len()).max_by_key(|&bin| (weight(bin), self.bins[bin]))?;
        Some(middle(best))
    }
}

fn middle(bin: usize) -> f64 {
    let octave = (bin as u64 / SUB) as u32 + LOW;
    let within = bin as u64 % SUB + SUB;
    ((1_u64 << octave) as f64) * (within as f64 + 0.5) / SUB as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const RTT: Duration = Duration::from_millis(40);

    /// Ten flights of a number of pairs of segments, 1 ms a pair, every 40 ms, from flight `of` and `total` bytes on.
    fn flights((of, mut total): (u64, u64), pairs: u64, after: Dispersion) -> Dispersion {
        let mut found = after;
        for flight in 0..10 {
            for pair in 0..pairs {
                total += 2 * MSS;
                let at = Instant::from_nanos((of + flight) * 40_000_000 + pair * 1_000_000);
                found.delivered(at, 2 * MSS, total, MSS, RTT);
            }
        }
        found
    }

    /// A window of six segments whose ACKs, of two each, spread over the round trip: only pairs follow one another.
    #[test]
    fn pairs_of_segments_show_the_rate_where_flights_are_no_longer() {
        let mut found = Dispersion::default();
        for packet in 0..60 {
            let at = Instant::from_nanos(packet / 2 * 13_000_000 + packet % 2 * 5_000_000);
            found.delivered(at, MSS, (packet + 1) * MSS, MSS, RTT);
        }
        let rates = found.rates().expect("packets of a pair are 5 ms apart");
        assert!(rates.of_short_flights && is_near(rates.usual, 2e5), "{rates:?}");
        assert!(is_near(rates.most, 2e5), "{rates:?}");
        // Twenty segments that a receiver merges are no pair.
        let mut merged = Dispersion::default();
        for flight in 0..10 {
            for part in 1..=2 {
                let at = Instant::from_nanos(flight * 40_000_000 + part * 100_000);
                merged.delivered(at, 20 * MSS, (2 * flight + part) * 20 * MSS, MSS, RTT);
            }
        }
        assert_eq!(merged.rates(), None);
        // Nor do a few packets among them show more than the time of what merged the rest.
        let at = Instant::from_nanos(400_300_000);
        merged.delivered(at, MSS, 401 * MSS, MSS, RTT);
        assert_eq!(merged.rates(), None);
    }

    fn is_near(rate: f64, expected: f64) -> bool {
        (rate / expected - 1.0).abs() < 0.05
    }

    /// Six segments in flight show the rate of the path, if no flight shows it better.
    #[test]
    fn short_flights_show_the_rate_too() {
        let found = flights((0, 0), 3, Dispersion::default());
        let rates = found.rates().expect("three deliveries are two gaps");
        assert!(rates.of_short_flights && is_near(rates.usual, 2e6), "{rates:?}");
        let rates = flights((10, 60_000), 10, found).rates().expect("there are flights of twenty");
        assert!(!rates.of_short_flights && is_near(rates.usual, 2e6), "{rates:?}");
    }
}
