//! Data that were sent and not acknowledged yet: what was sent, when, how often.
//!
//! Bounded by the flight: an entry goes when the cumulative ACK passes it.

use std::collections::VecDeque;

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

#[derive(Debug, Clone, Default)]
pub(crate) struct Outstanding {
    list: VecDeque<Sent>,
}

impl Outstanding {
    pub(crate) fn push(&mut self, sent: Sent) {
        self.list.push_back(sent);
    }

    pub(crate) fn first(&self) -> Option<&Sent> {
        self.list.front()
    }

    /// Takes out what lies below `place`, the parts of an entry that ends above included.
    pub(crate) fn pop_below(&mut self, place: u64, mut gone: impl FnMut(&Sent)) {
        while let Some(first) = self.list.front_mut() {
            if first.end <= place {
                gone(first);
                self.list.pop_front();
            } else {
                if first.start < place {
                    gone(&Sent { end: place, ..*first });
                    first.start = place;
                }
                break;
            }
        }
    }

    /// Visits what lies in `[start, end)`; entries that reach beyond are cut in two first.
    pub(crate) fn visit(&mut self, start: u64, end: u64, mut each: impl FnMut(&mut Sent)) {
        let mut at = self.list.partition_point(|sent| sent.end <= start);
        while let Some(&sent) = self.list.get(at) {
            if sent.start >= end {
                break;
            }
            if sent.start < start {
                self.list[at].end = start;
                at += 1;
                self.list.insert(at, Sent { start, ..sent });
            }
            if self.list[at].end > end {
                let upper = Sent { start: end, ..self.list[at] };
                self.list[at].end = end;
                self.list.insert(at + 1, upper);
            }
            each(&mut self.list[at]);
            at += 1;
        }
    }
}
