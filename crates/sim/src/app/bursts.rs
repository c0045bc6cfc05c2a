//! An on-off source: writes for a period, then pauses.

use units::{Bytes, Duration, Instant, RandomStream};

use crate::scenario::{OnPeriod, Pause};

/// An application that alternates between on and off periods.
#[derive(Debug, Clone)]
pub(crate) struct OnOffWriter {
    on: OnPeriod,
    off: Pause,
    draws: RandomStream,
    /// Bytes not yet part of an on period; `None` for unlimited.
    left: Option<u64>,
    /// Bytes of the current on period not yet accepted by the stack, if periods are counted in
    /// bytes.
    pending: u64,
    /// Start of the current on period, or of the next.
    begins: Instant,
}

impl OnOffWriter {
    pub(crate) fn new(on: OnPeriod, off: Pause, bytes: Option<Bytes>, draws: RandomStream) -> Self {
        let left = bytes.map(Bytes::get);
        Self { on, off, draws, left, pending: 0, begins: Instant::ZERO }
    }

    /// Starts the first on period, when the connection is established.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.begins = now;
    }

    /// Bytes to offer to the stack now.
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        match self.on {
            OnPeriod::Bytes(bytes) => {
                if self.pending == 0 && self.begins <= now {
                    self.pending = self.left.map_or(bytes.get(), |left| left.min(bytes.get()));
                    self.left = self.left.map(|left| left - self.pending);
                }
                self.pending
            }
            OnPeriod::For(span) => {
                while self.ends(span) <= now {
                    self.begins = self.ends(span) + self.pause();
                }
                let all = self.left.unwrap_or(u64::from(u32::MAX));
                if self.begins <= now { all } else { 0 }
            }
        }
    }

    /// Called when the stack has accepted `bytes` of the offer.
    pub(crate) fn taken(&mut self, now: Instant, bytes: u64) {
        match self.on {
            OnPeriod::Bytes(_) => {
                self.pending -= bytes;
                if self.pending == 0 {
                    self.begins = now + self.pause();
                }
            }
            OnPeriod::For(_) => self.left = self.left.map(|left| left - bytes),
        }
    }

    /// Returns whether all bytes have been accepted.
    pub(crate) fn done(&self) -> bool {
        self.left == Some(0) && self.pending == 0
    }

    /// Returns when it will have data to write. Within an on period it has offered all its data,
    /// and the stack signals free space.
    pub(crate) fn next_write(&self, now: Instant) -> Option<Instant> {
        let waits = self.pending > 0 || self.begins <= now;
        (!waits && !self.done()).then_some(self.begins)
    }

    /// End of an on period of `span`, at least 1 ns.
    fn ends(&self, span: Duration) -> Instant {
        self.begins + span.max(Duration::from_nanos(1))
    }

    /// Draws a random pause, or returns the fixed one.
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

    fn bursts(on: OnPeriod, off: Pause, bytes: Option<u64>) -> OnOffWriter {
        let mut bursts =
            OnOffWriter::new(on, off, bytes.map(Bytes), RandomStream::named(1, "test", "pause"));
        bursts.begin(at(5));
        bursts
    }

    #[test]
    fn byte_bursts_end_when_the_stack_has_accepted_them() {
        let mut bursts = bursts(OnPeriod::Bytes(Bytes(300)), Pause::Fixed(ms(10)), Some(500));
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
        let mut bursts = bursts(OnPeriod::For(ms(20)), Pause::Fixed(ms(10)), Some(5_000));
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
    fn random_pauses_are_within_their_bounds() {
        let off = Pause::Between { least: Duration::from_nanos(3), most: Duration::from_nanos(6) };
        let mut bursts = bursts(OnPeriod::Bytes(Bytes(1)), off, None);
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
