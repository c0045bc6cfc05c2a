//! What is to be sent on a stream, and what became of it (RFC 9000 sections 2.2, 13.3).

use crate::packet::Chunk;
use crate::ranges::Ranges;

/// The sending half of a stream.
#[derive(Debug, Clone)]
pub(crate) struct SendStream {
    capacity: u64,
    /// End of what the application has written.
    written: u64,
    /// End of what was ever sent.
    next: u64,
    /// All before it is acknowledged.
    una: u64,
    /// What is acknowledged beyond `una`.
    acked: Ranges,
    /// What is lost and not yet sent again.
    lost: Ranges,
    fin: Fin,
}

/// The end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fin {
    Open,
    /// To be sent, or sent again.
    Wanted,
    /// To be sent again.
    Lost,
    Sent,
    Acked,
}

/// A piece to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) chunk: Chunk,
    /// It was sent before.
    pub(crate) again: bool,
}

impl SendStream {
    /// An empty stream that holds at most `capacity` bytes until they are acknowledged.
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            written: 0,
            next: 0,
            una: 0,
            acked: Ranges::default(),
            lost: Ranges::default(),
            fin: Fin::Open,
        }
    }

    /// Takes up to `bytes`; returns how many.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.capacity - (self.written - self.una));
        self.written += taken;
        taken
    }

    /// Nothing more will be written.
    pub(crate) fn finish(&mut self) {
        if self.fin == Fin::Open {
            self.fin = Fin::Wanted;
        }
    }

    /// Is there anything to send, as far as the peer's limit allows?
    pub(crate) fn wants(&self, limit: u64) -> bool {
        !self.lost.is_empty()
            || self.next < self.written.min(limit)
            || matches!(self.fin, Fin::Lost)
            || (self.fin == Fin::Wanted && self.next == self.written)
    }

    /// Is the peer's limit what keeps bytes back?
    pub(crate) const fn blocked(&self, limit: u64) -> bool {
        self.next < self.written && self.next >= limit
    }

    /// The next piece of at most `room` bytes: lost bytes first, the lowest offset first, then new
    /// ones below `limit`.
    pub(crate) fn take(&mut self, room: u32, limit: u64) -> Option<Piece> {
        let room = u64::from(room);
        if let Some((start, end)) = self.lost.first() {
            let stop = end.min(start + room);
            if stop == start {
                return None;
            }
            self.lost.remove(start, stop);
            let fin = self.fin == Fin::Lost && stop == self.written;
            return Some(self.piece(start, stop, fin, true));
        }
        if self.fin == Fin::Lost {
            return Some(self.piece(self.written, self.written, true, true));
        }
        let stop = self.written.min(limit).min(self.next + room);
        let fin = self.fin == Fin::Wanted && stop.max(self.next) == self.written;
        if stop <= self.next && !fin {
            return None;
        }
        let start = self.next;
        self.next = stop.max(start);
        Some(self.piece(start, self.next, fin, false))
    }

    /// Bytes that [`SendStream::take`] would give.
    pub(crate) fn peek(&self, room: u32, limit: u64) -> u32 {
        let bytes = match self.lost.first() {
            Some((start, end)) => end - start,
            None => self.written.min(limit).saturating_sub(self.next),
        };
        bytes.min(u64::from(room)) as u32
    }

    /// Where they begin.
    pub(crate) fn peek_offset(&self) -> u64 {
        self.lost.first().map_or(self.next, |(start, _)| start)
    }

    fn piece(&mut self, start: u64, stop: u64, fin: bool, again: bool) -> Piece {
        if fin {
            self.fin = Fin::Sent;
        }
        let chunk = Chunk { offset: start, len: (stop - start) as u32, fin };
        Piece { chunk, again }
    }

    /// A piece arrived.
    pub(crate) fn on_acked(&mut self, chunk: &Chunk) {
        if chunk.fin {
            self.fin = Fin::Acked;
        }
        self.lost.remove(chunk.offset, chunk.end());
        if chunk.offset > self.una {
            self.acked.insert(chunk.offset, chunk.end());
            return;
        }
        self.una = self.una.max(chunk.end());
        while let Some((start, end)) = self.acked.first() {
            if start > self.una {
                break;
            }
            self.una = self.una.max(end);
            self.acked.remove_below(self.una.max(end));
        }
    }

    /// A piece was lost, or is to go again as a probe.
    pub(crate) fn on_lost(&mut self, chunk: &Chunk) {
        if chunk.fin && self.fin == Fin::Sent {
            self.fin = Fin::Lost;
        }
        let start = chunk.offset.max(self.una);
        self.lost.insert(start, chunk.end().max(start));
        // Parts may have arrived in another packet.
        let Self { acked, lost, .. } = self;
        for (from, to) in acked.iter() {
            if to > start && from < chunk.end() {
                lost.remove(from, to);
            }
        }
    }

    /// All before it is acknowledged.
    pub(crate) const fn una(&self) -> u64 {
        self.una
    }

    /// End of what was ever sent.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes held.
    pub(crate) const fn buffered(&self) -> u64 {
        self.written - self.una
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn fin_sent(&self) -> bool {
        matches!(self.fin, Fin::Sent | Fin::Lost | Fin::Acked)
    }

    /// Has everything, its end too, arrived?
    pub(crate) fn is_done(&self) -> bool {
        self.fin == Fin::Acked && self.una == self.written
    }

    /// Has the application closed it?
    pub(crate) fn is_finished(&self) -> bool {
        self.fin != Fin::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(offset: u64, len: u32, fin: bool) -> Chunk {
        Chunk { offset, len, fin }
    }

    fn taken(stream: &mut SendStream, room: u32) -> Option<(u64, u32, bool, bool)> {
        let piece = stream.take(room, u64::MAX)?;
        Some((piece.chunk.offset, piece.chunk.len, piece.chunk.fin, piece.again))
    }

    #[test]
    fn lost_bytes_go_first_and_the_lowest_first() {
        let mut stream = SendStream::new(1_000);
        assert_eq!(stream.write(700), 700);
        for _ in 0..5 {
            stream.take(100, u64::MAX);
        }
        stream.on_lost(&chunk(300, 100, false));
        stream.on_lost(&chunk(100, 100, false));
        assert_eq!(taken(&mut stream, 60), Some((100, 60, false, true)));
        assert_eq!(taken(&mut stream, 60), Some((160, 40, false, true)));
        assert_eq!(taken(&mut stream, 100), Some((300, 100, false, true)));
        assert_eq!(taken(&mut stream, 100), Some((500, 100, false, false)));
    }

    #[test]
    fn what_arrived_meanwhile_does_not_go_again() {
        let mut stream = SendStream::new(1_000);
        stream.write(400);
        stream.take(400, u64::MAX);
        stream.on_acked(&chunk(150, 100, false));
        stream.on_lost(&chunk(100, 200, false));
        assert_eq!(taken(&mut stream, 900), Some((100, 50, false, true)));
        assert_eq!(taken(&mut stream, 900), Some((250, 50, false, true)));
        assert_eq!(taken(&mut stream, 900), None);
        stream.on_lost(&chunk(0, 100, false));
        stream.on_acked(&chunk(0, 250, false));
        assert_eq!((stream.una(), taken(&mut stream, 900)), (250, None));
    }

    #[test]
    fn the_end_goes_with_the_last_byte_or_alone_and_again_if_lost() {
        let mut stream = SendStream::new(1_000);
        stream.write(100);
        stream.finish();
        assert_eq!(taken(&mut stream, 60), Some((0, 60, false, false)));
        assert_eq!(taken(&mut stream, 60), Some((60, 40, true, false)));
        stream.on_lost(&chunk(60, 40, true));
        assert_eq!(taken(&mut stream, 60), Some((60, 40, true, true)));
        stream.on_acked(&chunk(60, 40, true));
        assert!(!stream.is_done());
        stream.on_acked(&chunk(0, 60, false));
        assert!(stream.is_done());
        let mut stream = SendStream::new(10);
        stream.finish();
        assert_eq!(taken(&mut stream, 60), Some((0, 0, true, false)));
        assert_eq!(taken(&mut stream, 60), None);
    }

    #[test]
    fn the_peers_limit_holds_new_bytes_only() {
        let mut stream = SendStream::new(1_000);
        stream.write(300);
        assert_eq!(stream.take(200, 150).map(|piece| piece.chunk.len), Some(150));
        assert!(stream.blocked(150) && !stream.wants(150));
        stream.on_lost(&chunk(0, 150, false));
        assert!(stream.wants(150));
    }

    #[test]
    fn room_for_writing_comes_with_acknowledgments() {
        let mut stream = SendStream::new(100);
        assert_eq!([stream.write(80), stream.write(80)], [80, 20]);
        stream.take(100, u64::MAX);
        stream.on_acked(&chunk(50, 50, false));
        assert_eq!(stream.write(80), 0);
        stream.on_acked(&chunk(0, 50, false));
        assert_eq!(stream.write(80), 80);
    }
}
