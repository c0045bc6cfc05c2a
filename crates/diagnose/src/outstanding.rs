//! Data sent and not yet acknowledged: ranges, transmission times, number of copies.
//!
//! Bounded by the flight: an entry is removed when the cumulative ACK passes it.

use std::collections::BTreeMap;

use units::{Instant, Offset};

/// A range of the stream that passed the capture point, or a hole that should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentRange {
    pub(crate) start: Offset,
    pub(crate) end: Offset,
    /// Times of the first and the last copy.
    pub(crate) first_at: Instant,
    pub(crate) last_at: Instant,
    /// Copies captured; 0 for a hole, below data that were captured (`first_at` is then their
    /// time).
    pub(crate) copies: u8,
    /// Reported by SACK.
    pub(crate) sacked: bool,
    /// TSval of the packet (of a hole: of the one above it).
    pub(crate) stamp: u32,
}

/// Disjoint ranges by their first byte: data out of order split one in the midst of many.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    list: BTreeMap<Offset, SentRange>,
}

impl Outstanding {
    /// Adds a range above all others.
    pub(crate) fn push(&mut self, sent: SentRange) {
        self.list.insert(sent.start, sent);
    }

    pub(crate) fn first(&self) -> Option<&SentRange> {
        self.list.first_key_value().map(|(_, sent)| sent)
    }

    /// Removes the ranges below `offset`, and the lower part of a range across it; calls `removed`
    /// with each.
    pub(crate) fn pop_below(&mut self, offset: Offset, mut removed: impl FnMut(&SentRange)) {
        while let Some(first) = self.list.first_entry() {
            let sent = *first.get();
            if sent.start >= offset {
                break;
            }
            first.remove();
            if sent.end > offset {
                removed(&SentRange { end: offset, ..sent });
                self.push(SentRange { start: offset, ..sent });
                break;
            }
            removed(&sent);
        }
    }

    /// Visits the ranges in `[start, end)`; splits those that reach beyond.
    pub(crate) fn visit(
        &mut self,
        start: Offset,
        end: Offset,
        mut each: impl FnMut(&mut SentRange),
    ) {
        if start >= end {
            return;
        }
        self.cut(start);
        self.cut(end);
        for sent in self.list.range_mut(start..end).map(|(_, sent)| sent) {
            each(sent);
        }
    }

    /// Splits the range that contains `offset`.
    fn cut(&mut self, offset: Offset) {
        let Some((_, sent)) = self.list.range_mut(..offset).next_back() else { return };
        if sent.end > offset {
            let upper = SentRange { start: offset, ..*sent };
            sent.end = offset;
            self.push(upper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: u64 = 1_000_000;

    fn hole(start: u64, end: u64) -> SentRange {
        let (first_at, last_at) = (Instant::ZERO, Instant::ZERO);
        let (start, end) = (Offset(start), Offset(end));
        SentRange { start, end, first_at, last_at, copies: 0, sacked: false, stamp: 0 }
    }

    /// A hole of a million segments, filled in random order: the cost of each must not grow with
    /// their number, or this would take an hour.
    #[test]
    fn a_million_segments_arrive_in_random_order() {
        let mut out = Outstanding::default();
        out.push(hole(0, SEGMENTS));
        // A prime steps through all of them.
        for offset in (0..SEGMENTS).map(|n| Offset(n * 7_919 % SEGMENTS)) {
            let mut seen = 0;
            out.visit(offset, offset + 1, |sent| {
                assert_eq!((sent.start, sent.end, sent.copies), (offset, offset + 1, 0));
                sent.copies += 1;
                seen += 1;
            });
            assert_eq!(seen, 1);
        }
        let mut gone = 0;
        out.pop_below(Offset(SEGMENTS), |sent| gone += sent.end - sent.start);
        assert_eq!((gone, out.first()), (SEGMENTS, None));
    }

    #[test]
    fn a_range_across_the_offset_is_split() {
        let mut out = Outstanding::default();
        out.push(hole(0, 10));
        out.push(hole(10, 20));
        let mut seen = Vec::new();
        out.visit(Offset(4), Offset(12), |sent| seen.push((sent.start.0, sent.end.0)));
        assert_eq!(seen, [(4, 10), (10, 12)]);
        let mut gone = Vec::new();
        out.pop_below(Offset(11), |sent| gone.push((sent.start.0, sent.end.0)));
        assert_eq!(gone, [(0, 4), (4, 10), (10, 11)]);
        assert_eq!(out.first().map(|sent| (sent.start.0, sent.end.0)), Some((11, 12)));
    }
}
