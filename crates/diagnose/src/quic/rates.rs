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
        let bytes = |interval: &[u64; 2]| interval[dir] as f64;
        let first = self.bytes.iter().position(|interval| interval[dir] > 0)?;
        let last = self.bytes.iter().rposition(|interval| interval[dir] > 0)?;
        // The last interval may be short.
        let busy: Vec<f64> = self.bytes[first..last].iter().map(bytes).collect();
        if busy.len() < LEAST {
            return None;
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let least = busy.len() / LASTS;
        let splits = least..=busy.len() - least;
        let step = |split: usize| {
            let (before, after) = busy.split_at(split);
            let weight = before.len() as f64 * after.len() as f64;
            // The split with the largest difference between its parts (of the squares' sum).
            let fall = (mean(before) - mean(after)).max(0.0);
            fall * fall * weight
        };
        let split = splits.max_by(|&a, &b| step(a).total_cmp(&step(b)))?;
        let (before, after) = busy.split_at(split);
        let (high, low) = (mean(before), mean(after));
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
        Some(RateDrop {
            at: (first + split) as u64 * self.interval,
            end: last as u64 * self.interval,
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
