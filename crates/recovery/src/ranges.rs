//! Sorted, disjoint ranges of a stream.
//!
//! Adding a range at the end, or near `snd_una`, takes constant time; in the middle it shifts at
//! most half the ranges.

use core::hint::cold_path;
use std::collections::VecDeque;

use units::Offset;

use crate::dsack::SackRange;

/// Entries at either end that are checked before a binary search.
const NEAR: usize = 4;

/// The partition point of a list in which entries that satisfy `holds` come first. Most queries are
/// near an end: SACKs come from where data arrives, retransmissions begin at the front.
pub(crate) fn partition<T>(list: &VecDeque<T>, mut holds: impl FnMut(&T) -> bool) -> usize {
    let len = list.len();
    if let Some(at) = (0..NEAR.min(len)).find(|&at| !list.get(at).is_some_and(&mut holds)) {
        return at;
    }
    if let Some(at) =
        (len - NEAR.min(len)..len).rev().find(|&at| list.get(at).is_some_and(&mut holds))
    {
        return at + 1;
    }
    cold_path();
    list.partition_point(holds)
}

/// A set of ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct RangeSet {
    ranges: VecDeque<SackRange>,
}

impl RangeSet {
    pub(crate) const fn new() -> Self {
        Self { ranges: VecDeque::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<SackRange> {
        self.ranges.get(at).copied()
    }

    /// End of the last range.
    pub(crate) fn end(&self) -> Option<Offset> {
        self.ranges.back().map(|&(_, end)| end)
    }

    /// Index of the first range that ends beyond `place`.
    pub(crate) fn first_ending_after(&self, place: Offset) -> usize {
        partition(&self.ranges, |&(_, end)| end <= place)
    }

    /// Start of the range that ends at or after `place` and starts before it.
    pub(crate) fn start_of_range_before(&self, place: Offset) -> Option<Offset> {
        let at = partition(&self.ranges, |&(start, _)| start < place);
        let (start, end) = self.get(at.checked_sub(1)?)?;
        (end >= place).then_some(start)
    }

    /// Adds `[start, end)`, which is between the ranges before `at` and from `at` on; returns the
    /// index of the range that contains it.
    pub(crate) fn fill(&mut self, at: usize, start: Offset, end: Offset) -> usize {
        let joins_before = at > 0 && self.ranges[at - 1].1 == start;
        let joins_after = self.get(at).is_some_and(|(from, _)| from == end);
        match (joins_before, joins_after) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
                at - 1
            }
            (true, false) => {
                self.ranges[at - 1].1 = end;
                at - 1
            }
            (false, true) => {
                self.ranges[at].0 = start;
                at
            }
            (false, false) => {
                self.ranges.insert(at, (start, end));
                at
            }
        }
    }

    /// Drops everything below `place`.
    pub(crate) fn advance(&mut self, place: Offset) {
        while let Some(first) = self.ranges.front_mut() {
            if first.0 >= place {
                break;
            }
            if first.1 > place {
                first.0 = place;
                break;
            }
            self.ranges.pop_front();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_matches_partition_point() {
        for len in 0..20 {
            let list: VecDeque<u32> = (0..len).collect();
            for below in 0..=len {
                assert_eq!(partition(&list, |&n| n < below), below as usize);
            }
        }
    }
}
