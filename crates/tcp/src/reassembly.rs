//! Bytes that arrived out of order, and the SACK blocks that tell of them (RFC 2018 section 4).

use packet::{SackBlock, SackBlocks};
use units::{Offset, SeqNum};

/// A range `[left, right)` beyond `rcv_nxt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    left: Offset,
    right: Offset,
    /// Number of the arrival that last touched it: the newest is reported first.
    touched: u64,
}

impl Range {
    const fn len(&self) -> u64 {
        self.right.0 - self.left.0
    }
}

/// Out-of-order ranges, sorted, disjoint and not adjacent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reassembly {
    ranges: Vec<Range>,
    held: u64,
    arrivals: u64,
}

impl Reassembly {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes held.
    pub(crate) const fn bytes(&self) -> u64 {
        self.held
    }

    /// Notes `[left, right)`; false if that would need another range and there are `most` already:
    /// it is dropped and comes again (tcp_reass of FreeBSD).
    pub(crate) fn insert(&mut self, left: Offset, right: Offset, most: usize) -> bool {
        self.arrivals += 1;
        let first = self.ranges.partition_point(|range| range.right < left);
        let last = self.ranges.partition_point(|range| range.left <= right);
        let mut merged = Range { left, right, touched: self.arrivals };
        match self.ranges.get(first..last) {
            Some([]) | None => {
                if self.ranges.len() >= most {
                    return false;
                }
                self.held += right - left;
                self.ranges.insert(first, merged);
            }
            Some(touching) => {
                let before: u64 = touching.iter().map(Range::len).sum();
                merged.left = merged.left.min(touching[0].left);
                merged.right = merged.right.max(touching[touching.len() - 1].right);
                self.held += merged.len() - before;
                self.ranges[first] = merged;
                self.ranges.drain(first + 1..last);
            }
        }
        true
    }

    /// All up to `rcv_nxt` has arrived in order: returns where the stream now ends without a gap.
    #[inline]
    pub(crate) fn advance(&mut self, rcv_nxt: Offset) -> Offset {
        if self.ranges.is_empty() { rcv_nxt } else { self.advance_over(rcv_nxt) }
    }

    fn advance_over(&mut self, rcv_nxt: Offset) -> Offset {
        let mut end = rcv_nxt;
        let passed = self.ranges.partition_point(|range| range.left <= rcv_nxt);
        for range in self.ranges.drain(..passed) {
            self.held -= range.len();
            end = end.max(range.right);
        }
        end
    }

    /// The first part of `[left, right)` that is held already.
    pub(crate) fn overlap(&self, left: Offset, right: Offset) -> Option<(Offset, Offset)> {
        let at = self.ranges.partition_point(|range| range.right <= left);
        let range = self.ranges.get(at).filter(|range| range.left < right)?;
        Some((range.left.max(left), range.right.min(right)))
    }

    /// Up to `most` blocks: what arrived twice, if anything (RFC 2883), then those held, the one
    /// touched last first.
    pub(crate) fn sack_blocks(
        &self,
        isn: SeqNum,
        most: usize,
        duplicate: Option<(Offset, Offset)>,
    ) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        if let Some((left, right)) = duplicate {
            blocks.push(SackBlock { left: left.to_seq(isn), right: right.to_seq(isn) });
        }
        let mut below = u64::MAX;
        for _ in blocks.as_slice().len()..most {
            let newest = self.ranges.iter().filter(|r| r.touched < below).max_by_key(|r| r.touched);
            let Some(range) = newest else { break };
            below = range.touched;
            let block = SackBlock { left: range.left.to_seq(isn), right: range.right.to_seq(isn) };
            if !blocks.push(block) {
                break;
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Stream;

    fn spans(reassembly: &Reassembly) -> Vec<(u64, u64)> {
        reassembly.ranges.iter().map(|r| (r.left.0, r.right.0)).collect()
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
    fn filling_the_gap_gives_all_that_follows() {
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
        let mut stream = Stream::named(3, "reassembly", "test");
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
    fn the_number_of_ranges_is_bounded() {
        let mut r = Reassembly::default();
        for n in 0..100 {
            assert!(r.insert(Offset(10 * n), Offset(10 * n + 1), 100));
        }
        assert!(!r.insert(Offset(99_999), Offset(100_000), 100));
        assert!(r.insert(Offset(1), Offset(2), 100), "one that joins another needs no room");
    }
}
