//! The received part of a stream.

use std::collections::BTreeMap;

/// Ranges of a stream; the contiguous prefix is stored as its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrivals {
    /// All bytes before this offset have arrived.
    upto: u64,
    /// Further ranges, from their left to their right end, not adjacent to each other.
    beyond: BTreeMap<u64, u64>,
}

impl Arrivals {
    /// Returns the end of the contiguous prefix.
    pub(crate) const fn upto(&self) -> u64 {
        self.upto
    }

    /// Returns the number of bytes in `[left, right)` that have not arrived.
    pub(crate) fn missing(&self, left: u64, right: u64) -> u64 {
        let left = left.max(self.upto);
        let inside = |(&l, &r): (&u64, &u64)| r.min(right).saturating_sub(l.max(left));
        let arrived: u64 =
            self.beyond.range(..right).rev().map(inside).take_while(|&n| n > 0).sum();
        right.saturating_sub(left) - arrived
    }

    /// Inserts the bytes `[left, right)`, which may have arrived before.
    pub(crate) fn insert(&mut self, mut left: u64, mut right: u64) {
        if right <= self.upto {
            return;
        }
        if left > self.upto {
            while let Some((&l, &r)) =
                self.beyond.range(..=right).next_back().filter(|&(_, &r)| r >= left)
            {
                self.beyond.remove(&l);
                left = left.min(l);
                right = right.max(r);
            }
            self.beyond.insert(left, right);
            return;
        }
        self.upto = right;
        while let Some(first) = self.beyond.first_entry().filter(|first| *first.key() <= self.upto)
        {
            self.upto = self.upto.max(first.remove());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_in_any_order() {
        let mut arrivals = Arrivals::default();
        let steps = [
            ((10, 20), 0),
            ((30, 40), 0),
            ((18, 32), 0),
            ((0, 5), 5),
            ((0, 5), 5),
            ((5, 10), 40),
            ((12, 14), 40),
            ((40, 41), 41),
        ];
        for ((left, right), upto) in steps {
            arrivals.insert(left, right);
            assert_eq!(arrivals.upto(), upto, "after {left}..{right}");
        }
        assert!(arrivals.beyond.is_empty());
    }

    #[test]
    fn missing_bytes_of_a_range() {
        let mut arrivals = Arrivals::default();
        for (left, right) in [(0, 10), (20, 30), (40, 50), (60, 70)] {
            arrivals.insert(left, right);
        }
        for ((left, right), missing) in [
            ((0, 10), 0),
            ((5, 15), 5),
            ((10, 20), 10),
            ((15, 45), 15),
            ((22, 28), 0),
            ((25, 65), 20),
            ((70, 90), 20),
            ((0, 100), 60),
        ] {
            assert_eq!(arrivals.missing(left, right), missing, "{left}..{right}");
        }
    }
}
