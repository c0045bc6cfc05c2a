//! netem's queue by time (Linux, sch_netem.c, `netem_enqueue`, `tfifo_enqueue` and
//! `netem_dequeue`): each packet gets its own delay and leaves in the order of departure times, so a
//! delay that varies reorders packets; a fraction of the packets can leave at once; with a rate,
//! packets follow each other in order.
//!
//! Duplication, loss, corruption and slots of netem are other elements.

mod distribution;

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant, RandomStream, Rate, Ratio};

use crate::selection::{CorrelatedDraws, RandomSource};

pub use distribution::Distribution;

/// Parameters of [`Netem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetemParams {
    /// Mean delay.
    pub delay: Duration,
    /// Half the width of the uniform distribution, or the scale of another.
    pub jitter: Duration,
    /// Distribution of the delay.
    pub distribution: Distribution,
    /// Correlation of each delay with the one before.
    pub correlation: Ratio,
    /// Packets that leave at once.
    pub reorder: Option<NetemReorder>,
    /// Maximum number of packets held, those in the delay included.
    pub limit: u32,
    /// Transmission rate.
    pub rate: Option<NetemRate>,
}

/// Packets that leave at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetemReorder {
    /// Probability, of each packet after `gap - 1` delayed ones.
    pub share: Ratio,
    /// Correlation of the draws.
    pub correlation: Ratio,
    /// Distance of the candidates, in packets; at least 1.
    pub gap: u32,
}

/// A rate, and the bytes on the line of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetemRate {
    /// Bits per second.
    pub rate: Rate,
    /// Bytes added to the IP bytes of each packet.
    pub overhead: i32,
    /// Payload of a cell, for lines that send cells; 0 for others.
    pub cell: u32,
    /// Bytes added to each cell.
    pub cell_overhead: i32,
}

impl NetemRate {
    /// Returns the transmission time of a packet of this many IP bytes (`packet_time_ns`).
    pub fn time(&self, size: u64) -> Duration {
        let size = i128::from(size) + i128::from(self.overhead);
        let size = match self.cell {
            0 => size,
            cell => {
                let cell = i128::from(cell);
                (size.max(0) + cell - 1) / cell * (cell + i128::from(self.cell_overhead))
            }
        };
        let bits = size.max(0) as u128 * 8 * 1_000_000_000;
        let ns = bits / u128::from(self.rate.bits_per_second());
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl NetemParams {
    /// Returns the bounds of the delay of a packet that does not leave at once, before its
    /// transmission.
    pub fn delay_bounds(&self) -> (Duration, Duration) {
        let mean = i128::from(self.delay.as_nanos());
        let (least, most) = self.distribution.bounds(self.jitter);
        let delay = |deviation: i128| {
            let ns = (mean + deviation).max(0);
            Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        (delay(least), delay(most))
    }

    /// Returns the time before its arrival from which the transmission of a packet can count: a drawn
    /// delay below zero shortens it if no packet is held (`netem_enqueue`).
    pub fn earliest_transmission(&self) -> Duration {
        let (least, _) = self.distribution.bounds(self.jitter);
        let ns = -(i128::from(self.delay.as_nanos()) + least);
        Duration::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }

    /// Returns the shortest delay of a packet that does not leave at once.
    pub fn shortest_delay(&self) -> Duration {
        self.delay_bounds().0
    }
}

/// A packet in the order of its departure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TimedPacket {
    /// In nanoseconds; before the arrival if the drawn delay is negative.
    time_to_send: i128,
    /// Number of the packet: equal times leave in order of arrival.
    number: u64,
    arrived: Instant,
    packet: PacketId,
}

/// Delays each packet by a time of its own.
#[derive(Debug, Clone)]
pub struct Netem {
    params: NetemParams,
    delays: CorrelatedDraws,
    reorders: CorrelatedDraws,
    held: BinaryHeap<Reverse<TimedPacket>>,
    /// The latest departure time of the packets held.
    last: i128,
    /// Delayed packets since the last that left at once.
    counter: u32,
    number: u64,
}

impl Netem {
    /// Creates an element that holds no packet.
    pub fn new(params: NetemParams, random_source: &RandomSource<'_>) -> Self {
        let correlation = params.reorder.map_or(Ratio::ZERO, |reorder| reorder.correlation);
        let draws = |stream: RandomStream, correlation| CorrelatedDraws::new(stream, correlation);
        Self {
            params,
            delays: draws(random_source.stream("delay"), params.correlation),
            reorders: draws(random_source.stream("reorder"), correlation),
            held: BinaryHeap::new(),
            last: i128::MIN,
            counter: 0,
            number: 0,
        }
    }

    /// Returns whether the next packet leaves at once.
    fn leaves_at_once(&mut self) -> bool {
        let Some(reorder) = self.params.reorder else { return false };
        let candidate = self.counter >= reorder.gap - 1;
        candidate && self.reorders.chance(reorder.share)
    }

    /// Draws a delay in nanoseconds (`tabledist`).
    fn draw_delay(&mut self) -> i128 {
        let mean = i128::from(self.params.delay.as_nanos());
        if self.params.jitter.is_zero() {
            return mean;
        }
        let random = self.delays.next_u32();
        mean + self.params.distribution.deviation(self.params.jitter, random)
    }

    fn time_to_send(&mut self, now: Instant, size: u64) -> i128 {
        let now = i128::from(now.as_nanos());
        let delayed = now + self.draw_delay();
        let Some(rate) = &self.params.rate else { return delayed };
        // The line is free when the last packet held has left.
        let free = if self.held.is_empty() { i128::MIN } else { self.last };
        delayed.max(free) + i128::from(rate.time(size).as_nanos())
    }
}

impl Element for Netem {
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        if self.held.len() >= self.params.limit as usize {
            return PacketVerdict::Dropped;
        }
        if self.leaves_at_once() {
            self.counter = 0;
            return PacketVerdict::Forwarded;
        }
        let time_to_send = self.time_to_send(now, view.size.get());
        self.last = if self.held.is_empty() { time_to_send } else { self.last.max(time_to_send) };
        self.counter = self.counter.saturating_add(1);
        let number = self.number;
        self.number += 1;
        self.held.push(Reverse(TimedPacket { time_to_send, number, arrived: now, packet }));
        PacketVerdict::Queued
    }

    fn next_wake(&self) -> Option<Instant> {
        let Reverse(first) = self.held.peek()?;
        let due = u64::try_from(first.time_to_send.max(0)).unwrap_or(u64::MAX);
        Some(Instant::from_nanos(due).max(first.arrived))
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        self.next_wake().filter(|&at| at <= now)?;
        self.held.pop().map(|Reverse(first)| first.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain, leave};

    const RNG: RandomSource<'static> = RandomSource { seed: 1, owner: "test" };
    const MS: u64 = 1_000_000;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn params(delay: u64, jitter: u64) -> NetemParams {
        NetemParams {
            delay: ms(delay),
            jitter: ms(jitter),
            distribution: Distribution::Uniform,
            correlation: Ratio::ZERO,
            reorder: None,
            limit: 1_000,
            rate: None,
        }
    }

    fn percent(n: u64) -> Ratio {
        Ratio::new(n, 100).unwrap()
    }

    /// Delays of packets that arrive one by one.
    fn delays(params: NetemParams, count: u64) -> Vec<f64> {
        let mut netem = Netem::new(params, &RNG);
        let each = |k: u64| {
            let now = k * 10_000 * MS;
            netem.accept(Instant::from_nanos(now), PacketId(0), &data(1_500));
            drain(&mut netem).iter().map(|&(at, _)| (at - now) as f64 / MS as f64).sum()
        };
        (0..count).map(each).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn deviation(values: &[f64]) -> f64 {
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (squares / values.len() as f64).sqrt()
    }

    #[test]
    fn packets_leave_in_order_of_their_times() {
        let mut netem = Netem::new(params(20, 10), &RNG);
        for id in 0..1_000 {
            netem.accept(Instant::from_nanos(u64::from(id) * MS / 10), PacketId(id), &data(1_500));
        }
        let left = drain(&mut netem);
        assert!(left.is_sorted_by_key(|&(at, _)| at));
        assert!(!left.is_sorted_by_key(|&(_, id)| id));
        for (at, id) in left {
            let arrived = u64::from(id) * MS / 10;
            assert!((arrived + 10 * MS..arrived + 30 * MS).contains(&at), "{id}");
        }
    }

    #[test]
    fn equal_times_leave_in_order_of_arrival() {
        let mut netem = Netem::new(params(0, 0), &RNG);
        for id in 0..100 {
            netem.accept(Instant::ZERO, PacketId(id), &data(1_500));
        }
        assert_eq!(drain(&mut netem), (0..100).map(|id| (0, id)).collect::<Vec<_>>());
    }

    #[test]
    fn the_limit_counts_packets_in_the_delay() {
        let mut netem = Netem::new(NetemParams { limit: 3, ..params(10, 0) }, &RNG);
        let mut accept =
            |at: u64| netem.accept(Instant::from_nanos(at), PacketId(at as u32), &data(1_500));
        assert_eq!([accept(0), accept(1), accept(2)], [PacketVerdict::Queued; 3]);
        assert_eq!(accept(3), PacketVerdict::Dropped);
        assert_eq!(leave(&mut netem, Instant::from_nanos(10 * MS)), [(10 * MS, 0)]);
        let next = netem.accept(Instant::from_nanos(10 * MS), PacketId(9), &data(1_500));
        assert_eq!(next, PacketVerdict::Queued);
    }

    /// 1500 + 14 bytes at 12.112 Mbit/s take 1 ms.
    #[test]
    fn with_a_rate_packets_keep_their_order_and_distance() {
        let rate = Rate::from_bits_per_second(12_112_000).unwrap();
        let rate = NetemRate { rate, overhead: 14, cell: 0, cell_overhead: 0 };
        let mut netem = Netem::new(NetemParams { rate: Some(rate), ..params(20, 20) }, &RNG);
        for id in 0..500 {
            netem.accept(Instant::ZERO, PacketId(id), &data(1_500));
        }
        let left = drain(&mut netem);
        assert!(left.is_sorted_by_key(|&(_, id)| id));
        assert!(left.windows(2).all(|pair| pair[1].0 - pair[0].0 >= MS));
        // The line is free after the last packet: 20 ms later it sends at once.
        let constant = NetemParams { rate: Some(rate), ..params(20, 0) };
        let mut netem = Netem::new(constant, &RNG);
        netem.accept(Instant::ZERO, PacketId(0), &data(1_500));
        netem.accept(Instant::ZERO, PacketId(1), &data(1_500));
        assert_eq!(drain(&mut netem), [(21 * MS, 0), (22 * MS, 1)]);
        netem.accept(Instant::from_nanos(30 * MS), PacketId(2), &data(1_500));
        assert_eq!(drain(&mut netem), [(51 * MS, 2)]);
    }

    /// The ATM of DSL lines: 1500 + 18 bytes are 32 cells of 48 bytes, each of 53 on the line.
    #[test]
    fn cells_are_whole() {
        let rate = Rate::from_bits_per_second(8_000_000).unwrap();
        let cells = NetemRate { rate, overhead: 18, cell: 48, cell_overhead: 5 };
        assert_eq!(cells.time(1_500), Duration::from_micros(32 * 53));
        assert_eq!(cells.time(1_518), Duration::from_micros(32 * 53));
        assert_eq!(cells.time(1_519), Duration::from_micros(33 * 53));
    }

    #[test]
    fn one_of_gap_packets_leaves_at_once() {
        let reorder = NetemReorder { share: percent(100), correlation: Ratio::ZERO, gap: 5 };
        let of =
            |reorder| Netem::new(NetemParams { reorder: Some(reorder), ..params(10, 0) }, &RNG);
        let verdicts = |mut netem: Netem, count: u32| -> Vec<u32> {
            (1..=count)
                .filter(|&id| {
                    let verdict = netem.accept(Instant::ZERO, PacketId(id), &data(1_500));
                    verdict == PacketVerdict::Forwarded
                })
                .collect()
        };
        assert_eq!(verdicts(of(reorder), 20), [5, 10, 15, 20]);
        let often = NetemReorder { share: percent(25), gap: 1, ..reorder };
        let share = verdicts(of(often), 1_000).len();
        // Binomial: mean 250, standard deviation 13.7.
        assert!((196..=304).contains(&share), "{share}");
    }

    #[test]
    fn a_negative_delay_is_none() {
        let delays = delays(params(1, 10), 2_000);
        assert!(delays.iter().all(|&delay| (0.0..11.0).contains(&delay)));
        // Uniform from -9 to 11 ms: 45 % are at or below zero.
        let none = delays.iter().filter(|&&delay| delay == 0.0).count();
        assert!((800..=1_000).contains(&none), "{none}");
    }

    /// Four standard errors of 20,000 delays of deviation 5 ms: 0.14 ms.
    #[test]
    fn distributions_have_their_mean_and_deviation() {
        let of = |distribution| delays(NetemParams { distribution, ..params(100, 5) }, 20_000);
        let normal = of(Distribution::Normal);
        assert!((mean(&normal) - 100.0).abs() < 0.15, "{}", mean(&normal));
        assert!((deviation(&normal) - 5.0).abs() < 0.15, "{}", deviation(&normal));
        let uniform = of(Distribution::Uniform);
        assert!((mean(&uniform) - 100.0).abs() < 0.1, "{}", mean(&uniform));
        assert!((deviation(&uniform) - 10.0 / 12_f64.sqrt()).abs() < 0.1);
        // The table of Pareto's distribution ends at four times the jitter.
        for distribution in [Distribution::Pareto, Distribution::ParetoNormal] {
            let delays = of(distribution);
            assert!((mean(&delays) - 100.0).abs() < 0.3, "{distribution:?} {}", mean(&delays));
            assert!(delays.iter().all(|&delay| delay < 120.01));
        }
    }

    /// A delay is the rest of a division of the random number by twice the jitter: numbers that are
    /// close to each other give any two delays, as in the kernel.
    #[test]
    fn a_correlation_hardly_changes_the_delays() {
        let correlation = percent(50);
        let delays = delays(NetemParams { correlation, ..params(100, 10) }, 20_000);
        let mean = mean(&delays);
        let together = |pair: &[f64]| (pair[0] - mean) * (pair[1] - mean);
        let covariance = delays.windows(2).map(together).sum::<f64>() / 19_999.0;
        let correlation = covariance / (deviation(&delays) * deviation(&delays));
        assert!(correlation.abs() < 0.03, "{correlation}");
        assert!((mean - 100.0).abs() < 0.2, "{mean}");
    }
}
