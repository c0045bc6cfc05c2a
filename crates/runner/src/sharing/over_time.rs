//! Queue length and delay of a link over time, in bounded memory.
//!
//! Intervals begin at 1 ms. Whenever there are more than [`MOST`], neighbours are merged, so that
//! no maximum and no loss is missed in a run of any length.

use serde::{Deserialize, Serialize};
use units::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;
/// Width of the first intervals, in nanoseconds.
const NARROWEST: u64 = 1_000_000;
/// Maximum number of intervals.
const MOST: usize = 4_096;

/// A queue in one interval of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueInterval {
    /// Sum of the queue delays of the packets that left.
    wait_sum: u128,
    /// Packets that left.
    pub packets: u64,
    /// Longest queue delay of these packets.
    pub longest: Duration,
    /// Most packets at the link, with the one in transmission.
    pub most_packets: u64,
    /// Most bytes at the link, IP headers included, with the packet in transmission.
    pub most_bytes: u64,
    /// Packets dropped.
    pub lost: u64,
}

impl QueueInterval {
    /// Mean queue delay of the packets that left; `None` without any.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.wait_sum.checked_div(u128::from(self.packets))?;
        Some(Duration::from_nanos(mean as u64))
    }

    /// Both intervals as one.
    fn with(self, next: Self) -> Self {
        Self {
            wait_sum: self.wait_sum + next.wait_sum,
            packets: self.packets + next.packets,
            longest: self.longest.max(next.longest),
            most_packets: self.most_packets.max(next.most_packets),
            most_bytes: self.most_bytes.max(next.most_bytes),
            lost: self.lost + next.lost,
        }
    }
}

/// Length and delay of a link's queue in each second of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueSeconds {
    /// Key of the link in the scenario.
    pub link: String,
    /// Mean queue delay of the packets that left; `None` without any.
    pub delay_mean_s: Vec<Option<f64>>,
    /// Their longest queue delay.
    pub delay_max_s: Vec<Option<f64>>,
    /// Most packets at the link, with the one in transmission.
    pub most_packets: Vec<u64>,
    /// Most bytes at the link, with the packet in transmission.
    pub most_bytes: Vec<u64>,
    /// Packets dropped.
    pub lost: Vec<u64>,
}

impl QueueSeconds {
    /// The columns of these intervals.
    pub(super) fn of(link: &str, seconds: &[QueueInterval]) -> Self {
        let longest = |one: &QueueInterval| (one.packets > 0).then_some(one.longest.as_secs_f64());
        Self {
            link: link.to_owned(),
            delay_mean_s: seconds.iter().map(|one| one.mean().map(Duration::as_secs_f64)).collect(),
            delay_max_s: seconds.iter().map(longest).collect(),
            most_packets: seconds.iter().map(|one| one.most_packets).collect(),
            most_bytes: seconds.iter().map(|one| one.most_bytes).collect(),
            lost: seconds.iter().map(|one| one.lost).collect(),
        }
    }
}

/// Intervals of one width.
#[derive(Debug, Clone)]
struct Intervals {
    width: u64,
    /// Maximum number; beyond it neighbours are merged.
    most: usize,
    all: Vec<QueueInterval>,
}

impl Intervals {
    /// The interval of `at`; those since the last one have the length `now`.
    fn at(&mut self, at: Instant, [packets, bytes]: [u64; 2]) -> &mut QueueInterval {
        while (at.as_nanos() / self.width) as usize >= self.most {
            self.merge();
        }
        let place = (at.as_nanos() / self.width) as usize;
        if self.all.len() <= place {
            let idle =
                QueueInterval { most_packets: packets, most_bytes: bytes, ..Default::default() };
            self.all.resize(place + 1, idle);
        }
        &mut self.all[place]
    }

    fn merge(&mut self) {
        self.width *= 2;
        let pair = |pair: &[QueueInterval]| pair.iter().copied().reduce(QueueInterval::with);
        self.all = self.all.chunks(2).filter_map(pair).collect();
    }
}

/// A queue over time.
#[derive(Debug, Clone)]
pub(super) struct QueueHistory {
    /// Packets and bytes at the link now.
    length: [u64; 2],
    fine: Intervals,
    seconds: Intervals,
}

impl Default for QueueHistory {
    fn default() -> Self {
        let of = |width, most| Intervals { width, most, all: Vec::new() };
        Self { length: [0; 2], fine: of(NARROWEST, MOST), seconds: of(SECOND, usize::MAX) }
    }
}

impl QueueHistory {
    /// A packet of `size` bytes entered.
    pub(super) fn enter(&mut self, at: Instant, size: u32) {
        let before = self.length;
        self.length = [before[0] + 1, before[1] + u64::from(size)];
        let [packets, bytes] = self.length;
        self.each(at, before, |one| {
            one.most_packets = one.most_packets.max(packets);
            one.most_bytes = one.most_bytes.max(bytes);
        });
    }

    /// A packet left after this queue delay.
    pub(super) fn leave(&mut self, at: Instant, size: u32, wait: Duration) {
        let before = self.length;
        self.shrink(size);
        self.each(at, before, |one| {
            one.wait_sum += u128::from(wait.as_nanos());
            one.packets += 1;
            one.longest = one.longest.max(wait);
        });
    }

    /// A packet was dropped; `queued`: from the queue, not on arrival.
    pub(super) fn lose(&mut self, at: Instant, size: u32, queued: bool) {
        let before = self.length;
        if queued {
            self.shrink(size);
        }
        self.each(at, before, |one| one.lost += 1);
    }

    fn shrink(&mut self, size: u32) {
        let [packets, bytes] = self.length;
        self.length = [packets.saturating_sub(1), bytes.saturating_sub(u64::from(size))];
    }

    fn each(&mut self, at: Instant, before: [u64; 2], change: impl Fn(&mut QueueInterval)) {
        change(self.fine.at(at, before));
        change(self.seconds.at(at, before));
    }

    /// The width of the fine intervals, and those up to `end`.
    pub(super) fn fine(&self, end: Instant) -> (Duration, Vec<QueueInterval>) {
        (Duration::from_nanos(self.fine.width), self.until(&self.fine, end))
    }

    /// The seconds up to `end`.
    pub(super) fn seconds(&self, end: Instant) -> Vec<QueueInterval> {
        self.until(&self.seconds, end)
    }

    fn until(&self, intervals: &Intervals, end: Instant) -> Vec<QueueInterval> {
        let mut intervals = intervals.clone();
        if end > Instant::ZERO {
            intervals.at(Instant::from_nanos(end.as_nanos() - 1), self.length);
        }
        intervals.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_interval_has_its_maxima_means_and_losses() {
        let ms = Duration::from_millis;
        let mut queue = QueueHistory::default();
        queue.enter(at(0), 1_500);
        queue.enter(at(0), 40);
        queue.leave(at(1), 1_500, ms(0));
        queue.lose(at(1), 1_500, false);
        queue.leave(at(1), 40, ms(3));
        queue.enter(at(3), 100);
        let (width, fine) = queue.fine(at(5));
        assert_eq!((width, fine.len()), (ms(1), 5));
        // The length at the start of an interval counts in it.
        let packets: Vec<u64> = fine.iter().map(|one| one.most_packets).collect();
        assert_eq!(packets, [2, 2, 0, 1, 1]);
        assert_eq!((fine[1].most_bytes, fine[1].lost), (1_540, 1));
        assert_eq!((fine[1].longest, fine[1].mean()), (ms(3), Some(Duration::from_micros(1_500))));
        assert_eq!((fine[0].mean(), queue.seconds(at(5)).len()), (None, 1));
    }

    #[test]
    fn a_long_run_has_wider_intervals_and_the_same_sums() {
        let mut queue = QueueHistory::default();
        for second in 0..100 {
            queue.enter(at(1_000 * second), 1_000);
            queue.lose(at(1_000 * second + 500), 1_000, true);
        }
        let (width, fine) = queue.fine(at(100_000));
        // 100 s in 4,096 intervals at most: 32 ms.
        assert_eq!((width.as_nanos(), fine.len()), (32_000_000, 3_125));
        assert_eq!(fine.iter().map(|one| one.lost).sum::<u64>(), 100);
        assert_eq!(queue.seconds(at(100_000)).len(), 100);
    }
}
