//! Ranges of a stream, sorted and disjoint.

/// A set of bytes as half-open ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    list: Vec<(u64, u64)>,
    bytes: u64,
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes in the set.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds `[start, end)`; calls `fresh` with each part that was not there yet.
    pub(crate) fn add(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        // All ranges that touch the new one become one with it.
        let first = self.list.partition_point(|&(_, right)| right < start);
        let mut last = first;
        let (mut left, mut right, mut at) = (start, end, start);
        while let Some(&(l, r)) = self.list.get(last) {
            if l > end {
                break;
            }
            if l > at {
                fresh(at, l.min(end));
                self.bytes += l.min(end) - at;
            }
            at = at.max(r);
            left = left.min(l);
            right = right.max(r);
            last += 1;
        }
        if at < end {
            fresh(at, end);
            self.bytes += end - at;
        }
        if last == first + 1 {
            self.list[first] = (left, right);
        } else {
            self.list.splice(first..last, [(left, right)]);
        }
    }

    /// Forgets everything below `place`.
    pub(crate) fn drop_below(&mut self, place: u64) {
        let gone = self.list.partition_point(|&(_, right)| right <= place);
        for (left, right) in self.list.drain(..gone) {
            self.bytes -= right - left;
        }
        if let Some(first) = self.list.first_mut()
            && first.0 < place
        {
            self.bytes -= place - first.0;
            first.0 = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_same_as_a_set_of_bytes(
            steps in proptest::collection::vec((0_u64..200, 1_u64..30, any::<bool>()), 1..60),
        ) {
            let mut ranges = Ranges::default();
            let mut model = BTreeSet::new();
            for (start, len, cut) in steps {
                if cut {
                    ranges.drop_below(start);
                    model = model.split_off(&start);
                    continue;
                }
                let mut fresh = BTreeSet::new();
                ranges.add(start, start + len, |l, r| fresh.extend(l..r));
                let expected: BTreeSet<_> =
                    (start..start + len).filter(|byte| !model.contains(byte)).collect();
                prop_assert_eq!(&fresh, &expected);
                model.extend(expected);
                prop_assert_eq!(ranges.bytes(), model.len() as u64);
                prop_assert_eq!(ranges.is_empty(), model.is_empty());
            }
        }
    }
}
