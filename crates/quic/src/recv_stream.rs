//! The receiving part of a stream (RFC 9000 section 2.2).

use crate::packet::Chunk;
use crate::ranges::NumberRanges;

/// Reassembly state of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecvStream {
    arrived: NumberRanges,
    read: u64,
    end: Option<u64>,
}

impl RecvStream {
    /// Adds a received chunk; returns true if more bytes are readable in order or the end is
    /// reached.
    pub(crate) fn on_chunk(&mut self, chunk: &Chunk) -> bool {
        let before = (self.unread(), self.at_end());
        if chunk.fin {
            self.end = Some(chunk.end());
        }
        self.arrived.insert(chunk.offset, chunk.end());
        (self.unread(), self.at_end()) != before
    }

    /// End of the bytes received in order.
    pub(crate) fn in_order(&self) -> u64 {
        self.arrived.first().map_or(0, |(start, end)| if start == 0 { end } else { 0 })
    }

    /// Bytes ready to be read.
    pub(crate) fn unread(&self) -> u64 {
        self.in_order() - self.read
    }

    /// Reads up to `most` bytes; returns the number read.
    pub(crate) fn read(&mut self, most: u64) -> u64 {
        let bytes = self.unread().min(most);
        self.read += bytes;
        bytes
    }

    /// Bytes read so far.
    pub(crate) const fn taken(&self) -> u64 {
        self.read
    }

    /// Have all bytes up to the end been received?
    pub(crate) fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| end == self.in_order())
    }

    /// Have all bytes up to the end been read?
    pub(crate) fn at_end(&self) -> bool {
        self.end.is_some_and(|end| end == self.read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_order_and_once() {
        let mut stream = RecvStream::default();
        let mut receive = |offset, len, fin| stream.on_chunk(&Chunk { offset, len, fin });
        assert!(!receive(100, 50, true));
        assert!(receive(0, 60, false));
        assert!(!receive(20, 30, false));
        assert_eq!((stream.read(40), stream.unread()), (40, 20));
        assert!(stream.on_chunk(&Chunk { offset: 50, len: 50, fin: false }));
        assert_eq!((stream.read(999), stream.taken()), (110, 150));
        assert!(stream.is_complete() && stream.at_end());
    }
}
