//! Writes for a while, then rests for a while.

use units::{Bytes, Duration, Instant, Stream};

use crate::scenario::{Burst, Pause};

/// An application that is now on, now off.
#[derive(Debug, Clone)]
pub(crate) struct Bursts {
    on: Burst,
    off: Pause,
    draws: Stream,
    /// Bytes not yet part of a burst; `None` without end.
    left: Option<u64>,
    /// Bytes of the present burst not yet taken by the stack, where bursts are counted in bytes.
    pending: u64,
    /// When the present burst began, or the next one does.
    begins: Instant,
}

impl Bursts {
    pub(crate) fn new(on: Burst, off: Pause, bytes: Option<Bytes>, draws: Stream) -> Self {
        let left = bytes.map(Bytes::get);
        Self { on, off, draws, left, pending: 0, begins: Instant::ZERO }
    }

    /// The connection is established: the first burst begins now.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.begins = now;
    }

    /// Bytes to offer to the stack now.
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        match self.on {
            Burst::Bytes(bytes) => {
                if self.pending == 0 && self.begins <= now {
                    self.pending = self.left.map_or(bytes.get(), |left| left.min(bytes.get()));
                    self.left = self.left.map(|left| left - self.pending);
                }
                self.pending
            }
            Burst::For(span) => {
                while self.ends(span) <= now {
                    self.begins = self.ends(span) + self.pause();
                }
                let all = self.left.unwrap_or(u64::from(u32::MAX));
                if self.begins <= now { all } else { 0 }
            }
        }
    }

    /// The stack has taken `bytes` of what was offered.
    pub(crate) fn taken(&mut self, now: Instant, bytes: u64) {
        match self.on {
            Burst::Bytes(_) => {
                self.pending -= bytes;
                if self.pending == 0 {
                    self.begins = now + self.pause();
                }
            }
            Burst::For(_) => self.left = self.left.map(|left| left - bytes),
        }
    }

    /// Has everything been handed over?
    pub(crate) fn done(&self) -> bool {
        self.left == Some(0) && self.pending == 0
    }

    /// When it will have something to write though nothing was said to it. Amid a burst it has
    /// offered all it has, and the stack says when there is room.
    pub(crate) fn next_write(&self, now: Instant) -> Option<Instant> {
        let waits = self.pending > 0 || self.begins <= now;
        (!waits && !self.done()).then_some(self.begins)
    }

    /// The end of a burst that lasts for `span`, which is some time at least.
    fn ends(&self, span: Duration) -> Instant {
        self.begins + span.max(Duration::from_nanos(1))
    }

    /// One draw where it is left to chance.
    fn pause(&mut self) -> Duration {
        match self.off {
            Pause::Fixed(span) => span,
            Pause::Between { least, most } => {
                let width = most.saturating_sub(least).as_nanos().saturating_add(1);
                least + Duration::from_nanos(self.draws.below(width))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn bursts(on: Burst, off: Pause, bytes: Option<u64>) -> Bursts {
        let mut bursts = Bursts::new(on, off, bytes.map(Bytes), Stream::named(1, "test", "pause"));
        bursts.begin(at(5));
        bursts
    }

    #[test]
    fn bursts_of_bytes_end_when_the_stack_has_them() {
        let mut bursts = bursts(Burst::Bytes(Bytes(300)), Pause::Fixed(ms(10)), Some(500));
        assert_eq!(bursts.offer(at(5)), 300);
        bursts.taken(at(5), 100);
        assert_eq!((bursts.offer(at(7)), bursts.next_write(at(7))), (200, None));
        bursts.taken(at(7), 200);
        assert_eq!((bursts.offer(at(16)), bursts.next_write(at(16))), (0, Some(at(17))));
        assert_eq!(bursts.offer(at(17)), 200);
        assert!(!bursts.done());
        bursts.taken(at(17), 200);
        assert_eq!((bursts.done(), bursts.next_write(at(17))), (true, None));
    }

    #[test]
    fn bursts_of_time_end_whatever_the_stack_took() {
        let mut bursts = bursts(Burst::For(ms(20)), Pause::Fixed(ms(10)), Some(5_000));
        assert_eq!((bursts.offer(at(5)), bursts.next_write(at(5))), (5_000, None));
        bursts.taken(at(5), 1_000);
        assert_eq!(bursts.offer(at(24)), 4_000);
        assert_eq!((bursts.offer(at(25)), bursts.next_write(at(25))), (0, Some(at(35))));
        assert_eq!(bursts.offer(at(34)), 0);
        // On from 35 to 55, from 65 to 85, from 95 on.
        assert_eq!((bursts.offer(at(90)), bursts.next_write(at(90))), (0, Some(at(95))));
        assert_eq!(bursts.offer(at(95)), 4_000);
        bursts.taken(at(95), 4_000);
        assert!(bursts.done());
    }

    #[test]
    fn pauses_by_chance_lie_between_their_bounds() {
        let off = Pause::Between { least: Duration::from_nanos(3), most: Duration::from_nanos(6) };
        let mut bursts = bursts(Burst::Bytes(Bytes(1)), off, None);
        let mut seen = [0_u32; 7];
        let mut now = at(5);
        for _ in 0..40_000 {
            assert_eq!(bursts.offer(now), 1);
            bursts.taken(now, 1);
            let next = bursts.next_write(now).unwrap();
            seen[next.since(now).as_nanos() as usize] += 1;
            now = next;
        }
        // Binomial: mean 10,000, variance 7,500; four standard deviations are 346.
        assert_eq!(seen[..3], [0; 3]);
        assert!(seen[3..].iter().all(|count| count.abs_diff(10_000) <= 346), "{seen:?}");
    }
}
