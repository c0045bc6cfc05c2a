//! Ranges of a stream, sorted and disjoint.

use std::collections::BTreeMap;

use units::Offset;

/// A set of bytes as half-open ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StreamRanges {
    /// End of each range by its start.
    list: BTreeMap<Offset, Offset>,
    bytes: u64,
}

impl StreamRanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes in the set.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// End of the range that begins at 0; 0 without one.
    pub(crate) fn contiguous(&self) -> Offset {
        self.list.get(&Offset(0)).copied().unwrap_or_default()
    }

    /// Adds `[start, end)`; calls `added` with each part that is new.
    pub(crate) fn add(
        &mut self,
        start: Offset,
        end: Offset,
        mut added: impl FnMut(Offset, Offset),
    ) {
        if start >= end {
            return;
        }
        // Ranges that touch the new one are merged with it.
        let (mut left, mut right, mut at) = (start, end, start);
        if let Some((&l, &r)) = self.list.range(..start).next_back()
            && r >= start
        {
            (left, right, at) = (l, right.max(r), r);
        }
        while let Some((&l, &r)) = self.list.range(start..=end).next() {
            self.list.remove(&l);
            if l > at {
                added(at, l);
                self.bytes += l - at;
            }
            at = at.max(r);
            right = right.max(r);
        }
        if at < end {
            added(at, end);
            self.bytes += end - at;
        }
        self.list.insert(left, right);
    }

    /// Removes `[start, end)`; returns how many of its bytes were in the set.
    pub(crate) fn remove(&mut self, start: Offset, end: Offset) -> u64 {
        let before = self.bytes;
        while let Some((&left, &right)) = self.list.range(..end).next_back()
            && right > start
        {
            self.list.remove(&left);
            self.bytes -= right.min(end) - left.max(start);
            if left < start {
                self.list.insert(left, start);
            }
            if right > end {
                self.list.insert(end, right);
            }
        }
        before - self.bytes
    }

    /// Removes the lowest ranges until there are at most `most`.
    pub(crate) fn limit(&mut self, most: usize) {
        while self.list.len() > most
            && let Some((left, right)) = self.list.pop_first()
        {
            self.bytes -= right - left;
        }
    }

    /// Removes everything below `offset`.
    pub(crate) fn drop_below(&mut self, offset: Offset) {
        while let Some(first) = self.list.first_entry() {
            let (left, right) = (*first.key(), *first.get());
            if left >= offset {
                break;
            }
            first.remove();
            self.bytes -= right.min(offset) - left;
            if right > offset {
                self.list.insert(offset, right);
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Blocks of every second segment in random order: see `Outstanding`.
    #[test]
    fn half_a_million_ranges_arrive_in_random_order() {
        const RANGES: u64 = 500_000;
        let mut ranges = StreamRanges::default();
        for offset in (0..RANGES).map(|n| Offset(n * 7_919 % RANGES * 2)) {
            ranges.add(offset, offset + 1, |_, _| {});
        }
        assert_eq!(ranges.bytes(), RANGES);
        (0..RANGES).for_each(|range| ranges.drop_below(Offset(2 * range)));
        assert_eq!(ranges.bytes(), 1);
    }

    proptest! {
        #[test]
        fn matches_a_set_of_bytes(
            steps in proptest::collection::vec((0_u64..200, 1_u64..30, 0..3_u8), 1..60),
        ) {
            let mut ranges = StreamRanges::default();
            let mut model = BTreeSet::new();
            for (start, len, step) in steps {
                if step == 0 {
                    ranges.drop_below(Offset(start));
                    model = model.split_off(&start);
                    continue;
                }
                if step == 1 {
                    let removed = (start..start + len).filter(|byte| model.remove(byte)).count();
                    prop_assert_eq!(ranges.remove(Offset(start), Offset(start + len)), removed as u64);
                    prop_assert_eq!(ranges.bytes(), model.len() as u64);
                    continue;
                }
                let mut added = BTreeSet::new();
                ranges.add(Offset(start), Offset(start + len), |l, r| added.extend(l.0..r.0));
                let expected: BTreeSet<_> =
                    (start..start + len).filter(|byte| !model.contains(byte)).collect();
                prop_assert_eq!(&added, &expected);
                model.extend(expected);
                prop_assert_eq!(ranges.bytes(), model.len() as u64);
                prop_assert_eq!(ranges.is_empty(), model.is_empty());
            }
        }
    }
}
