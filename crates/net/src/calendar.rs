//! What happens next: a monotone radix queue.
//!
//! Entries are plain values with a time. Time never runs back, so an entry's bucket is the
//! highest bit in which its time differs from the last one taken (Ahuja, Mehlhorn, Orlin and
//! Tarjan 1990). Equal instants leave in the order they came, by construction: they always lie
//! in the same bucket, and buckets are only ever appended to and emptied from the front.

use units::Instant;

const BUCKETS: usize = 65;

/// Entries ordered by time, first in first out among equals.
#[derive(Debug, Clone)]
pub struct Calendar<T> {
    /// Bucket 0 holds entries at `last` itself; bucket b those that differ first in bit b - 1.
    buckets: Vec<Vec<(Instant, T)>>,
    /// Bit b - 1 is set if bucket b holds entries.
    occupied: u64,
    /// Place of the next entry to leave bucket 0.
    head: usize,
    /// Time of the last entry taken.
    last: Instant,
    len: usize,
}

impl<T: Copy> Default for Calendar<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Calendar<T> {
    /// An empty calendar at the beginning of time.
    pub fn new() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            occupied: 0,
            head: 0,
            last: Instant::ZERO,
            len: 0,
        }
    }

    /// Entries that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn bucket_of(&self, at: Instant) -> usize {
        let differing = at.as_nanos() ^ self.last.as_nanos();
        (u64::BITS - differing.leading_zeros()) as usize
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// If `at` lies before the last entry taken: time does not run back.
    #[inline]
    pub fn push(&mut self, at: Instant, what: T) {
        assert!(at >= self.last, "entry at {at:?} is before the present {:?}", self.last);
        self.put(at, what);
        self.len += 1;
    }

    #[inline]
    fn put(&mut self, at: Instant, what: T) {
        let bucket = self.bucket_of(at);
        if bucket > 0 {
            self.occupied |= 1 << (bucket - 1);
        }
        self.buckets[bucket].push((at, what));
    }

    /// Takes the earliest entry; among equals the one that came first.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        if self.len == 0 {
            return None;
        }
        if self.head == self.buckets[0].len() {
            self.refill();
        }
        let entry = self.buckets[0][self.head];
        self.head += 1;
        self.len -= 1;
        Some(entry)
    }

    /// Empties bucket 0 and spreads the lowest bucket that has entries over those below it.
    fn refill(&mut self) {
        self.buckets[0].clear();
        self.head = 0;
        if self.occupied == 0 {
            return;
        }
        let lowest = self.occupied.trailing_zeros() as usize + 1;
        self.occupied &= self.occupied - 1;
        // The bucket gets its own room back below: entries only go to lower ones.
        let mut entries = core::mem::take(&mut self.buckets[lowest]);
        self.last = entries.iter().map(|entry| entry.0).min().unwrap_or(self.last);
        for &(at, what) in &entries {
            self.put(at, what);
        }
        entries.clear();
        self.buckets[lowest] = entries;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Duration, Stream};

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn equal_instants_leave_in_the_order_they_came() {
        let mut calendar = Calendar::new();
        for n in 0..5 {
            calendar.push(at(1_000), n);
        }
        calendar.push(at(10), 100);
        assert_eq!(calendar.pop(), Some((at(10), 100)));
        // Another arrives later, when `last` has moved and the bucket is another one.
        calendar.push(at(1_000), 5);
        let order: Vec<_> = core::iter::from_fn(|| calendar.pop()).map(|e| e.1).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn agrees_with_a_sorted_list_on_random_work() {
        let mut stream = Stream::named(1, "calendar", "test");
        let mut calendar = Calendar::new();
        // Reference: stable order by (time, arrival).
        let mut waiting: Vec<(Instant, u64)> = Vec::new();
        let mut now = Instant::ZERO;
        for n in 0..20_000 {
            if stream.below(5) < 3 {
                let ahead = 1 << stream.below(40);
                let when = now + Duration::from_nanos(stream.below(ahead));
                calendar.push(when, n);
                waiting.push((when, n));
            } else if let Some(first) = waiting.iter().copied().min_by_key(|e| (e.0, e.1)) {
                waiting.retain(|entry| *entry != first);
                assert_eq!(calendar.pop(), Some(first));
                now = first.0;
            }
            assert_eq!(calendar.len(), waiting.len());
        }
    }

    #[test]
    #[should_panic(expected = "before the present")]
    fn time_does_not_run_back() {
        let mut calendar = Calendar::new();
        calendar.push(at(10), ());
        calendar.pop();
        calendar.push(at(9), ());
    }
}
