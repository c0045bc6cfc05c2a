//! A set of numbers as ranges: received packet numbers, lost bytes of a stream.

use std::collections::VecDeque;

/// Disjoint, non-adjacent half-open ranges `[start, end)` in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NumberRanges(VecDeque<(u64, u64)>);

impl NumberRanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The lowest range.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.0.front().copied()
    }

    /// The ranges in ascending order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Index of the first range that ends at or beyond `number`.
    fn first_reaching(&self, number: u64) -> usize {
        // New numbers are mostly at the end.
        match self.0.back() {
            Some(&(start, end)) if start <= number => {
                if end >= number {
                    self.0.len() - 1
                } else {
                    self.0.len()
                }
            }
            _ => self.0.partition_point(|&(_, end)| end < number),
        }
    }

    /// Adds `[start, end)`; returns the count of new numbers.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let at = self.first_reaching(start);
        let (mut low, mut high, mut known, mut joined) = (start, end, 0, 0);
        while let Some(&(from, to)) = self.0.get(at + joined) {
            if from > end {
                break;
            }
            known += to.min(end).saturating_sub(from.max(start));
            (low, high) = (low.min(from), high.max(to));
            joined += 1;
        }
        match joined {
            0 => self.0.insert(at, (low, high)),
            _ => {
                self.0[at] = (low, high);
                self.0.drain(at + 1..at + joined);
            }
        }
        end - start - known
    }

    /// Removes `[start, end)`.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let mut at = self.0.partition_point(|&(_, to)| to <= start);
        while let Some(&(from, to)) = self.0.get(at) {
            if from >= end {
                break;
            }
            match (from < start, to > end) {
                (true, true) => {
                    self.0[at].1 = start;
                    self.0.insert(at + 1, (end, to));
                    break;
                }
                (true, false) => {
                    self.0[at].1 = start;
                    at += 1;
                }
                (false, true) => {
                    self.0[at].0 = end;
                    break;
                }
                (false, false) => {
                    self.0.remove(at);
                }
            }
        }
    }

    /// Removes all numbers below `number`.
    pub(crate) fn remove_below(&mut self, number: u64) {
        while let Some(first) = self.0.front_mut() {
            if first.1 > number {
                first.0 = first.0.max(number);
                break;
            }
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The ranges agree with a plain set.
        #[test]
        fn it_is_a_set(steps in prop::collection::vec((0_u8..3, 0_u64..60, 0_u64..12), 0..80)) {
            let (mut ranges, mut set) = (NumberRanges::default(), BTreeSet::new());
            for (kind, start, len) in steps {
                let end = start + len;
                match kind {
                    0 => {
                        let new = (start..end).filter(|&n| set.insert(n)).count() as u64;
                        prop_assert_eq!(ranges.insert(start, end), new);
                    }
                    1 => {
                        set.retain(|n| !(start..end).contains(n));
                        ranges.remove(start, end);
                    }
                    _ => {
                        set.retain(|&n| n >= len);
                        ranges.remove_below(len);
                    }
                }
                let listed: Vec<_> = ranges.iter().flat_map(|(from, to)| from..to).collect();
                prop_assert_eq!(&listed, &set.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
            }
        }
    }
}
