//! Writes all it has at once, or chunk by chunk.

use core::num::NonZeroU64;

use units::{Bytes, Duration, Instant};

/// A writing application.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    /// Bytes still to be handed over; `None` without end.
    left: Option<u64>,
    /// Bytes of the current write not yet taken by the stack.
    pending: u64,
    calls: Calls,
}

/// How the bytes are divided into write calls.
#[derive(Debug, Clone, Copy)]
enum Calls {
    /// All there is in one call.
    One,
    /// Of that size, each at once after the one before.
    Sized(u64),
    Paced(Pace),
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    chunk: u64,
    every: Duration,
    next: Instant,
}

impl Writer {
    pub(crate) fn bulk(bytes: Option<Bytes>, write: Option<NonZeroU64>) -> Self {
        let calls = write.map_or(Calls::One, |write| Calls::Sized(write.get()));
        Self { left: bytes.map(Bytes::get), pending: 0, calls }
    }

    pub(crate) fn paced(chunk: Bytes, every: Duration, bytes: Option<Bytes>) -> Self {
        let pace = Pace { chunk: chunk.get(), every, next: Instant::ZERO };
        Self { left: bytes.map(Bytes::get), pending: 0, calls: Calls::Paced(pace) }
    }

    /// The connection is established: the first write is due now.
    pub(crate) fn begin(&mut self, now: Instant) {
        if let Calls::Paced(pace) = &mut self.calls {
            pace.next = now;
        }
    }

    /// Bytes to offer to the stack now.
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        let all = self.left.unwrap_or(u64::from(u32::MAX));
        let pace = match &mut self.calls {
            Calls::One => return all,
            Calls::Sized(write) => {
                if self.pending == 0 {
                    self.pending = all.min(*write);
                }
                return self.pending;
            }
            Calls::Paced(pace) => pace,
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
        let left = self.left.map(|left| left.saturating_sub(bytes));
        match self.calls {
            Calls::One => self.left = left,
            Calls::Sized(_) => {
                self.left = left;
                self.pending -= bytes;
            }
            Calls::Paced(_) => self.pending -= bytes,
        }
    }

    /// Has everything been handed over?
    pub(crate) fn done(&self) -> bool {
        self.left == Some(0) && self.pending == 0
    }

    /// When the next write is due, for a paced application with bytes left.
    pub(crate) fn next_write(&self) -> Option<Instant> {
        match self.calls {
            Calls::Paced(pace) if self.left != Some(0) => Some(pace.next),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_writer_offers_the_rest_of_a_write_before_the_next() {
        let mut writer = Writer::bulk(Some(Bytes(250)), NonZeroU64::new(100));
        let mut offers = Vec::new();
        for taken in [60, 40, 100, 50] {
            offers.push(writer.offer(Instant::ZERO));
            writer.taken(taken);
        }
        assert_eq!(offers, [100, 40, 100, 50]);
        assert!(writer.done());
    }

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
