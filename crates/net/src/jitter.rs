//! A random delay per packet.

use std::collections::VecDeque;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant, RandomStream};

use crate::selection::RandomSource;

/// Holds each packet for a time drawn uniformly from 0 to `most`, both included, in whole
/// nanoseconds; a packet that would overtake leaves with the one before it instead, so order is
/// kept.
#[derive(Debug, Clone)]
pub struct Jitter {
    most: Duration,
    draws: RandomStream,
    held: VecDeque<(Instant, PacketId)>,
}

impl Jitter {
    /// Creates an element that holds no packet.
    pub fn new(most: Duration, random_source: &RandomSource<'_>) -> Self {
        Self { most, draws: random_source.stream("delay"), held: VecDeque::new() }
    }
}

impl Element for Jitter {
    fn accept(&mut self, now: Instant, packet: PacketId, _: &PacketView) -> PacketVerdict {
        let span = self.draws.below(self.most.as_nanos().saturating_add(1));
        let drawn = now + Duration::from_nanos(span);
        let at = self.held.back().map_or(drawn, |&(before, _)| drawn.max(before));
        self.held.push_back((at, packet));
        PacketVerdict::Queued
    }

    fn next_wake(&self) -> Option<Instant> {
        self.held.front().map(|&(at, _)| at)
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        if self.next_wake()? > now {
            return None;
        }
        self.held.pop_front().map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain};

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };

    fn jitter(most: u64) -> Jitter {
        Jitter::new(Duration::from_nanos(most), &RNG)
    }

    /// The packets are too far apart to catch up with each other.
    #[test]
    fn every_span_from_none_to_most_is_equally_likely() {
        let most = 9;
        let mut jitter = jitter(most);
        let mut counts = [0_u64; 10];
        let n = 100_000;
        for k in 0..n {
            let now = k * 1_000;
            jitter.accept(Instant::from_nanos(now), PacketId(0), &data(1_500));
            for (at, _) in drain(&mut jitter) {
                counts[(at - now) as usize] += 1;
            }
        }
        // Binomial: mean 10,000, variance 9,000; four standard deviations are 379.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) <= 379), "{counts:?}");
    }

    #[test]
    fn order_is_kept_and_no_packet_is_held_longer_than_most() {
        let mut jitter = jitter(1_000);
        let came: Vec<u64> = (0..10_000).map(|k| k * 100).collect();
        let mut left = Vec::new();
        for (id, &now) in came.iter().enumerate() {
            while let Some(at) = jitter.next_wake().filter(|at| at.as_nanos() <= now) {
                left.extend(crate::testing::leave(&mut jitter, at));
            }
            jitter.accept(Instant::from_nanos(now), PacketId(id as u32), &data(1_500));
        }
        left.extend(drain(&mut jitter));
        assert_eq!(left.len(), came.len());
        for (id, (&came, &(at, packet))) in came.iter().zip(&left).enumerate() {
            assert_eq!(packet, id as u32);
            assert!((came..=came + 1_000).contains(&at), "packet {id} came {came}, left {at}");
        }
        assert!(left.is_sorted_by_key(|&(at, _)| at));
    }

    #[test]
    fn no_jitter_is_no_delay() {
        let mut jitter = jitter(0);
        jitter.accept(Instant::from_nanos(5), PacketId(1), &data(1_500));
        assert_eq!(drain(&mut jitter), [(5, 1)]);
    }
}
