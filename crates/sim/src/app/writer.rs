//! Writes all it has at once, or chunk by chunk.

use units::{Bytes, Duration, Instant};

/// A writing application.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    /// Bytes still to be handed over; `None` without end.
    left: Option<u64>,
    /// Bytes of the current write not yet taken by the stack.
    pending: u64,
    pace: Option<Pace>,
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    chunk: u64,
    every: Duration,
    next: Instant,
}

impl Writer {
    pub(crate) fn bulk(bytes: Option<Bytes>) -> Self {
        Self { left: bytes.map(Bytes::get), pending: 0, pace: None }
    }

    pub(crate) fn paced(chunk: Bytes, every: Duration, bytes: Option<Bytes>) -> Self {
        let pace = Pace { chunk: chunk.get(), every, next: Instant::ZERO };
        Self { left: bytes.map(Bytes::get), pending: 0, pace: Some(pace) }
    }

    /// The connection is established: the first write is due now.
    pub(crate) fn begin(&mut self, now: Instant) {
        if let Some(pace) = &mut self.pace {
            pace.next = now;
        }
    }

    /// Bytes to offer to the stack now.
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        let Some(pace) = &mut self.pace else {
            return self.left.unwrap_or(u64::from(u32::MAX));
        };
        while pace.next <= now && self.left != Some(0) {
            pace.next += pace.every;
            let chunk = self.left.map_or(pace.chunk, |left| left.min(pace.chunk));
            self.left = self.left.map(|left| left - chunk);
            self.pending += chunk;
        }
        self.pending
    }

    /// The stack has taken `bytes` of what was offered.
    pub(crate) fn taken(&mut self, bytes: u64) {
        if self.pace.is_some() {
            self.pending -= bytes;
        } else {
            self.left = self.left.map(|left| left - bytes);
        }
    }

    /// Has everything been handed over?
    pub(crate) fn done(&self) -> bool {
        self.left == Some(0) && self.pending == 0
    }

    /// When the next write is due, for a paced application with bytes left.
    pub(crate) fn next_write(&self) -> Option<Instant> {
        self.pace.filter(|_| self.left != Some(0)).map(|pace| pace.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_writer_writes_chunks_and_stops_at_its_end() {
        let every = Duration::from_millis(10);
        let mut writer = Writer::paced(Bytes(300), every, Some(Bytes(700)));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        writer.begin(at(5));
        assert_eq!(writer.offer(at(5)), 300);
        writer.taken(300);
        assert_eq!((writer.offer(at(14)), writer.next_write()), (0, Some(at(15))));
        // The stack was busy: two writes wait, the last one short.
        assert_eq!(writer.offer(at(25)), 400);
        assert!(!writer.done());
        writer.taken(400);
        assert!(writer.done());
        assert_eq!(writer.next_write(), None);
    }
}
