//! Bytes that arrived out of order, and the SACK blocks that report them (RFC 2018 section 4).
//!
//! A window may have thousands of holes: ranges are found by bisection. The blocks reported are
//! those of Linux (tcp_sack_new_ofo_skb, tcp_sack_maybe_coalesce and tcp_sack_remove of
//! tcp_input.c), which remembers four and forgets the oldest: such a range is reported again only
//! if it is extended, and then without what was reported before.

use core::hint::cold_path;
use std::collections::VecDeque;

use packet::{SackBlock, SackBlocks};
use units::{Offset, SeqNum, unlikely};

/// A range `[left, right)` beyond `rcv_nxt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct OutOfOrderRange {
    left: Offset,
    right: Offset,
}

impl OutOfOrderRange {
    const fn len(&self) -> u64 {
        self.right.0 - self.left.0
    }

    /// tcp_sack_extend: extends it by a range that overlaps it or is adjacent.
    fn extend(&mut self, other: Self) -> bool {
        let touches = self.touches(&other);
        if touches {
            self.left = self.left.min(other.left);
            self.right = self.right.max(other.right);
        }
        touches
    }

    fn touches(&self, other: &Self) -> bool {
        other.left <= self.right && self.left <= other.right
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
    /// Blocks to report (`selective_acks`), the most recently extended first; at most
    /// [`NUM_SACKS`].
    blocks: Vec<OutOfOrderRange>,
}

/// Blocks remembered (`TCP_NUM_SACKS`).
const NUM_SACKS: usize = 4;
/// Ranges for which room is reserved: sufficient unless hundreds of packets are missing.
const RESERVED: usize = 64;

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

    /// Does `[left, right)` touch one of the first `count` blocks, or are there fewer?
    pub(crate) fn touches(&self, left: Offset, right: Offset, count: usize) -> bool {
        let Some(held) = &self.out_of_order else { return count > 0 };
        let arrived = OutOfOrderRange { left, right };
        held.blocks.len() < count
            || held.blocks.iter().take(count).any(|block| block.touches(&arrived))
    }

    /// End of the last of the blocks remembered for reports.
    pub(crate) fn last_block_end(&self) -> Option<Offset> {
        self.out_of_order.as_ref()?.blocks.iter().map(|block| block.right).max()
    }

    /// Does what waits end at `at`?
    pub(crate) fn ends_at(&self, at: Offset) -> bool {
        let last = self.out_of_order.as_ref().and_then(|held| held.ranges.back());
        last.is_some_and(|range| range.right == at)
    }

    /// Extends the block that `[left, right)` touches in its place, as tcp_sack_new_ofo_skb does before it sends a
    /// compressed ACK.
    #[cold]
    pub(crate) fn extend_block(&mut self, left: Offset, right: Offset) {
        let arrived = OutOfOrderRange { left, right };
        if let Some(held) = &mut self.out_of_order {
            held.blocks.iter_mut().any(|block| block.extend(arrived));
        }
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
            held.blocks.clear();
        } else {
            // tcp_sack_remove
            held.blocks.retain(|block| block.left > end);
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

    /// Up to `most` blocks: a D-SACK, if any (RFC 2883), then those remembered.
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
        let room = most.saturating_sub(blocks.as_slice().len());
        for block in held.blocks.iter().take(room) {
            let block = SackBlock { left: block.left.to_seq(isn), right: block.right.to_seq(isn) };
            if !blocks.push(block) {
                break;
            }
        }
        blocks
    }
}

#[cold]
fn nothing() -> Box<OutOfOrderQueue> {
    Box::default()
}

impl OutOfOrderQueue {
    /// Adds `[left, right)`; returns the number of bytes added, `None` if it was dropped.
    fn insert(&mut self, left: Offset, right: Offset, most: usize) -> Option<u64> {
        if unlikely(self.ranges.capacity() == 0) {
            self.ranges.reserve(RESERVED);
            self.blocks.reserve_exact(NUM_SACKS);
        }
        let first = self.ranges.partition_point(|range| range.right < left);
        let last = self.ranges.partition_point(|range| range.left <= right);
        let mut merged = OutOfOrderRange { left, right };
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
            self.ranges[first] = merged;
            if first + 1 < last {
                cold_path();
                self.ranges.drain(first + 1..last);
            }
        }
        self.report(OutOfOrderRange { left, right });
        Some(more)
    }

    /// tcp_sack_new_ofo_skb.
    fn report(&mut self, arrived: OutOfOrderRange) {
        let Some(at) = self.blocks.iter_mut().position(|block| block.extend(arrived)) else {
            self.blocks.truncate(NUM_SACKS - 1);
            self.blocks.insert(0, arrived);
            return;
        };
        self.blocks[..=at].rotate_right(1);
        // tcp_sack_maybe_coalesce
        let Some((newest, others)) = self.blocks.split_first_mut() else { return };
        let mut kept = 0;
        for other in 0..others.len() {
            let block = others[other];
            if !newest.extend(block) {
                others[kept] = block;
                kept += 1;
            }
        }
        self.blocks.truncate(kept + 1);
    }
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

    fn reported(r: &Reassembly) -> Vec<(u32, u32)> {
        let blocks = r.sack_blocks(SeqNum(0), 4, None);
        blocks.as_slice().iter().map(|block| (block.left.0, block.right.0)).collect()
    }

    #[test]
    fn a_block_that_was_forgotten_is_reported_only_as_far_as_it_is_extended() {
        let mut r = Reassembly::default();
        for left in [10, 30, 50, 70, 90] {
            r.insert(Offset(left), Offset(left + 5), 100);
        }
        assert_eq!(reported(&r), [(90, 95), (70, 75), (50, 55), (30, 35)]);
        // The queue has 10 to 20 now.
        r.insert(Offset(15), Offset(20), 100);
        assert_eq!(reported(&r), [(15, 20), (90, 95), (70, 75), (50, 55)]);
        r.insert(Offset(55), Offset(70), 100);
        assert_eq!(reported(&r), [(50, 75), (15, 20), (90, 95)]);
        // tcp_sack_remove
        assert_eq!(r.advance(Offset(10)), Offset(20));
        assert_eq!(reported(&r), [(50, 75), (90, 95)]);
        assert!(r.touches(Offset(75), Offset(76), 1) && !r.touches(Offset(95), Offset(96), 1));
        assert_eq!(r.advance(Offset(100)), Offset(100));
        assert_eq!(reported(&r), []);
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
