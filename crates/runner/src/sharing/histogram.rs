//! Delay histogram in bounded memory: exact to 1/128, with exact minimum and maximum.

use units::Duration;

/// Significant bits of a delay.
const BITS: u32 = 7;

/// Counts of delays by range.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    /// One range per nanosecond below 128 ns, then 128 ranges per octave.
    counts: Vec<u64>,
    total: u64,
    most: u64,
}

/// The range of a delay.
fn range_of(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS + 1);
    ((u64::from(shift) << BITS) + (ns >> shift)) as usize
}

/// The longest delay of a range.
fn end_of(range: usize) -> u64 {
    let range = range as u64;
    if range < 2 << BITS {
        return range;
    }
    let shift = (range >> BITS) - 1;
    let step = range - (shift << BITS);
    ((step + 1) << shift) - 1
}

impl Histogram {
    pub(super) fn add(&mut self, wait: Duration) {
        let range = range_of(wait.as_nanos());
        if self.counts.len() <= range {
            self.counts.resize(range + 1, 0);
        }
        self.counts[range] += 1;
        self.total += 1;
        self.most = self.most.max(wait.as_nanos());
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The smallest delay that `thousandths` of all delays do not exceed, rounded up by less than
    /// 1/128; `None` if empty.
    pub(super) fn quantile(&self, thousandths: u64) -> Option<Duration> {
        let wanted = (u128::from(self.total) * u128::from(thousandths)).div_ceil(1_000).max(1);
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += u128::from(*count);
            seen >= wanted
        })?;
        Some(Duration::from_nanos(end_of(place).min(self.most)))
    }

    /// Delays with the fraction that does not exceed them, in thousandths, wherever that fraction
    /// grows by a thousandth or more, and at the end.
    pub(super) fn distribution(&self) -> Vec<(Duration, u64)> {
        let (mut seen, mut reported) = (0, None);
        let mut steps = Vec::new();
        for (range, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            seen += count;
            let part = (u128::from(seen) * 1_000 / u128::from(self.total)) as u64;
            if reported != Some(part) {
                reported = Some(part);
                steps.push((Duration::from_nanos(end_of(range).min(self.most)), part));
            }
        }
        steps
    }

    pub(super) fn max(&self) -> Option<Duration> {
        (self.total > 0).then_some(Duration::from_nanos(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_contiguous_and_contain_their_delays() {
        let mut last = 0;
        for ns in (0..100_000).chain((1..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit])) {
            let range = range_of(ns);
            let end = end_of(range);
            assert!(end >= ns && end - ns <= ns / 128, "{ns} in {range}, up to {end}");
            assert!(range == 0 || end_of(range - 1) < ns, "{ns} in {range}");
            last = last.max(range);
        }
        assert!(last < 8_000);
    }

    #[test]
    fn quantiles_are_those_of_the_delays() {
        let mut waits = Histogram::default();
        assert_eq!((waits.quantile(500), waits.max()), (None, None));
        (1..=100).for_each(|ns| waits.add(Duration::from_nanos(ns)));
        let of = |thousandths| waits.quantile(thousandths).unwrap().as_nanos();
        assert_eq!([of(1), of(500), of(950), of(990), of(1_000)], [1, 50, 95, 99, 100]);
        assert_eq!(waits.total(), 100);
        let steps = waits.distribution();
        assert!(
            steps.iter().zip(1..).all(|((wait, part), n)| (wait.as_nanos(), *part) == (n, 10 * n))
        );
        assert_eq!(steps.len(), 100);
    }
}
