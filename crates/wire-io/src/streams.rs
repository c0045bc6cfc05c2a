//! The bytes of streams. A world moves segments, which have numbers and no bytes; the bytes lie
//! here by their place in the stream, from the moment a real host sent them.

use packet::{Flags, Segment};
use units::{Offset, SeqNum};

use crate::payload::Payload;

/// Bytes kept behind the newest: more than any window of this kernel (tcp_rmem, tcp_wmem).
const KEPT: usize = 64 << 20;

/// Ranges of places, sorted, disjoint and not adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds `[from, to)` and calls `fresh` for each part that was not there.
    pub fn add(&mut self, from: u64, to: u64, mut fresh: impl FnMut(u64, u64)) {
        if from >= to {
            return;
        }
        let first = self.0.partition_point(|range| range.1 < from);
        let last = self.0.partition_point(|range| range.0 <= to);
        let mut at = from;
        let (mut left, mut right) = (from, to);
        for &(start, end) in &self.0[first..last] {
            if at < start {
                fresh(at, start.min(to));
            }
            at = at.max(end);
            left = left.min(start);
            right = right.max(end);
        }
        if at < to {
            fresh(at, to);
        }
        self.0.splice(first..last, [(left, right)]);
    }

    /// Is all of `[from, to)` there?
    pub fn covers(&self, from: u64, to: u64) -> bool {
        let at = self.0.partition_point(|range| range.1 < to);
        from >= to || self.0.get(at).is_some_and(|&(start, _)| start <= from)
    }

    /// Everything before `at` need not be told apart any more.
    pub fn forget_before(&mut self, at: u64) {
        let gone = self.0.partition_point(|range| range.1 < at);
        self.0.drain(..gone);
    }
}

/// One direction of a flow.
#[derive(Debug)]
pub struct Stream {
    isn: Option<SeqNum>,
    /// Behind the last byte seen.
    newest: Offset,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A host of this program sends it: its bytes are known.
    Known(Payload),
    /// A real host sends it.
    Real {
        /// The byte at place n lies at n modulo [`KEPT`]; empty before the first.
        ring: Vec<u8>,
        sent: Ranges,
    },
}

impl Stream {
    /// A stream that a host of this program sends.
    pub const fn known(payload: Payload) -> Self {
        Self { isn: None, newest: Offset(0), source: Source::Known(payload) }
    }

    /// A stream that a real host sends.
    pub fn real() -> Self {
        let source = Source::Real { ring: Vec::new(), sent: Ranges::default() };
        Self { isn: None, newest: Offset(0), source }
    }

    /// A segment of the stream was sent, with these bytes: what is new of them is kept. The first
    /// to say what stands at a place is believed.
    pub fn sent(&mut self, segment: &Segment, bytes: &[u8]) {
        if segment.flags.has(Flags::SYN) {
            if self.isn == Some(segment.seq) {
                return;
            }
            self.isn = Some(segment.seq);
            self.newest = Offset(0);
            if let Source::Real { sent, .. } = &mut self.source {
                *sent = Ranges::default();
            }
            return;
        }
        let Some(at) = self.place(segment.seq) else { return };
        let Source::Real { ring, sent } = &mut self.source else { return };
        let end = at + bytes.len() as u64;
        if at + KEPT as u64 <= self.newest.0 {
            return;
        }
        self.newest = self.newest.max(Offset(end));
        if ring.is_empty() && !bytes.is_empty() {
            *ring = vec![0; KEPT];
        }
        sent.forget_before(self.newest.0.saturating_sub(KEPT as u64));
        sent.add(at, end, |from, to| {
            let mut part = &bytes[(from - at) as usize..(to - at) as usize];
            let mut place = (from % KEPT as u64) as usize;
            while !part.is_empty() {
                let len = part.len().min(KEPT - place);
                ring[place..place + len].copy_from_slice(&part[..len]);
                part = &part[len..];
                place = 0;
            }
        });
    }

    /// The place of the first byte of a segment with this number; `None` before the beginning.
    pub fn place(&mut self, seq: SeqNum) -> Option<u64> {
        let isn = SeqNum(self.isn?.0.wrapping_add(1));
        let at = seq.near(isn, self.newest)?;
        if let Source::Known(_) = self.source {
            self.newest = self.newest.max(at);
        }
        Some(at.0)
    }

    /// Adds the `len` bytes from place `at` on to `out`; false, and nothing, if they are not there.
    pub fn read(&self, at: u64, len: u32, out: &mut Vec<u8>) -> bool {
        let len = len as usize;
        let start = out.len();
        match &self.source {
            Source::Known(payload) => {
                out.resize(start + len, 0);
                payload.fill(at, &mut out[start..]);
            }
            Source::Real { ring, sent } => {
                let end = at + len as u64;
                if !sent.covers(at, end) || at + (KEPT as u64) < self.newest.0 {
                    return false;
                }
                let mut place = (at % KEPT as u64) as usize;
                let mut left = len;
                while left > 0 {
                    let part = left.min(KEPT - place);
                    out.extend_from_slice(&ring[place..place + part]);
                    left -= part;
                    place = 0;
                }
            }
        }
        true
    }
}

/// What a reader of this program has been given of a real stream: the proof that each byte it reads
/// has come to its stack in a segment.
#[derive(Debug, Default)]
pub struct Received {
    came: Ranges,
    /// Bytes read.
    pub read: u64,
}

impl Received {
    /// A segment came to the stack.
    pub fn came(&mut self, at: u64, len: u32) {
        self.came.add(at, at + u64::from(len), |_, _| {});
    }

    /// The application has read up to place `to`; false if it read what never came.
    pub fn read_to(&mut self, to: u64) -> bool {
        let honest = self.came.covers(self.read, to);
        self.read = to;
        honest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_a_set_of_places() {
        let mut luck = units::Stream::named(5, "ranges", "test");
        let mut ranges = Ranges::default();
        let mut set = std::collections::BTreeSet::new();
        for _ in 0..2_000 {
            let from = luck.below(300);
            let to = from + luck.below(20);
            let mut fresh = Vec::new();
            ranges.add(from, to, |a, b| fresh.extend(a..b));
            let new: Vec<_> = (from..to).filter(|n| !set.contains(n)).collect();
            assert_eq!(fresh, new);
            set.extend(from..to);
            let (a, b) = (luck.below(300), luck.below(330));
            assert_eq!(ranges.covers(a, b), (a..b).all(|n| set.contains(&n)), "{a} {b}");
            if luck.below(50) == 0 {
                set.clear();
                ranges = Ranges::default();
            }
        }
    }

    fn data(seq: u32) -> Segment {
        Segment { seq: SeqNum(seq), flags: Flags::ACK, ..Segment::default() }
    }

    #[test]
    fn the_first_bytes_at_a_place_are_believed() {
        let mut stream = Stream::real();
        assert_eq!(stream.place(SeqNum(1)), None);
        let syn = Segment { seq: SeqNum(u32::MAX), flags: Flags::SYN, ..Segment::default() };
        stream.sent(&syn, &[]);
        stream.sent(&data(2), b"cd");
        let mut out = Vec::new();
        assert!(!stream.read(0, 4, &mut out) && out.is_empty());
        // A forger says something else about c and d.
        stream.sent(&data(0), b"abXXef");
        assert!(stream.read(0, 6, &mut out));
        assert_eq!(out, b"abcdef");
    }

    #[test]
    fn old_bytes_make_room() {
        let mut stream = Stream::real();
        stream.sent(&Segment { flags: Flags::SYN, ..Segment::default() }, &[]);
        let chunk = vec![7; 1 << 20];
        for n in 0..66_u32 {
            stream.sent(&data(1 + (n << 20)), &chunk);
        }
        let mut out = Vec::new();
        assert!(!stream.read(0, 10, &mut out));
        assert!(stream.read(65 << 20, 10, &mut out));
        // What comes late does not overwrite.
        stream.sent(&data(1), &[9; 10]);
        out.clear();
        assert!(stream.read(64 << 20, 10, &mut out));
        assert_eq!(out, [7; 10]);
    }

    #[test]
    fn what_never_came_cannot_be_read() {
        let mut received = Received::default();
        received.came(0, 100);
        received.came(200, 100);
        assert!(received.read_to(100));
        assert!(!received.read_to(150));
    }
}
