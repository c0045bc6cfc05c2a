//! Bytes that arrived out of order, and the SACK blocks that report them (RFC 2018 section 4).
//!
//! A window may have thousands of holes: ranges are found by bisection, and a separate list has the
//! most recently extended ones at its end.

use core::hint::cold_path;
use std::collections::VecDeque;

use packet::{SackBlock, SackBlocks};
use units::{Offset, SeqNum, unlikely};

/// A range `[left, right)` beyond `rcv_nxt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct OutOfOrderRange {
    left: Offset,
    right: Offset,
    /// Number of the arrival that last extended it: the newest is reported first.
    touched: u64,
}

impl OutOfOrderRange {
    const fn len(&self) -> u64 {
        self.right.0 - self.left.0
    }

    /// Does an entry of [`OutOfOrderQueue::recent`] refer to this range?
    fn is(&self, (left, touched): (Offset, u64)) -> bool {
        self.left == left && self.touched == touched
    }
}

/// Out-of-order ranges, allocated when the first one arrives.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Reassembly {
    held: u64,
    out_of_order: Option<Box<OutOfOrderQueue>>,
}

/// Out-of-order ranges, sorted, disjoint and not adjacent.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
struct OutOfOrderQueue {
    ranges: VecDeque<OutOfOrderRange>,
    /// Left edge of the range that an arrival extended, and the arrival's number; the newest last.
    /// An entry is stale once its range was extended again, merged with another or delivered.
    recent: Vec<(Offset, u64)>,
    arrivals: u64,
}

/// How many recent entries are searched for that of a range extended again: arrivals extend few
/// ranges at a time.
const LATELY: usize = 8;
/// Stale entries allowed in addition to those of the ranges.
const STALE: usize = 64;

impl Reassembly {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Bytes held.
    pub(crate) const fn bytes(&self) -> u64 {
        self.held
    }

    /// Bytes from `rcv_nxt` to the end of the last range; zero if there is none.
    pub(crate) fn reach(&self, rcv_nxt: Offset) -> u64 {
        let last = self.out_of_order.as_ref().and_then(|held| held.ranges.back());
        last.map_or(0, |range| range.right - rcv_nxt)
    }

    /// Adds `[left, right)`; returns false if that would need another range and there are `most`
    /// already: the data is dropped, to be retransmitted (tcp_reass of FreeBSD).
    pub(crate) fn insert(&mut self, left: Offset, right: Offset, most: usize) -> bool {
        let more = self.out_of_order.get_or_insert_with(nothing).insert(left, right, most);
        self.held += more.unwrap_or(0);
        more.is_some()
    }

    /// Does `[left, right)` touch one of the `count` most recently extended ranges?
    pub(crate) fn touches(&self, left: Offset, right: Offset, count: usize) -> bool {
        let Some(held) = &self.out_of_order else { return count > 0 };
        let lately = held.recent.iter().rev().filter_map(|&entry| live(&held.ranges, entry));
        held.ranges.len() < count
            || lately.take(count).any(|range| range.left <= right && left <= range.right)
    }

    /// Delivers ranges once the stream reaches `rcv_nxt`; returns the new end of the in-order data.
    #[inline]
    pub(crate) fn advance(&mut self, rcv_nxt: Offset) -> Offset {
        if self.held == 0 { rcv_nxt } else { self.advance_over(rcv_nxt) }
    }

    fn advance_over(&mut self, rcv_nxt: Offset) -> Offset {
        let Some(held) = &mut self.out_of_order else { return rcv_nxt };
        let mut end = rcv_nxt;
        let passed = held.ranges.partition_point(|range| range.left <= rcv_nxt);
        for range in held.ranges.drain(..passed) {
            self.held -= range.len();
            end = end.max(range.right);
        }
        if held.ranges.is_empty() {
            // All entries are stale: free the list.
            held.recent.clear();
        }
        end
    }

    /// The first part of `[left, right)` that was already received.
    pub(crate) fn overlap(&self, left: Offset, right: Offset) -> Option<(Offset, Offset)> {
        let ranges = &self.out_of_order.as_ref()?.ranges;
        let at = ranges.partition_point(|range| range.right <= left);
        let range = ranges.get(at).filter(|range| range.left < right)?;
        cold_path();
        Some((range.left.max(left), range.right.min(right)))
    }

    /// Up to `most` blocks: a D-SACK, if any (RFC 2883), then the ranges, the most recently
    /// extended first.
    pub(crate) fn sack_blocks(
        &self,
        isn: SeqNum,
        most: usize,
        duplicate: Option<(Offset, Offset)>,
    ) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        if let Some((left, right)) = duplicate {
            cold_path();
            blocks.push(SackBlock { left: left.to_seq(isn), right: right.to_seq(isn) });
        }
        let Some(held) = &self.out_of_order else { return blocks };
        // After the entries of all ranges, only stale ones remain.
        let mut room = most.saturating_sub(blocks.as_slice().len()).min(held.ranges.len());
        // Ranges extended consecutively are usually adjacent.
        let mut near = held.ranges.len();
        for &entry in held.recent.iter().rev() {
            if room == 0 {
                break;
            }
            near = near.wrapping_sub(1);
            let beside = held.ranges.get(near).filter(|range| range.is(entry));
            let Some(range) = beside.or_else(|| {
                near = held.ranges.partition_point(|range| range.left < entry.0);
                held.ranges.get(near).filter(|range| range.is(entry))
            }) else {
                continue;
            };
            room -= 1;
            let block = SackBlock { left: range.left.to_seq(isn), right: range.right.to_seq(isn) };
            if !blocks.push(block) {
                break;
            }
        }
        blocks
    }
}

#[cold]
#[inline(never)]
fn nothing() -> Box<OutOfOrderQueue> {
    Box::default()
}

impl OutOfOrderQueue {
    /// Adds `[left, right)`; returns the number of bytes added, `None` if it was dropped.
    fn insert(&mut self, left: Offset, right: Offset, most: usize) -> Option<u64> {
        self.arrivals += 1;
        if unlikely(self.recent.capacity() == 0) {
            // Sufficient unless hundreds of packets are missing.
            self.ranges.reserve(STALE);
            self.recent.reserve(4 * STALE);
        }
        let first = self.ranges.partition_point(|range| range.right < left);
        let last = self.ranges.partition_point(|range| range.left <= right);
        let mut merged = OutOfOrderRange { left, right, touched: self.arrivals };
        let more;
        if unlikely(first >= last) {
            if self.ranges.len() >= most {
                return None;
            }
            more = right - left;
            self.ranges.insert(first, merged);
        } else {
            let before: u64 = self.ranges.range(first..last).map(OutOfOrderRange::len).sum();
            merged.left = merged.left.min(self.ranges[first].left);
            merged.right = merged.right.max(self.ranges[last - 1].right);
            more = merged.len() - before;
            let old = self.ranges[first];
            self.forget(&old);
            self.ranges[first] = merged;
            if first + 1 < last {
                cold_path();
                self.ranges.drain(first + 1..last);
            }
        }
        self.recent.push((merged.left, merged.touched));
        if unlikely(self.recent.len() > 2 * self.ranges.len() + STALE) {
            let ranges = &self.ranges;
            self.recent.retain(|&entry| live(ranges, entry).is_some());
        }
        Some(more)
    }

    /// Drops the entry of a range that is extended again, if it is recent.
    fn forget(&mut self, range: &OutOfOrderRange) {
        let from = self.recent.len().saturating_sub(LATELY);
        let entry = (range.left, range.touched);
        if let Some(at) = self.recent[from..].iter().rposition(|&other| other == entry) {
            self.recent.remove(from + at);
        }
    }
}

/// The range of an entry, unless the entry is stale.
fn live(
    ranges: &VecDeque<OutOfOrderRange>,
    (left, touched): (Offset, u64),
) -> Option<&OutOfOrderRange> {
    let at = ranges.partition_point(|range| range.left < left);
    ranges.get(at).filter(|range| range.is((left, touched)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::RandomStream;

    fn spans(reassembly: &Reassembly) -> Vec<(u64, u64)> {
        reassembly
            .out_of_order
            .iter()
            .flat_map(|held| &held.ranges)
            .map(|r| (r.left.0, r.right.0))
            .collect()
    }

    #[test]
    fn ranges_that_touch_become_one() {
        let mut r = Reassembly::default();
        r.insert(Offset(10), Offset(20), 100);
        r.insert(Offset(30), Offset(40), 100);
        assert_eq!(spans(&r), [(10, 20), (30, 40)]);
        r.insert(Offset(20), Offset(30), 100);
        assert_eq!(spans(&r), [(10, 40)]);
        assert_eq!(r.bytes(), 30);
    }

    #[test]
    fn the_newest_block_is_reported_first() {
        let mut r = Reassembly::default();
        for left in [10, 30, 50, 70] {
            r.insert(Offset(left), Offset(left + 5), 100);
        }
        r.insert(Offset(35), Offset(40), 100);
        let blocks = r.sack_blocks(SeqNum(1_000), 3, None);
        let lefts: Vec<_> = blocks.as_slice().iter().map(|b| b.left.0).collect();
        assert_eq!(lefts, [1_030, 1_070, 1_050]);
        assert_eq!(blocks.as_slice()[0].right, SeqNum(1_040));
    }

    #[test]
    fn filling_the_gap_delivers_the_data_after_it() {
        let mut r = Reassembly::default();
        r.insert(Offset(10), Offset(20), 100);
        r.insert(Offset(30), Offset(40), 100);
        assert_eq!(r.advance(Offset(5)), Offset(5));
        assert_eq!(r.advance(Offset(12)), Offset(20));
        assert_eq!(spans(&r), [(30, 40)]);
        assert_eq!(r.advance(Offset(30)), Offset(40));
        assert!(r.is_empty());
    }

    #[test]
    fn agrees_with_a_set_of_bytes_on_random_arrivals() {
        let mut stream = RandomStream::named(3, "reassembly", "test");
        let mut r = Reassembly::default();
        let mut bytes = std::collections::BTreeSet::new();
        for _ in 0..2_000 {
            let left = stream.below(500);
            let right = left + 1 + stream.below(20);
            assert!(r.insert(Offset(left), Offset(right), usize::MAX));
            bytes.extend(left..right);
            if stream.below(20) == 0 {
                let nxt = stream.below(500);
                let end = (nxt..).find(|b| !bytes.contains(b)).unwrap();
                assert_eq!(r.advance(Offset(nxt)), Offset(end));
                bytes.retain(|b| *b >= end);
            }
            assert_eq!(r.bytes(), bytes.len() as u64);
        }
    }

    #[test]
    fn blocks_are_reported_most_recently_extended_first() {
        let mut stream = RandomStream::named(4, "reassembly", "test");
        let mut r = Reassembly::default();
        let mut nxt = 0;
        for _ in 0..5_000 {
            let left = nxt + 1 + stream.below(2_000);
            r.insert(Offset(left), Offset(left + 1 + stream.below(5)), usize::MAX);
            if stream.below(30) == 0 {
                nxt = r.advance(Offset(nxt + 1 + stream.below(100))).0;
            }
            let held = r.out_of_order.as_deref().unwrap();
            let mut ranges: Vec<OutOfOrderRange> = held.ranges.iter().copied().collect();
            ranges.sort_by_key(|range| core::cmp::Reverse(range.touched));
            let lefts: Vec<u32> = ranges.iter().take(3).map(|range| range.left.0 as u32).collect();
            let blocks = r.sack_blocks(SeqNum(0), 3, None);
            let reported: Vec<u32> = blocks.as_slice().iter().map(|block| block.left.0).collect();
            assert_eq!(reported, lefts);
        }
        let held = r.out_of_order.unwrap();
        assert!(held.recent.len() <= 2 * held.ranges.len() + STALE + 1, "{}", held.recent.len());
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let mut r = Reassembly::default();
        for n in 0..100 {
            assert!(r.insert(Offset(10 * n), Offset(10 * n + 1), 100));
        }
        assert!(!r.insert(Offset(99_999), Offset(100_000), 100));
        assert!(r.insert(Offset(1), Offset(2), 100), "one that joins another needs no room");
    }
}
