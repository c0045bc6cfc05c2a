//! Releases packets in slots, as netem's `slot` (Linux, sch_netem.c, get_slot_next and
//! netem_dequeue): a link that is granted transmission opportunities, or that aggregates, delivers
//! bursts.
//!
//! Packets wait for the next slot. A packet that arrives after a slot has begun ends it: the next one
//! begins after a delay from `min` to `max`. A slot also ends when its packets or bytes are used up.

use std::collections::VecDeque;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Bytes, Duration, Instant, RandomStream};

use crate::netem::Distribution;
use crate::selection::RandomSource;

/// Parameters of [`Slot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotParams {
    /// The shortest delay to the next slot.
    pub min: Duration,
    /// The longest delay to the next slot.
    pub max: Duration,
    /// The delay has this distribution in place of `min` to `max` (`slot distribution`).
    pub spread: Option<SlotSpread>,
    /// Maximum packets of a slot.
    pub packets: Option<u32>,
    /// Bytes after which a slot ends; the packet that reaches them still passes.
    pub bytes: Option<Bytes>,
}

/// Delays to the next slot of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotSpread {
    /// Mean.
    pub delay: Duration,
    /// Scale, as of netem's delays.
    pub jitter: Duration,
    /// Distribution.
    pub distribution: Distribution,
}

impl SlotParams {
    /// Returns the bounds of the delay to the next slot.
    pub fn bounds(&self) -> (Duration, Duration) {
        let Some(SlotSpread { delay, jitter, distribution }) = self.spread else {
            return (self.min, self.max);
        };
        let (least, most) = distribution.bounds(jitter);
        (shifted(delay, least), shifted(delay, most))
    }
}

/// Returns the delay with a deviation in nanoseconds, at least zero: a slot that would have begun before
/// begins now.
fn shifted(delay: Duration, deviation: i128) -> Duration {
    let ns = (i128::from(delay.as_nanos()) + deviation).max(0);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Holds packets until the next slot; order is kept.
#[derive(Debug, Clone)]
pub struct Slot {
    params: SlotParams,
    draws: RandomStream,
    /// Start of the present or next slot.
    begins: Instant,
    packets_left: u32,
    bytes_left: u64,
    /// With arrival time and size.
    held: VecDeque<(PacketId, Instant, u32)>,
}

impl Slot {
    /// Creates an element that holds no packet; the first slot begins at the start of the run.
    pub fn new(params: SlotParams, random_source: &RandomSource<'_>) -> Self {
        let draws = random_source.stream("slot");
        let mut slot = Self {
            params,
            draws,
            begins: Instant::ZERO,
            packets_left: 0,
            bytes_left: 0,
            held: VecDeque::new(),
        };
        slot.refill();
        slot
    }

    fn refill(&mut self) {
        self.packets_left = self.params.packets.unwrap_or(u32::MAX);
        self.bytes_left = self.params.bytes.map_or(u64::MAX, Bytes::get);
    }

    fn next_slot(&mut self, now: Instant) {
        let delay = match self.params.spread {
            // `get_slot_next` takes the mean alone without a jitter.
            Some(SlotSpread { delay, jitter, .. }) if jitter.is_zero() => delay,
            Some(SlotSpread { delay, jitter, distribution }) => {
                let random = self.draws.below(1 << 32) as u32;
                shifted(delay, distribution.deviation(jitter, random))
            }
            None => {
                let range = self.params.max.saturating_sub(self.params.min).as_nanos();
                let draw = Duration::from_nanos(self.draws.below(range.saturating_add(1)));
                self.params.min + draw
            }
        };
        self.begins = now + delay;
        self.refill();
    }
}

impl Element for Slot {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        if self.held.is_empty() && self.begins < now {
            self.next_slot(now);
        }
        self.held.push_back((packet, now, view.size.get() as u32));
        PacketVerdict::Queued
    }

    fn next_wake(&self) -> Option<Instant> {
        self.held.front().map(|&(_, arrived, _)| arrived.max(self.begins))
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        let due = self.next_wake().filter(|&at| at <= now)?;
        let (packet, _, size) = self.held.pop_front()?;
        self.packets_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(u64::from(size));
        if self.packets_left == 0 || self.bytes_left == 0 {
            self.next_slot(due);
        } else if self.held.front().is_some_and(|&(_, arrived, _)| arrived > self.begins) {
            // It arrived after this slot had begun.
            self.next_slot(due);
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain};

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };

    fn slot(packets: Option<u32>, bytes: Option<u64>) -> Slot {
        let (min, max) = (Duration::from_nanos(100), Duration::from_nanos(100));
        Slot::new(SlotParams { min, max, spread: None, packets, bytes: bytes.map(Bytes) }, &RNG)
    }

    /// `slot distribution normal 1ms 100us packets 1`: four standard errors of 20,000 intervals are 2.8 us.
    #[test]
    fn intervals_of_a_distribution_have_its_mean_and_deviation() {
        let us = Duration::from_micros;
        let distribution = Distribution::Normal;
        let spread = Some(SlotSpread { delay: us(1_000), jitter: us(100), distribution });
        let (min, max, bytes) = (Duration::ZERO, Duration::ZERO, None);
        let params = SlotParams { min, max, spread, packets: Some(1), bytes };
        let mut slot = Slot::new(params, &RNG);
        for id in 0..20_001 {
            slot.accept(Instant::ZERO, PacketId(id), &data(1_500));
        }
        let left = drain(&mut slot);
        let gaps: Vec<f64> =
            left.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e3).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares: f64 = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum();
        let deviation = (squares / gaps.len() as f64).sqrt();
        assert!((mean - 1_000.0).abs() < 2.9, "{mean}");
        assert!((deviation - 100.0).abs() < 3.0, "{deviation}");
        let (least, most) = params.bounds();
        let range = least.as_nanos() as f64 / 1e3..=most.as_nanos() as f64 / 1e3;
        assert!(gaps.iter().all(|gap| range.contains(gap)));
    }

    fn arrive(slot: &mut Slot, at: &[u64]) {
        for &ns in at {
            slot.accept(Instant::from_nanos(ns), PacketId(ns as u32), &data(1_500));
        }
    }

    #[test]
    fn packets_leave_in_bursts() {
        let mut slot = slot(None, None);
        arrive(&mut slot, &[0]);
        assert_eq!(drain(&mut slot), [(0, 0)]);
        // The slot of 0 has ended at 5; the next begins at 105.
        arrive(&mut slot, &[5, 50, 105]);
        assert_eq!(drain(&mut slot), [(105, 5), (105, 50), (105, 105)]);
        arrive(&mut slot, &[300]);
        assert_eq!(drain(&mut slot), [(400, 300)]);
    }

    #[test]
    fn a_slot_ends_with_its_packets_or_bytes() {
        let mut packets = slot(Some(2), None);
        arrive(&mut packets, &[5, 6, 7]);
        assert_eq!(drain(&mut packets), [(105, 5), (105, 6), (205, 7)]);
        // The packet that reaches the limit passes.
        let mut bytes = slot(None, Some(2_000));
        arrive(&mut bytes, &[5, 6, 7, 8]);
        assert_eq!(drain(&mut bytes), [(105, 5), (105, 6), (205, 7), (205, 8)]);
    }
}
