//! The sending part of a stream (RFC 9000 sections 2.2, 13.3).

use crate::packet::Chunk;
use crate::ranges::NumberRanges;

/// Send buffer of a stream: written, sent, acknowledged and lost ranges.
#[derive(Debug, Clone)]
pub(crate) struct SendStream {
    capacity: u64,
    /// Bytes of a write of the application; the end of one ends a chunk.
    unit: Option<u64>,
    /// End of the bytes written by the application.
    written: u64,
    /// End of the bytes ever sent (`snd_max`).
    next: u64,
    /// All bytes before it are acknowledged (`snd_una`).
    una: u64,
    /// Ranges acknowledged beyond `una`.
    acked: NumberRanges,
    /// Ranges lost and not yet retransmitted.
    lost: NumberRanges,
    fin: Fin,
}

/// The state of the FIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fin {
    Open,
    /// Written and not yet sent.
    Pending,
    /// To be retransmitted.
    Lost,
    Sent,
    Acked,
}

/// A chunk to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendChunk {
    pub(crate) chunk: Chunk,
    /// It is a retransmission.
    pub(crate) retransmitted: bool,
}

impl SendStream {
    /// An empty stream that holds at most `capacity` bytes until they are acknowledged.
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            unit: None,
            written: 0,
            next: 0,
            una: 0,
            acked: NumberRanges::default(),
            lost: NumberRanges::default(),
            fin: Fin::Open,
        }
    }

    /// The stream whose new chunks end where a write of `unit` bytes ends.
    pub(crate) fn in_writes_of(self, unit: Option<u64>) -> Self {
        Self { unit, ..self }
    }

    /// End of the new bytes of which a chunk may be, below `limit`.
    fn end_of_new(&self, limit: u64) -> u64 {
        let end = self.written.min(limit);
        self.unit.map_or(end, |unit| end.min((self.next / unit + 1) * unit))
    }

    /// Accepts up to `bytes`; returns the number accepted.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.capacity - (self.written - self.una));
        self.written += taken;
        taken
    }

    /// Ends the stream: nothing more will be written.
    pub(crate) fn finish(&mut self) {
        if self.fin == Fin::Open {
            self.fin = Fin::Pending;
        }
    }

    /// Can anything be sent within the peer's limit?
    pub(crate) fn has_pending(&self, limit: u64) -> bool {
        !self.lost.is_empty()
            || self.next < self.written.min(limit)
            || matches!(self.fin, Fin::Lost)
            || (self.fin == Fin::Pending && self.next == self.written)
    }

    /// Does the peer's limit block new bytes?
    pub(crate) const fn blocked(&self, limit: u64) -> bool {
        self.next < self.written && self.next >= limit
    }

    /// The next chunk of at most `room` bytes: lost bytes first, the lowest offset first, then new
    /// bytes below `limit`.
    pub(crate) fn take(&mut self, room: u32, limit: u64) -> Option<SendChunk> {
        let room = u64::from(room);
        if let Some((start, end)) = self.lost.first() {
            let stop = end.min(start + room);
            if stop == start {
                return None;
            }
            self.lost.remove(start, stop);
            let fin = self.fin == Fin::Lost && stop == self.written;
            return Some(self.mark_sent(start, stop, fin, true));
        }
        if self.fin == Fin::Lost {
            return Some(self.mark_sent(self.written, self.written, true, true));
        }
        let stop = self.end_of_new(limit).min(self.next + room);
        let fin = self.fin == Fin::Pending && stop.max(self.next) == self.written;
        if stop <= self.next && !fin {
            return None;
        }
        let start = self.next;
        self.next = stop.max(start);
        Some(self.mark_sent(start, self.next, fin, false))
    }

    /// Bytes that [`SendStream::take`] would return.
    pub(crate) fn peek(&self, room: u32, limit: u64) -> u32 {
        let bytes = match self.lost.first() {
            Some((start, end)) => end - start,
            None => self.end_of_new(limit).saturating_sub(self.next),
        };
        bytes.min(u64::from(room)) as u32
    }

    /// Offset of the bytes that [`SendStream::take`] would return.
    pub(crate) fn peek_offset(&self) -> u64 {
        self.lost.first().map_or(self.next, |(start, _)| start)
    }

    fn mark_sent(&mut self, start: u64, stop: u64, fin: bool, retransmitted: bool) -> SendChunk {
        if fin {
            self.fin = Fin::Sent;
        }
        let chunk = Chunk { offset: start, len: (stop - start) as u32, fin };
        SendChunk { chunk, retransmitted }
    }

    /// Marks a chunk as acknowledged.
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

    /// Marks a chunk for retransmission, after a loss or as a probe.
    pub(crate) fn on_lost(&mut self, chunk: &Chunk) {
        if chunk.fin && self.fin == Fin::Sent {
            self.fin = Fin::Lost;
        }
        let start = chunk.offset.max(self.una);
        self.lost.insert(start, chunk.end().max(start));
        // Another packet may have delivered parts of it.
        let Self { acked, lost, .. } = self;
        for (from, to) in acked.iter() {
            if to > start && from < chunk.end() {
                lost.remove(from, to);
            }
        }
    }

    /// All bytes before it are acknowledged (`snd_una`).
    pub(crate) const fn una(&self) -> u64 {
        self.una
    }

    /// End of the bytes ever sent (`snd_max`).
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes in the send buffer.
    pub(crate) const fn buffered(&self) -> u64 {
        self.written - self.una
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn fin_sent(&self) -> bool {
        matches!(self.fin, Fin::Sent | Fin::Lost | Fin::Acked)
    }

    /// Is everything acknowledged, the FIN too?
    pub(crate) fn is_done(&self) -> bool {
        self.fin == Fin::Acked && self.una == self.written
    }

    /// Has the application closed the stream?
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

    /// quic-go's `Write` returns once its bytes are in frames, and no frame has bytes of two writes.
    #[test]
    fn a_chunk_ends_with_the_write_whose_bytes_it_has() {
        let mut stream = SendStream::new(10_000).in_writes_of(Some(3_000));
        stream.write(7_000);
        let lens = [(); 6].map(|()| stream.take(1_200, u64::MAX).map(|sent| sent.chunk.len));
        assert_eq!(lens, [1_200, 1_200, 600, 1_200, 1_200, 600].map(Some));
        assert_eq!(stream.peek(1_200, u64::MAX), 1_000);
        // What is lost is repeated as it fits.
        stream.on_lost(&chunk(2_400, 600, false));
        stream.on_lost(&chunk(3_000, 1_200, false));
        assert_eq!(stream.take(1_200, u64::MAX).map(|sent| sent.chunk.len), Some(1_200));
    }

    fn taken(stream: &mut SendStream, room: u32) -> Option<(u64, u32, bool, bool)> {
        let send_chunk = stream.take(room, u64::MAX)?;
        Some((
            send_chunk.chunk.offset,
            send_chunk.chunk.len,
            send_chunk.chunk.fin,
            send_chunk.retransmitted,
        ))
    }

    #[test]
    fn lost_bytes_are_sent_first_and_the_lowest_first() {
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
    fn acknowledged_ranges_are_not_retransmitted() {
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
    fn the_fin_is_sent_with_the_last_byte_or_alone_and_retransmitted_if_lost() {
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
        assert_eq!(stream.take(200, 150).map(|send_chunk| send_chunk.chunk.len), Some(150));
        assert!(stream.blocked(150) && !stream.has_pending(150));
        stream.on_lost(&chunk(0, 150, false));
        assert!(stream.has_pending(150));
    }

    #[test]
    fn acknowledgments_free_the_send_buffer() {
        let mut stream = SendStream::new(100);
        assert_eq!([stream.write(80), stream.write(80)], [80, 20]);
        stream.take(100, u64::MAX);
        stream.on_acked(&chunk(50, 50, false));
        assert_eq!(stream.write(80), 0);
        stream.on_acked(&chunk(0, 50, false));
        assert_eq!(stream.write(80), 80);
    }
}
