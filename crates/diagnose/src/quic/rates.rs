//! Rates over time, and a lasting drop of them.

/// Most intervals of a history.
const INTERVALS: usize = 256;
/// First length of an interval, in ns.
const FIRST: u64 = 10_000_000;
/// Fewest intervals with data in which a drop is looked for.
const LEAST: usize = 20;
/// The rate before and after a drop lasts for this part of the transfer.
const LASTS: usize = 5;
/// The rate after a drop is below a half of that before; below a twentieth the transfer was over.
const RATIO: (f64, f64) = (0.5, 0.05);
/// Part of the largest rate that the intervals of a constant one have, and part of the intervals.
const STEADY: f64 = 0.7;
const LASTING: f64 = 0.9;
/// Part of the intervals that are on their side of the mean of both rates.
const CLEAR: f64 = 0.8;
/// While the path is the limit for this part of an interval its rate is that of the path, and a drop leaves this part of the
/// intervals on either side, in whose fewest there are this many.
const BUSY: f64 = 0.9;
const BUSY_LASTS: usize = 20;
const BUSY_LEAST: usize = 5;

/// Bytes of each direction over time, in intervals of equal length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateHistory {
    /// Length of an interval in ns; doubles when there would be too many.
    pub interval: u64,
    /// Bytes, by interval since the first event and by direction.
    pub bytes: Vec<[u64; 2]>,
}

impl Default for RateHistory {
    fn default() -> Self {
        Self { interval: FIRST, bytes: Vec::new() }
    }
}

impl RateHistory {
    /// Adds bytes of a direction at a time in ns since the first event.
    pub(super) fn push(&mut self, since: u64, dir: usize, len: u64) {
        while since / self.interval >= INTERVALS as u64 {
            self.interval *= 2;
            let merged = self.bytes.chunks(2).map(|two| {
                two.iter().fold([0, 0], |sum: [u64; 2], one| [sum[0] + one[0], sum[1] + one[1]])
            });
            self.bytes = merged.collect();
        }
        let index = (since / self.interval) as usize;
        if self.bytes.len() <= index {
            self.bytes.resize(index + 1, [0, 0]);
        }
        self.bytes[index][dir] += len;
    }

    /// Whether the rate of a direction is constant: nine tenths of its intervals have at least seven tenths of the
    /// largest one.
    pub(super) fn is_steady(&self, dir: usize) -> bool {
        let begin = self.bytes.iter().position(|interval| interval[dir] > 0);
        let end = self.bytes.iter().rposition(|interval| interval[dir] > 0);
        let (Some(begin), Some(end), Some(largest)) = (begin, end, self.largest(dir)) else {
            return false;
        };
        let busy = &self.bytes[begin..end];
        let least = largest * self.interval as f64 / 1e9 * STEADY;
        let near = busy.iter().filter(|interval| interval[dir] as f64 >= least).count();
        busy.len() >= LEAST && near as f64 >= LASTING * busy.len() as f64
    }

    /// The part of both columns that one of them has between two times in ns since the first event.
    pub(super) fn share(&self, dir: usize, (from, to): (u64, u64)) -> f64 {
        let range = (from / self.interval) as usize..=(to / self.interval) as usize;
        let sums = self.bytes.iter().enumerate().filter(|(at, _)| range.contains(at));
        let [one, other] = sums
            .fold([0, 0], |sum: [u64; 2], (_, both)| [sum[0] + both[dir], sum[1] + both[1 - dir]]);
        one as f64 / (one + other).max(1) as f64
    }

    /// The largest rate of a direction in a whole interval, in bytes per second; `None` if the connection
    /// is shorter than an interval.
    pub fn largest(&self, dir: usize) -> Option<f64> {
        // The last interval may be short, and its rate is too low then.
        let whole = self.bytes.get(..self.bytes.len().checked_sub(1)?)?;
        let most = whole.iter().map(|interval| interval[dir]).max()?;
        Some(most as f64 * 1e9 / self.interval as f64)
    }
}

/// A lasting drop of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateDrop {
    /// When, in ns since the first event.
    pub at: u64,
    /// End of the transfer, in ns since the first event.
    pub end: u64,
    /// Rate before and after it, in bytes per second.
    pub rates: (f64, f64),
}

impl RateDrop {
    /// Time in ns that the bytes after the drop took longer than at the rate before it.
    pub fn cost(&self) -> u64 {
        let slower = (self.end - self.at) as f64;
        (slower * (1.0 - self.rates.1 / self.rates.0)) as u64
    }
}

impl RateHistory {
    /// The drop of a direction's rate to less than half, if the rate was steady enough before and after it.
    /// A transfer that pauses, or that fell in its first fifth (slow start), has none.
    pub fn drop(&self, dir: usize) -> Option<RateDrop> {
        let first = self.bytes.iter().position(|interval| interval[dir] > 0)?;
        let last = self.bytes.iter().rposition(|interval| interval[dir] > 0)?;
        // The last interval may be short.
        let all: Vec<usize> = (first..last).collect();
        self.split(dir, &all, all.len() / LASTS)
    }

    /// The same of a path, from the intervals in which it was the limit by `busy`, whose first column has its time: their rate
    /// is the path's, in slow start and later, so that a drop may be early.
    pub(super) fn drop_of_path(&self, dir: usize, busy: &Self) -> Option<RateDrop> {
        let last = self.bytes.iter().rposition(|interval| interval[dir] > 0)?;
        let is_busy = |index: &usize| {
            let from = *index as u64 * self.interval;
            busy.share(0, (from, from + self.interval - 1)) >= BUSY
        };
        let all: Vec<usize> = (0..last).filter(is_busy).collect();
        self.split(dir, &all, (all.len() / BUSY_LASTS).max(BUSY_LEAST))
    }

    /// The drop between two of these intervals, with at least `least` on either side.
    fn split(&self, dir: usize, intervals: &[usize], least: usize) -> Option<RateDrop> {
        let busy: Vec<f64> = intervals.iter().map(|&at| self.bytes[at][dir] as f64).collect();
        if busy.len() < LEAST {
            return None;
        }
        let sums: Vec<f64> = core::iter::once(0.0)
            .chain(busy.iter().scan(0.0, |sum, rate| {
                *sum += rate;
                Some(*sum)
            }))
            .collect();
        let whole = sums[busy.len()];
        let means = |split: usize| {
            let (before, after) = (split as f64, (busy.len() - split) as f64);
            (sums[split] / before, (whole - sums[split]) / after)
        };
        let step = |split: usize| {
            let weight = split as f64 * (busy.len() - split) as f64;
            let (before, after) = means(split);
            // The split with the largest difference between its parts (of the squares' sum).
            let fall = (before - after).max(0.0);
            fall * fall * weight
        };
        let splits = least..=busy.len() - least;
        let split = splits.max_by(|&a, &b| step(a).total_cmp(&step(b)))?;
        let (before, after) = busy.split_at(split);
        let (high, low) = means(split);
        if low >= RATIO.0 * high || low < RATIO.1 * high {
            return None;
        }
        let middle = f64::midpoint(high, low);
        let clear = |part: &[f64], is_its: &dyn Fn(f64) -> bool| {
            let count = part.iter().filter(|&&rate| is_its(rate)).count();
            count as f64 >= CLEAR * part.len() as f64
        };
        if !clear(before, &|rate| rate > middle) || !clear(after, &|rate| rate < middle) {
            return None;
        }
        let per_second = 1e9 / self.interval as f64;
        let end = intervals.last().map_or(0, |last| last + 1);
        Some(RateDrop {
            at: intervals[split] as u64 * self.interval,
            end: end as u64 * self.interval,
            rates: (high * per_second, low * per_second),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(rates: impl IntoIterator<Item = u64>) -> RateHistory {
        let mut history = RateHistory::default();
        for (n, bytes) in rates.into_iter().enumerate() {
            history.push(n as u64 * FIRST, 0, bytes);
        }
        history
    }

    #[test]
    fn a_lasting_drop_is_found_and_costs_what_the_rate_before_would_have_saved() {
        // 60 intervals of 10 kB, then 40 of 2 kB, the last of which may be short.
        let drop = history((0..100).map(|n| if n < 60 { 10_000 } else { 2_000 })).drop(0).unwrap();
        assert_eq!((drop.at, drop.end), (600_000_000, 990_000_000));
        assert_eq!(drop.rates, (1_000_000.0, 200_000.0));
        // 390 ms at a fifth of the rate.
        assert_eq!(drop.cost(), 312_000_000);
    }

    /// 10 intervals of slow start, 20 at 10 kB and 170 at 2.5 kB with a queue: the drop is in the first sixth.
    #[test]
    fn an_early_drop_of_a_busy_path_is_found() {
        let rate = |n: u64| match n {
            0..10 => 1_000 * n,
            10..30 => 10_000 + n % 3 * 500,
            _ => 2_500 + n % 3 * 500,
        };
        let rates = history((0..200).map(rate));
        assert_eq!(rates.drop(0), None);
        let busy = |n: u64| if n < 10 { [0, FIRST] } else { [FIRST, 0] };
        let busy = RateHistory { interval: FIRST, bytes: (0..200).map(busy).collect() };
        let drop = rates.drop_of_path(0, &busy).unwrap();
        assert_eq!((drop.at, drop.end), (300_000_000, 1_990_000_000));
        // What an application sends is no rate of the path.
        let idle = RateHistory { interval: FIRST, bytes: vec![[0, FIRST]; 200] };
        assert_eq!(rates.drop_of_path(0, &idle), None);
    }

    #[test]
    fn sawteeth_pauses_slow_start_and_an_end_are_no_drop() {
        // The sawtooth of NewReno: from half of a rate to the whole.
        assert_eq!(history((0..200).map(|n| 5_000 + 50 * (n % 100))).drop(0), None);
        // An application that sends for 50 ms in each 200.
        assert_eq!(history((0..200).map(|n| if n % 20 < 5 { 10_000 } else { 0 })).drop(0), None);
        // A peak in the first tenth.
        assert_eq!(history((0..200).map(|n| if n < 20 { 10_000 } else { 2_000 })).drop(0), None);
        // Keep-alives after the transfer.
        assert_eq!(history((0..200).map(|n| if n < 100 { 10_000 } else { 30 })).drop(0), None);
        // A rate that rises.
        assert_eq!(history((0..200).map(|n| if n < 100 { 2_000 } else { 10_000 })).drop(0), None);
        assert_eq!(history((0..10).map(|_| 10_000)).drop(0), None);
    }
}
