//! What happens next: a short sorted front, and a monotone radix queue behind it.
//!
//! Entries are plain values with a time. Those due next stand sorted in the front, where most
//! worlds have all of theirs; the rest lie in buckets by the highest bit in which their time
//! differs from the end of the front (Ahuja, Mehlhorn, Orlin and Tarjan 1990: time never runs
//! back). Equal instants leave in the order they came, by construction: an entry goes behind its
//! equals in the front, equals behind the front always lie in one bucket, and buckets are only
//! ever appended to and emptied from their beginning.

use core::cmp::Reverse;
use core::hint::cold_path;

use units::Instant;

const BUCKETS: usize = 64;
/// So many entries may be sorted into the front at a time.
const FEW: usize = 32;
/// So many may gather there before the later half goes back.
const MANY: usize = 4 * FEW;

/// Entries ordered by time, first in first out among equals.
#[derive(Debug, Clone)]
pub struct Calendar<T> {
    /// Entries up to `reach`, the next one last: the first `due` places of a row as long as was ever
    /// needed, so that to add one is to write one.
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
    /// Entries behind the front.
    behind: usize,
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
            front: Vec::new(),
            due: 0,
            buckets: (0..BUCKETS).map(|_| Vec::new()).collect(),
            occupied: 0,
            reach: Instant::MAX,
            last: Instant::ZERO,
            behind: 0,
        }
    }

    /// Entries that wait.
    pub fn len(&self) -> usize {
        self.due + self.behind
    }

    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// If `at` lies before the last entry taken: time does not run back.
    #[inline]
    pub fn push(&mut self, at: Instant, what: T) {
        let due = self.due;
        if at < self.last || at > self.reach || due >= MANY {
            return self.push_elsewhere(at, what);
        }
        let Some(front) = self.front.get_mut(..=due) else {
            cold_path();
            return self.push_elsewhere(at, what);
        };
        // The next due stands last: the place is near the end.
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

    /// Adds an entry where the front has no room for it, or does not reach so far.
    #[inline(never)]
    fn push_elsewhere(&mut self, at: Instant, what: T) {
        assert!(at >= self.last, "entry at {at:?} is before the present {:?}", self.last);
        if at > self.reach {
            self.put(at, what);
            return;
        }
        if self.due == self.front.len() {
            self.lengthen((at, what));
        }
        let place = self.front[..self.due].partition_point(|entry| entry.0 > at);
        self.front.copy_within(place..self.due, place + 1);
        self.front[place] = (at, what);
        self.due += 1;
        if self.due > MANY {
            self.shorten();
        }
    }

    /// The front gets more places, which hold anything.
    #[cold]
    fn lengthen(&mut self, anything: (Instant, T)) {
        let places = (2 * self.front.len()).max(MANY + 1);
        self.front.resize(places, anything);
    }

    /// Adds an entry beyond the front.
    fn put(&mut self, at: Instant, what: T) {
        self.behind += 1;
        let differing = at.as_nanos() ^ self.reach.as_nanos();
        let bucket = differing.ilog2() as usize;
        self.occupied |= 1 << bucket;
        self.buckets[bucket].push((at, what));
    }

    /// Takes the earliest entry; among equals the one that came first.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        let entry = *self.due_until(Instant::MAX)?;
        self.take(entry.0);
        Some(entry)
    }

    /// The earliest entry, if it is due at `end` or before. To look and to take are two steps, so that
    /// nothing has to tell an entry from none by what it holds.
    #[inline(always)]
    pub fn due_until(&mut self, end: Instant) -> Option<&(Instant, T)> {
        if self.due == 0 {
            self.refill();
        }
        self.front.get(self.due.wrapping_sub(1)).filter(|entry| entry.0 <= end)
    }

    /// Takes the entry that [`Calendar::due_until`] has shown, which is due `at` that time.
    #[inline(always)]
    pub fn take(&mut self, at: Instant) {
        self.due -= 1;
        self.last = at;
    }

    /// Time of the earliest entry.
    pub fn next_at(&mut self) -> Option<Instant> {
        if self.due == 0 {
            self.refill();
        }
        self.due.checked_sub(1).map(|last| self.front[last].0)
    }

    /// Fills the empty front from the lowest bucket, or with all there is if that is little.
    fn refill(&mut self) {
        while self.occupied != 0 {
            let lowest = self.occupied.trailing_zeros() as usize;
            // The bucket gets its own room back below: entries only go to lower ones.
            let mut entries = core::mem::take(&mut self.buckets[lowest]);
            self.occupied &= self.occupied - 1;
            let few = entries.len() <= FEW;
            // All of the bucket share the bits above, and differ from `reach` in this one.
            let range = (1_u64 << lowest) | ((1 << lowest) - 1);
            let reach = self.reach.as_nanos();
            let first = entries.iter().map(|entry| entry.0).min().unwrap_or(self.last);
            self.reach = if few { Instant::from_nanos(reach | range) } else { first };
            self.behind -= entries.len();
            // From the last to the first, since the front stands in reverse.
            for &(at, what) in entries.iter().rev() {
                if at <= self.reach {
                    if self.due == self.front.len() {
                        self.lengthen((at, what));
                    }
                    self.front[self.due] = (at, what);
                    self.due += 1;
                }
            }
            for &(at, what) in &entries {
                if at > self.reach {
                    self.put(at, what);
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
            // Nothing lies behind: whatever comes next belongs in the front.
            self.reach = Instant::MAX;
        }
    }

    /// Too much has gathered in the front: its later half goes into the buckets.
    #[cold]
    fn shorten(&mut self) {
        let front = &self.front[..self.due];
        let middle = front[self.due / 2].0;
        let later = front.partition_point(|entry| entry.0 >= middle);
        if later == self.due {
            // All of the first half are due at one instant.
            return;
        }
        // Everything behind the front finds its place anew. Equals stay in order: the front's
        // own are earlier than all others, and those of one bucket move in their order.
        let mut behind: Vec<(Instant, T)> = front[..later].iter().rev().copied().collect();
        self.front.copy_within(later..self.due, 0);
        self.due -= later;
        for bucket in &mut self.buckets {
            behind.append(bucket);
        }
        (self.occupied, self.behind) = (0, 0);
        self.reach = Instant::from_nanos(middle.as_nanos() - 1);
        for (at, what) in behind {
            self.put(at, what);
        }
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

    /// Random work, held to a list in stable order by (time, arrival). `pushes` of ten steps add
    /// an entry up to 2^`bits` ns ahead, of which the low `coarse` bits are zero.
    fn agrees_with_a_sorted_list(pushes: u64, bits: u64, coarse: u32) {
        let mut stream = Stream::named(1, "calendar", "test");
        let mut calendar = Calendar::new();
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
                    // To ask changes nothing.
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
    fn time_does_not_run_back() {
        let mut calendar = Calendar::new();
        calendar.push(at(10), ());
        calendar.pop();
        calendar.push(at(9), ());
    }
}
