//! Threads for independent work: the results are in the order of the items, whatever the number of
//! threads.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

use crate::stop::{NEVER, StopFlag};

/// A number of threads that nested calls of [`Workers::map`] share.
#[derive(Debug)]
pub struct Workers<'a> {
    stop: StopFlag<'a>,
    /// Threads that may be started, or go on.
    idle: Mutex<usize>,
    freed: Condvar,
}

impl<'a> Workers<'a> {
    /// This many threads, the caller's included; their runs end once `stop` is set.
    pub const fn new(threads: NonZeroUsize, stop: StopFlag<'a>) -> Self {
        Self { stop, idle: Mutex::new(threads.get() - 1), freed: Condvar::new() }
    }

    /// The flag that ends runs.
    pub const fn stop(&self) -> StopFlag<'a> {
        self.stop
    }

    /// Does the work of each item. Idle threads take part, those that become idle later too.
    ///
    /// # Errors
    /// The first error in the order of the items. No item is begun after an error.
    pub fn map<T: Sync, R: Send, E: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        let shared = SharedItems {
            items,
            work,
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            results: items.iter().map(|_| Mutex::new(None)).collect(),
        };
        let helped = thread::scope(|scope| {
            let helped = self.take_part(scope, &shared);
            if helped {
                // This thread waits for its helpers, and another may work in its place.
                self.give_back();
            }
            helped
        });
        if helped {
            self.wait_for_idle();
        }
        // Items before one with an error have been begun, and so they have results.
        let results = shared.results.into_iter();
        results.map_while(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Works until no item is left; returns whether helpers were started.
    fn take_part<'scope, T: Sync, R: Send, E: Send, W: Fn(&T) -> Result<R, E> + Sync>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        shared: &'scope SharedItems<'_, T, R, E, W>,
    ) -> bool {
        let mut helped = false;
        while let Some(at) = shared.take() {
            if shared.has_more() && self.take_idle() {
                helped = true;
                scope.spawn(move || {
                    self.take_part(scope, shared);
                    self.give_back();
                });
            }
            shared.finish(at);
        }
        helped
    }

    fn idle(&self) -> MutexGuard<'_, usize> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> bool {
        let mut idle = self.idle();
        let is_one = *idle > 0;
        *idle -= usize::from(is_one);
        is_one
    }

    fn give_back(&self) {
        *self.idle() += 1;
        self.freed.notify_one();
    }

    fn wait_for_idle(&self) {
        let idle = self.freed.wait_while(self.idle(), |idle| *idle == 0);
        *idle.unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

impl Workers<'static> {
    /// The caller's thread alone.
    pub const fn one() -> Self {
        Self::new(NonZeroUsize::MIN, &NEVER)
    }
}

/// The items of a call of [`Workers::map`].
struct SharedItems<'i, T, R, E, W> {
    items: &'i [T],
    work: W,
    next: AtomicUsize,
    failed: AtomicBool,
    results: Vec<Mutex<Option<Result<R, E>>>>,
}

impl<T, R, E, W: Fn(&T) -> Result<R, E>> SharedItems<'_, T, R, E, W> {
    fn take(&self) -> Option<usize> {
        if self.failed.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < self.items.len())
    }

    fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.items.len()
    }

    fn finish(&self, at: usize) {
        let result = (self.work)(&self.items[at]);
        self.failed.fetch_or(result.is_err(), Ordering::Relaxed);
        *self.results[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(threads: usize) -> Workers<'static> {
        Workers::new(NonZeroUsize::new(threads).unwrap(), &NEVER)
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7] {
            let doubled = workers(threads).map(&items, |n| Ok::<_, ()>(2 * n)).unwrap();
            assert_eq!(doubled, items.iter().map(|n| 2 * n).collect::<Vec<_>>());
        }
        assert_eq!(workers(3).map(&[0_u64; 0], |n| Ok::<_, ()>(*n)), Ok(Vec::new()));
    }

    #[test]
    fn nested_calls_share_the_threads() {
        for threads in [1, 2, 4] {
            let workers = workers(threads);
            let (working, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let sum = |of: &u64| {
                let parts = workers.map(&[1, 2, 3, 4, 5], |part| {
                    let now = working.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    thread::yield_now();
                    working.fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, ()>(of * part)
                });
                parts.map(|parts| parts.iter().sum::<u64>())
            };
            let sums = workers.map(&(0..50).collect::<Vec<u64>>(), sum).unwrap();
            assert_eq!(sums, (0..50).map(|n| 15 * n).collect::<Vec<_>>());
            assert!(most.into_inner() <= threads);
            // All are idle again.
            assert_eq!(*workers.idle(), threads - 1);
        }
    }

    #[test]
    fn the_first_error_in_the_order_of_the_items_is_returned() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [1, 2, 7] {
            let fails = |n: &u64| if n % 10 == 7 { Err(*n) } else { Ok(*n) };
            let workers = workers(threads);
            assert_eq!(workers.map(&items, fails), Err(7));
            assert_eq!(*workers.idle(), threads - 1);
        }
    }
}
