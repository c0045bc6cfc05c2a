//! The sequence numbers of one direction as offsets of its stream.

use units::{Offset, SeqNum};

use super::{ORIGIN, StartConditions};

/// A jump of sequence numbers that a capture with gaps may have, in bytes.
pub(super) const MAX_JUMP: u64 = 16 << 20;

/// Maps sequence numbers to offsets; has the first and the last byte of the stream.
#[derive(Debug, Clone)]
pub(super) struct StreamNumbering {
    /// Sequence number of [`ORIGIN`].
    first: SeqNum,
    /// The SYN was captured, so that no byte precedes the first one.
    has_isn: bool,
    /// First byte that was captured.
    pub(super) start: Offset,
    /// Offset of the FIN.
    pub(super) fin: Option<Offset>,
}

impl StreamNumbering {
    /// `seq` is the number of the first captured byte; it counts without a captured SYN.
    pub(super) fn new(begin: &StartConditions, seq: SeqNum) -> Self {
        Self {
            first: begin.isn.map_or(seq, |isn| SeqNum(isn.0.wrapping_add(1))),
            has_isn: begin.isn.is_some(),
            start: ORIGIN,
            fin: None,
        }
    }

    /// Offset of a sequence number, the one nearest to `near`.
    pub(super) fn offset(&self, seq: SeqNum, near: Offset) -> Offset {
        seq.near(self.first, near).unwrap_or_default()
    }

    /// Offset that an ACK number acknowledges, without the FIN.
    pub(super) fn acked_offset(&self, seq: SeqNum, near: Offset) -> Offset {
        let offset = self.offset(seq, near);
        match self.fin {
            Some(fin) if offset == fin + 1 => fin,
            _ => offset,
        }
    }

    /// Begins at the first captured byte, if the SYN was not captured; true if it did.
    pub(super) const fn begin_at(&mut self, start: Offset) -> bool {
        if !self.has_isn {
            self.start = start;
        }
        !self.has_isn
    }

    /// Takes data from before the first captured byte into the stream; returns the number of their
    /// bytes.
    pub(super) fn prepend(&mut self, start: Offset, end: Offset) -> u64 {
        if start >= self.start || self.has_isn || start + MAX_JUMP <= self.start {
            return 0;
        }
        let bytes = end.min(self.start) - start;
        self.start = start;
        bytes
    }

    /// Gives `seq` the offset `nxt`: the numbers in between were never sent.
    pub(super) fn renumber(&mut self, seq: SeqNum, nxt: Offset) {
        // Offsets only grow: the new numbers follow the old ones.
        let moved = self.offset(seq, nxt).0.wrapping_sub(nxt.0) as u32;
        self.first = SeqNum(self.first.0.wrapping_add(moved));
    }
}
