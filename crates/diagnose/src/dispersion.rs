//! Estimates the rate of the bottleneck from the dispersion of deliveries.
//!
//! Packets sent in a burst leave the bottleneck at its rate (Keshav, "A control-theoretic approach
//! to flow control", SIGCOMM 1991), and their ACKs keep the spacing. Single gaps are noise
//! (Dovrolis, Ramanathan, Moore, "What do packet dispersion techniques measure?", INFOCOM 2001), so
//! a sample spans at least four gaps and eight segments, and less than half an RTT to exclude the
//! pause between two flights. The samples go into a histogram over the logarithm of the rate,
//! weighted by bytes.

use units::{Duration, Instant};

/// Deliveries in the ring.
const RING: usize = 32;
const SUB: u64 = 16;
/// Smallest and largest rate of the histogram: 2^10 and 2^36 bytes per second.
const LOW: u32 = 10;
const BINS: usize = 26 * SUB as usize;

#[derive(Debug, Clone, Default)]
pub(crate) struct Dispersion {
    ring: Vec<(Instant, u64)>,
    next: usize,
    bins: Vec<u64>,
    total: u64,
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
        let len = self.ring.len();
        let newest = if len < RING { len - 1 } else { (self.next + RING - 1) % RING };
        for back in 4..len {
            let (then, had) = self.ring[(newest + len - back) % len];
            let (span, moved) = (at.since(then), total - had);
            if moved < 8 * mss {
                continue;
            }
            if !span.is_zero() && span < rtt / 2 {
                self.count(units::ratio::scaled(moved, 1_000_000_000, span.as_nanos()), bytes);
            }
            break;
        }
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

    /// The quantile `share` of the rate, weighted by bytes, in bytes per second.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
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
    pub(crate) fn mode(&self) -> Option<f64> {
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
