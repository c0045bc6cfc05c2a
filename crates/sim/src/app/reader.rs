//! Reads a chunk, then pauses.

use units::{Duration, Instant};

use crate::scenario::ReadPattern;

/// An application that reads slowly. It waits if there is no data.
#[derive(Debug, Clone)]
pub(crate) struct PacedReader {
    chunk: u64,
    every: Duration,
    /// Time of the next read.
    next: Instant,
}

impl PacedReader {
    pub(crate) fn new(reads: ReadPattern) -> Self {
        let every = reads.every.max(Duration::from_nanos(1));
        Self { chunk: reads.chunk.get(), every, next: Instant::ZERO }
    }

    /// Maximum bytes to read now.
    pub(crate) fn most(&self, now: Instant) -> u64 {
        if self.next <= now { self.chunk } else { 0 }
    }

    /// Called when `bytes` were read.
    pub(crate) fn read(&mut self, now: Instant, bytes: u64) {
        if bytes > 0 {
            self.next = now + self.every;
        }
    }

    /// Returns when it reads next; a past time if it waits for data.
    pub(crate) const fn next_read(&self) -> Instant {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    #[test]
    fn a_pause_follows_each_read_of_data() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let every = Duration::from_millis(20);
        let mut reader = PacedReader::new(ReadPattern { chunk: Bytes(100), every });
        assert_eq!(reader.most(at(5)), 100);
        reader.read(at(5), 0);
        assert_eq!(reader.most(at(7)), 100);
        reader.read(at(7), 30);
        assert_eq!((reader.most(at(26)), reader.next_read()), (0, at(27)));
        assert_eq!(reader.most(at(27)), 100);
    }
}
