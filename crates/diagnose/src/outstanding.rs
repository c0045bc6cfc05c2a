//! Data that were sent and not acknowledged yet: what was sent, when, how often.
//!
//! Bounded by the flight: an entry goes when the cumulative ACK passes it.

use std::collections::BTreeMap;

/// A stretch of the stream that passed the capture point, or one that should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// First and last time it passed, in ns.
    pub(crate) first_at: u64,
    pub(crate) last_at: u64,
    /// How often it passed; 0 for a hole, of which only what lies above was seen (`first_at` is
    /// then when that was).
    pub(crate) copies: u8,
    /// Reported by SACK.
    pub(crate) sacked: bool,
    /// TSval of the packet (of a hole: of the one above it).
    pub(crate) stamp: u32,
}

/// Disjoint stretches by their first byte: what comes out of order splits one in the midst of many.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    list: BTreeMap<u64, Sent>,
}

impl Outstanding {
    /// Adds a stretch above all others.
    pub(crate) fn push(&mut self, sent: Sent) {
        self.list.insert(sent.start, sent);
    }

    pub(crate) fn first(&self) -> Option<&Sent> {
        self.list.first_key_value().map(|(_, sent)| sent)
    }

    /// Takes out what lies below `place`, the parts of an entry that ends above included.
    pub(crate) fn pop_below(&mut self, place: u64, mut gone: impl FnMut(&Sent)) {
        while let Some(first) = self.list.first_entry() {
            let sent = *first.get();
            if sent.start >= place {
                break;
            }
            first.remove();
            if sent.end > place {
                gone(&Sent { end: place, ..sent });
                self.push(Sent { start: place, ..sent });
                break;
            }
            gone(&sent);
        }
    }

    /// Visits what lies in `[start, end)`; entries that reach beyond are cut in two first.
    pub(crate) fn visit(&mut self, start: u64, end: u64, mut each: impl FnMut(&mut Sent)) {
        if start >= end {
            return;
        }
        self.cut(start);
        self.cut(end);
        for sent in self.list.range_mut(start..end).map(|(_, sent)| sent) {
            each(sent);
        }
    }

    /// Cuts the entry that `place` is inside of.
    fn cut(&mut self, place: u64) {
        let Some((_, sent)) = self.list.range_mut(..place).next_back() else { return };
        if sent.end > place {
            let upper = Sent { start: place, ..*sent };
            sent.end = place;
            self.push(upper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: u64 = 1_000_000;

    fn hole(end: u64) -> Sent {
        Sent { start: 0, end, first_at: 0, last_at: 0, copies: 0, sacked: false, stamp: 0 }
    }

    /// A hole of a million segments that are filled in no order: what each of them costs does not grow with
    /// their number, or this would take an hour.
    #[test]
    fn a_million_segments_come_in_no_order() {
        let mut out = Outstanding::default();
        out.push(hole(SEGMENTS));
        // A prime steps through all of them.
        for place in (0..SEGMENTS).map(|n| n * 7_919 % SEGMENTS) {
            let mut seen = 0;
            out.visit(place, place + 1, |sent| {
                assert_eq!((sent.start, sent.end, sent.copies), (place, place + 1, 0));
                sent.copies += 1;
                seen += 1;
            });
            assert_eq!(seen, 1);
        }
        let mut gone = 0;
        out.pop_below(SEGMENTS, |sent| gone += sent.end - sent.start);
        assert_eq!((gone, out.first()), (SEGMENTS, None));
    }

    #[test]
    fn what_lies_across_the_place_is_parted() {
        let mut out = Outstanding::default();
        out.push(hole(10));
        out.push(Sent { start: 10, end: 20, ..hole(0) });
        let mut seen = Vec::new();
        out.visit(4, 12, |sent| seen.push((sent.start, sent.end)));
        assert_eq!(seen, [(4, 10), (10, 12)]);
        let mut gone = Vec::new();
        out.pop_below(11, |sent| gone.push((sent.start, sent.end)));
        assert_eq!(gone, [(0, 4), (4, 10), (10, 11)]);
        assert_eq!(out.first().map(|sent| (sent.start, sent.end)), Some((11, 12)));
    }
}
