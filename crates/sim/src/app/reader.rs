//! Reads a chunk, then rests.

use units::{Duration, Instant};

use crate::scenario::Reads;

/// An application that reads more slowly than it could. It waits where there is nothing to read.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    chunk: u64,
    every: Duration,
    /// When it may read again.
    next: Instant,
}

impl Reader {
    pub(crate) fn new(reads: Reads) -> Self {
        let every = reads.every.max(Duration::from_nanos(1));
        Self { chunk: reads.chunk.get(), every, next: Instant::ZERO }
    }

    /// What it reads now at most.
    pub(crate) fn most(&self, now: Instant) -> u64 {
        if self.next <= now { self.chunk } else { 0 }
    }

    /// It has read `bytes`.
    pub(crate) fn read(&mut self, now: Instant, bytes: u64) {
        if bytes > 0 {
            self.next = now + self.every;
        }
    }

    /// When it reads again; in the past if it waits for something to read.
    pub(crate) const fn next_read(&self) -> Instant {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    #[test]
    fn a_rest_follows_each_read_and_none_follows_nothing() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let every = Duration::from_millis(20);
        let mut reader = Reader::new(Reads { chunk: Bytes(100), every });
        assert_eq!(reader.most(at(5)), 100);
        reader.read(at(5), 0);
        assert_eq!(reader.most(at(7)), 100);
        reader.read(at(7), 30);
        assert_eq!((reader.most(at(26)), reader.next_read()), (0, at(27)));
        assert_eq!(reader.most(at(27)), 100);
    }
}
