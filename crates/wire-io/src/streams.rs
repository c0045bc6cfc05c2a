//! The bytes of streams. The simulator forwards segments without payload bytes; the bytes that real
//! hosts send are stored here by stream offset.

use packet::{Flags, Segment};
use units::{Offset, SeqNum};

use crate::payload::PayloadGenerator;

/// Bytes kept before the newest: more than any window of this kernel (tcp_rmem, tcp_wmem).
const RETAINED: usize = 64 << 20;

/// Ranges of stream offsets, sorted, disjoint and not adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetRanges(Vec<(u64, u64)>);

impl OffsetRanges {
    /// Adds `[from, to)` and calls `fresh` for each new part.
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

    /// Returns whether all of `[from, to)` is present.
    pub fn covers(&self, from: u64, to: u64) -> bool {
        let at = self.0.partition_point(|range| range.1 < to);
        from >= to || self.0.get(at).is_some_and(|&(start, _)| start <= from)
    }

    /// Drops ranges that end before `at`.
    pub fn forget_before(&mut self, at: u64) {
        let gone = self.0.partition_point(|range| range.1 < at);
        self.0.drain(..gone);
    }
}

/// One direction of a flow.
#[derive(Debug)]
pub struct ByteStream {
    isn: Option<SeqNum>,
    /// One past the last byte seen.
    newest: Offset,
    source: StreamSource,
}

#[derive(Debug)]
enum StreamSource {
    /// Sent by a simulated host: the bytes are generated.
    Known(PayloadGenerator),
    /// Sent by a real host.
    Real {
        /// The byte at offset n is at index n modulo [`RETAINED`]; empty before the first.
        ring: Vec<u8>,
        sent: OffsetRanges,
    },
}

impl ByteStream {
    /// Creates a stream sent by a simulated host.
    pub const fn known(payload: PayloadGenerator) -> Self {
        Self { isn: None, newest: Offset(0), source: StreamSource::Known(payload) }
    }

    /// Creates a stream sent by a real host.
    pub fn real() -> Self {
        let source = StreamSource::Real { ring: Vec::new(), sent: OffsetRanges::default() };
        Self { isn: None, newest: Offset(0), source }
    }

    /// Records a sent segment and stores its new bytes. The first bytes seen at an offset are kept.
    pub fn sent(&mut self, segment: &Segment, bytes: &[u8]) {
        if segment.flags.has(Flags::SYN) {
            if self.isn == Some(segment.seq) {
                return;
            }
            self.isn = Some(segment.seq);
            self.newest = Offset(0);
            if let StreamSource::Real { sent, .. } = &mut self.source {
                *sent = OffsetRanges::default();
            }
            return;
        }
        let Some(at) = self.offset(segment.seq) else { return };
        let StreamSource::Real { ring, sent } = &mut self.source else { return };
        let end = at + bytes.len() as u64;
        if at + RETAINED as u64 <= self.newest.0 {
            return;
        }
        self.newest = self.newest.max(Offset(end));
        if ring.is_empty() && !bytes.is_empty() {
            *ring = vec![0; RETAINED];
        }
        sent.forget_before(self.newest.0.saturating_sub(RETAINED as u64));
        sent.add(at, end, |from, to| {
            let mut part = &bytes[(from - at) as usize..(to - at) as usize];
            let mut offset = (from % RETAINED as u64) as usize;
            while !part.is_empty() {
                let len = part.len().min(RETAINED - offset);
                ring[offset..offset + len].copy_from_slice(&part[..len]);
                part = &part[len..];
                offset = 0;
            }
        });
    }

    /// Returns the offset of sequence number `seq`; `None` before the start of the stream.
    pub fn offset(&mut self, seq: SeqNum) -> Option<u64> {
        let isn = SeqNum(self.isn?.0.wrapping_add(1));
        let at = seq.near(isn, self.newest)?;
        if let StreamSource::Known(_) = self.source {
            self.newest = self.newest.max(at);
        }
        Some(at.0)
    }

    /// Appends `len` bytes from offset `at` to `out`; returns false if they are not available.
    pub fn read(&self, at: u64, len: u32, out: &mut Vec<u8>) -> bool {
        let len = len as usize;
        let start = out.len();
        match &self.source {
            StreamSource::Known(payload) => {
                out.resize(start + len, 0);
                payload.fill(at, &mut out[start..]);
            }
            StreamSource::Real { ring, sent } => {
                let end = at + len as u64;
                if !sent.covers(at, end) || at + (RETAINED as u64) < self.newest.0 {
                    return false;
                }
                let mut offset = (at % RETAINED as u64) as usize;
                let mut left = len;
                while left > 0 {
                    let part = left.min(RETAINED - offset);
                    out.extend_from_slice(&ring[offset..offset + part]);
                    left -= part;
                    offset = 0;
                }
            }
        }
        true
    }
}

/// Bytes of a real stream received by a simulated host; verifies that each byte read was received
/// in a segment.
#[derive(Debug, Default)]
pub struct ReceivedBytes {
    came: OffsetRanges,
    /// Bytes read.
    pub read: u64,
}

impl ReceivedBytes {
    /// Records a segment received by the stack.
    pub fn came(&mut self, at: u64, len: u32) {
        self.came.add(at, at + u64::from(len), |_, _| {});
    }

    /// Records a read up to offset `to`; returns false if it includes bytes never received.
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
    fn ranges_agree_with_a_set_of_offsets() {
        let mut random = units::RandomStream::named(5, "ranges", "test");
        let mut ranges = OffsetRanges::default();
        let mut set = std::collections::BTreeSet::new();
        for _ in 0..2_000 {
            let from = random.below(300);
            let to = from + random.below(20);
            let mut fresh = Vec::new();
            ranges.add(from, to, |a, b| fresh.extend(a..b));
            let new: Vec<_> = (from..to).filter(|n| !set.contains(n)).collect();
            assert_eq!(fresh, new);
            set.extend(from..to);
            let (a, b) = (random.below(300), random.below(330));
            assert_eq!(ranges.covers(a, b), (a..b).all(|n| set.contains(&n)), "{a} {b}");
            if random.below(50) == 0 {
                set.clear();
                ranges = OffsetRanges::default();
            }
        }
    }

    fn data(seq: u32) -> Segment {
        Segment { seq: SeqNum(seq), flags: Flags::ACK, ..Segment::default() }
    }

    #[test]
    fn the_first_bytes_at_an_offset_are_kept() {
        let mut stream = ByteStream::real();
        assert_eq!(stream.offset(SeqNum(1)), None);
        let syn = Segment { seq: SeqNum(u32::MAX), flags: Flags::SYN, ..Segment::default() };
        stream.sent(&syn, &[]);
        stream.sent(&data(2), b"cd");
        let mut out = Vec::new();
        assert!(!stream.read(0, 4, &mut out) && out.is_empty());
        // A forged segment has other bytes for c and d.
        stream.sent(&data(0), b"abXXef");
        assert!(stream.read(0, 6, &mut out));
        assert_eq!(out, b"abcdef");
    }

    #[test]
    fn old_bytes_are_dropped() {
        let mut stream = ByteStream::real();
        stream.sent(&Segment { flags: Flags::SYN, ..Segment::default() }, &[]);
        let chunk = vec![7; 1 << 20];
        for n in 0..66_u32 {
            stream.sent(&data(1 + (n << 20)), &chunk);
        }
        let mut out = Vec::new();
        assert!(!stream.read(0, 10, &mut out));
        assert!(stream.read(65 << 20, 10, &mut out));
        // Late segments do not overwrite.
        stream.sent(&data(1), &[9; 10]);
        out.clear();
        assert!(stream.read(64 << 20, 10, &mut out));
        assert_eq!(out, [7; 10]);
    }

    #[test]
    fn bytes_never_received_cannot_be_read() {
        let mut received = ReceivedBytes::default();
        received.came(0, 100);
        received.came(200, 100);
        assert!(received.read_to(100));
        assert!(!received.read_to(150));
    }
}
