//! Event queue: a short sorted front, and a monotone radix heap for later entries.
//!
//! Entries are plain values with a time. The earliest ones are sorted in the front, which in most
//! simulations holds all entries; the rest are in buckets by the highest bit in which their time
//! differs from the end of the front (Ahuja, Mehlhorn, Orlin and Tarjan 1990: time is monotone).
//! Entries of equal time leave in order of insertion, by construction: an entry is inserted after
//! its equals in the front, equals beyond the front are always in one bucket, and buckets are only
//! appended to and drained from their start.

use core::cmp::Reverse;
use core::hint::cold_path;

use units::Instant;

const BUCKETS: usize = 64;
/// Largest number of entries sorted into the front at a time.
const REFILL_MAX: usize = 32;
/// Length of the front at which its later half moves to the buckets.
const FRONT_MAX: usize = 4 * REFILL_MAX;

/// Entries ordered by time, first in first out among equals.
#[derive(Debug, Clone)]
pub struct EventQueue<T> {
    /// Entries up to `reach`, the earliest last: the first `due` elements of a vector that never
    /// shrinks, so an insertion is one write.
    front: Vec<(Instant, T)>,
    due: usize,
    /// Entries beyond `reach`; bucket b holds those whose time differs from it first in bit b.
    buckets: Vec<Vec<(Instant, T)>>,
    /// Bit b is set if bucket b holds entries.
    occupied: u64,
    /// Latest time that belongs in the front.
    reach: Instant,
    /// Time of the last entry taken.
    last: Instant,
    /// Number of entries in the buckets.
    bucketed: usize,
}

impl<T: Copy> Default for EventQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> EventQueue<T> {
    /// Creates an empty queue at time zero.
    pub fn new() -> Self {
        Self {
            front: Vec::new(),
            due: 0,
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            occupied: 0,
            reach: Instant::MAX,
            last: Instant::ZERO,
            bucketed: 0,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.due + self.bucketed
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// If `at` is before the last entry taken: time is monotone.
    #[inline]
    pub fn push(&mut self, at: Instant, what: T) {
        let due = self.due;
        if at < self.last || at > self.reach || due >= FRONT_MAX {
            return self.push_slow(at, what);
        }
        let Some(front) = self.front.get_mut(..=due) else {
            cold_path();
            return self.push_slow(at, what);
        };
        // The earliest entry is last, so the position is near the end.
        let mut rest = front;
        while let [.., before, free] = rest
            && before.0 <= at
        {
            *free = *before;
            let shorter = rest.len() - 1;
            rest = &mut rest[..shorter];
        }
        if let [.., free] = rest {
            *free = (at, what);
        }
        self.due = due + 1;
    }

    /// Adds an entry when the front is full or does not reach to its time.
    fn push_slow(&mut self, at: Instant, what: T) {
        assert!(at >= self.last, "entry at {at:?} is before the present {:?}", self.last);
        if at > self.reach {
            self.push_bucket(at, what);
            return;
        }
        if self.due == self.front.len() {
            self.grow_front((at, what));
        }
        let place = self.front[..self.due].partition_point(|entry| entry.0 > at);
        self.front.copy_within(place..self.due, place + 1);
        self.front[place] = (at, what);
        self.due += 1;
        if self.due > FRONT_MAX {
            self.spill_front();
        }
    }

    /// Allocates more slots for the front, filled with any value.
    #[cold]
    fn grow_front(&mut self, anything: (Instant, T)) {
        let places = (2 * self.front.len()).max(FRONT_MAX + 1);
        self.front.resize(places, anything);
    }

    /// Adds an entry beyond the front.
    fn push_bucket(&mut self, at: Instant, what: T) {
        self.bucketed += 1;
        let differing = at.as_nanos() ^ self.reach.as_nanos();
        let bucket = differing.ilog2() as usize;
        self.occupied |= 1 << bucket;
        self.buckets[bucket].push((at, what));
    }

    /// Takes the earliest entry; among equals the one inserted first.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        let entry = *self.due_until(Instant::MAX)?;
        self.take(entry.0);
        Some(entry)
    }

    /// Returns the earliest entry if it is due at `end` or before. Looking and taking are two
    /// steps, so that the caller need not encode "no entry" in the entry type.
    #[inline(always)]
    pub fn due_until(&mut self, end: Instant) -> Option<&(Instant, T)> {
        if self.due == 0 {
            self.refill();
        }
        self.front.get(self.due.wrapping_sub(1)).filter(|entry| entry.0 <= end)
    }

    /// Removes the entry that [`EventQueue::due_until`] returned, which is due `at` that time.
    #[inline(always)]
    pub fn take(&mut self, at: Instant) {
        self.due -= 1;
        self.last = at;
    }

    /// Returns the time of the earliest entry.
    pub fn next_at(&mut self) -> Option<Instant> {
        if self.due == 0 {
            self.refill();
        }
        self.due.checked_sub(1).map(|last| self.front[last].0)
    }

    /// Fills the empty front from the lowest bucket, or with all entries if there are few.
    fn refill(&mut self) {
        while self.occupied != 0 {
            let lowest = self.occupied.trailing_zeros() as usize;
            // The bucket gets its allocation back below: entries only move to lower buckets.
            let mut entries = core::mem::take(&mut self.buckets[lowest]);
            self.occupied &= self.occupied - 1;
            let few = entries.len() <= REFILL_MAX;
            // All entries of the bucket share the higher bits, and differ from `reach` in this one.
            let range = (1_u64 << lowest) | ((1 << lowest) - 1);
            let reach = self.reach.as_nanos();
            let first = entries.iter().map(|entry| entry.0).min().unwrap_or(self.last);
            self.reach = if few { Instant::from_nanos(reach | range) } else { first };
            self.bucketed -= entries.len();
            // From the last to the first, since the front is in reverse order.
            for &(at, what) in entries.iter().rev() {
                if at <= self.reach {
                    if self.due == self.front.len() {
                        self.grow_front((at, what));
                    }
                    self.front[self.due] = (at, what);
                    self.due += 1;
                }
            }
            for &(at, what) in &entries {
                if at > self.reach {
                    self.push_bucket(at, what);
                }
            }
            entries.clear();
            self.buckets[lowest] = entries;
            self.front[..self.due].sort_by_key(|entry| Reverse(entry.0));
            if self.due > 0 {
                break;
            }
        }
        if self.occupied == 0 {
            // The buckets are empty: any later entry belongs in the front.
            self.reach = Instant::MAX;
        }
    }

    /// Moves the later half of an overlong front to the buckets.
    #[cold]
    fn spill_front(&mut self) {
        let front = &self.front[..self.due];
        let middle = front[self.due / 2].0;
        let later = front.partition_point(|entry| entry.0 >= middle);
        if later == self.due {
            // The first half of the entries are all due at one instant.
            return;
        }
        // All entries beyond the front are distributed again. Equals stay in order: those from the
        // front are earlier than all others, and those of one bucket move in their order.
        let mut behind: Vec<(Instant, T)> = front[..later].iter().rev().copied().collect();
        self.front.copy_within(later..self.due, 0);
        self.due -= later;
        for bucket in &mut self.buckets {
            behind.append(bucket);
        }
        (self.occupied, self.bucketed) = (0, 0);
        self.reach = Instant::from_nanos(middle.as_nanos() - 1);
        for (at, what) in behind {
            self.push_bucket(at, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Duration, RandomStream};

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn equal_instants_leave_in_the_order_they_came() {
        let mut calendar = EventQueue::new();
        for n in 0..5 {
            calendar.push(at(1_000), n);
        }
        calendar.push(at(10), 100);
        assert_eq!(calendar.pop(), Some((at(10), 100)));
        // A later insertion at the same time, after `last` moved, goes to another bucket.
        calendar.push(at(1_000), 5);
        let order: Vec<_> = core::iter::from_fn(|| calendar.pop()).map(|e| e.1).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    }

    /// Compares random operations with a list in stable order by (time, insertion). `pushes` of ten
    /// steps add an entry up to 2^`bits` ns ahead, of which the low `coarse` bits are zero.
    fn agrees_with_a_sorted_list(pushes: u64, bits: u64, coarse: u32) {
        let mut stream = RandomStream::named(1, "calendar", "test");
        let mut calendar = EventQueue::new();
        let mut waiting = std::collections::BTreeSet::new();
        let mut now = Instant::ZERO;
        for n in 0..20_000 {
            if stream.below(10) < pushes {
                let most = 1 << stream.below(bits);
                let ahead = stream.below(most) >> coarse << coarse;
                let when = now + Duration::from_nanos(ahead);
                calendar.push(when, n);
                waiting.insert((when, n));
            } else {
                if n % 3 == 0 {
                    // A query changes nothing.
                    assert_eq!(calendar.next_at(), waiting.first().map(|first| first.0));
                }
                let first = waiting.pop_first();
                assert_eq!(calendar.pop(), first);
                now = first.map_or(now, |entry| entry.0);
            }
            assert_eq!(calendar.len(), waiting.len());
        }
        while let Some(first) = waiting.pop_first() {
            assert_eq!(calendar.pop(), Some(first));
        }
        assert_eq!(calendar.pop(), None);
    }

    #[test]
    fn agrees_with_a_sorted_list_on_random_work() {
        for pushes in [5, 6, 9] {
            agrees_with_a_sorted_list(pushes, 40, 0);
            agrees_with_a_sorted_list(pushes, 14, 0);
            // Many at the same instants.
            agrees_with_a_sorted_list(pushes, 20, 17);
            agrees_with_a_sorted_list(pushes, 8, 7);
        }
    }

    #[test]
    #[should_panic(expected = "before the present")]
    fn time_is_monotone() {
        let mut calendar = EventQueue::new();
        calendar.push(at(10), ());
        calendar.pop();
        calendar.push(at(9), ());
    }
}
