//! Writes all its data at once, or chunk by chunk.

use core::num::NonZeroU64;

use units::{Bytes, Duration, Instant};

/// A writing application.
#[derive(Debug, Clone)]
pub(crate) struct DataWriter {
    /// Bytes still to be accepted by the stack; `None` for unlimited.
    left: Option<u64>,
    /// Bytes of the current write not yet accepted by the stack.
    pending: u64,
    calls: WriteCalls,
}

/// How the data is divided into write calls.
#[derive(Debug, Clone, Copy)]
enum WriteCalls {
    /// All remaining data in one call.
    One,
    /// Calls of this size, back to back.
    Sized(u64),
    Paced(Pace),
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    chunk: u64,
    every: Duration,
    first: Instant,
    next: Instant,
    blocking: bool,
}

impl DataWriter {
    pub(crate) fn bulk(bytes: Option<Bytes>, write: Option<NonZeroU64>) -> Self {
        let calls = write.map_or(WriteCalls::One, |write| WriteCalls::Sized(write.get()));
        Self { left: bytes.map(Bytes::get), pending: 0, calls }
    }

    pub(crate) fn paced(
        chunk: Bytes,
        every: Duration,
        bytes: Option<Bytes>,
        blocking: bool,
    ) -> Self {
        let (first, next) = (Instant::ZERO, Instant::ZERO);
        let pace = Pace { chunk: chunk.get(), every, first, next, blocking };
        Self { left: bytes.map(Bytes::get), pending: 0, calls: WriteCalls::Paced(pace) }
    }

    /// Makes the first paced write due, when the connection is established.
    pub(crate) fn begin(&mut self, now: Instant) {
        if let WriteCalls::Paced(pace) = &mut self.calls {
            (pace.first, pace.next) = (now, now);
        }
    }

    /// When the first paced write was due, and the interval of writes; `None` if it is not paced.
    pub(crate) const fn frames(&self) -> Option<(Instant, Duration)> {
        match self.calls {
            WriteCalls::Paced(pace) => Some((pace.first, pace.every)),
            _ => None,
        }
    }

    /// Bytes to offer to the stack now.
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        let all = self.left.unwrap_or(u64::from(u32::MAX));
        let pace = match &mut self.calls {
            WriteCalls::One => return all,
            WriteCalls::Sized(write) => {
                if self.pending == 0 {
                    self.pending = all.min(*write);
                }
                return self.pending;
            }
            WriteCalls::Paced(pace) => pace,
        };
        let waits = pace.blocking && self.pending > 0;
        while !waits && pace.next <= now && self.left != Some(0) {
            pace.next += pace.every;
            let chunk = self.left.map_or(pace.chunk, |left| left.min(pace.chunk));
            self.left = self.left.map(|left| left - chunk);
            self.pending += chunk;
        }
        self.pending
    }

    /// Called when the stack has accepted `bytes` of the offer.
    pub(crate) fn taken(&mut self, bytes: u64) {
        let left = self.left.map(|left| left.saturating_sub(bytes));
        match self.calls {
            WriteCalls::One => self.left = left,
            WriteCalls::Sized(_) => {
                self.left = left;
                self.pending -= bytes;
            }
            WriteCalls::Paced(_) => self.pending -= bytes,
        }
    }

    /// Returns whether all bytes have been accepted.
    pub(crate) fn done(&self) -> bool {
        self.left == Some(0) && self.pending == 0
    }

    /// Returns when the next write is due, for a paced application with bytes left.
    pub(crate) fn next_write(&self) -> Option<Instant> {
        match self.calls {
            WriteCalls::Paced(pace) if self.left != Some(0) => Some(pace.next),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_writer_offers_the_rest_of_a_write_before_the_next() {
        let mut writer = DataWriter::bulk(Some(Bytes(250)), NonZeroU64::new(100));
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
        let mut writer = DataWriter::paced(Bytes(300), every, Some(Bytes(700)), true);
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

    #[test]
    fn only_a_paced_write_that_does_not_block_takes_what_falls_due() {
        let every = Duration::from_millis(10);
        let mut writer = DataWriter::paced(Bytes(300), every, None, true);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        writer.begin(at(0));
        assert_eq!(writer.offer(at(0)), 300);
        writer.taken(200);
        assert_eq!(writer.offer(at(25)), 100);
        writer.taken(100);
        assert_eq!(writer.offer(at(25)), 600);
        let mut writer = DataWriter::paced(Bytes(300), every, None, false);
        writer.begin(at(0));
        assert_eq!(writer.offer(at(0)), 300);
        writer.taken(200);
        assert_eq!(writer.offer(at(25)), 700);
    }
}
