//! A value that changes at given times of a run, once or periodically.

use std::sync::Arc;

use units::{Duration, Instant};

/// A value over time: constant from each of its times to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule<T> {
    /// Times from the start of the run or of a period, ascending; the first is zero.
    steps: Arc<[(Duration, T)]>,
    period: Option<Duration>,
}

/// Reason why a list of times and values is not a [`Schedule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleError {
    /// There is no step.
    Empty,
    /// The first step is not at zero.
    NoStart,
    /// The step with this index is not after the one before it.
    OutOfOrder {
        /// Index of the step.
        step: usize,
    },
    /// The step with this index is at or after the end of the period.
    BeyondPeriod {
        /// Index of the step.
        step: usize,
    },
}

impl<T: Copy> Schedule<T> {
    /// Creates a schedule; with `period` the steps repeat from its end.
    ///
    /// # Errors
    /// [`ScheduleError`] for the first invalid step.
    pub fn new(steps: Vec<(Duration, T)>, period: Option<Duration>) -> Result<Self, ScheduleError> {
        match steps.first() {
            None => return Err(ScheduleError::Empty),
            Some((at, _)) if !at.is_zero() => return Err(ScheduleError::NoStart),
            Some(_) => {}
        }
        if let Some(before) = steps.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            return Err(ScheduleError::OutOfOrder { step: before + 1 });
        }
        if let Some(period) = period
            && let Some(step) = steps.iter().position(|&(at, _)| at >= period)
        {
            return Err(ScheduleError::BeyondPeriod { step });
        }
        Ok(Self { steps: steps.into(), period })
    }

    /// Times and values of one period, or of the run.
    pub fn steps(&self) -> &[(Duration, T)] {
        &self.steps
    }

    /// Time after which the steps repeat.
    pub const fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Value at the start.
    pub fn first(&self) -> T {
        self.steps[0].1
    }

    /// Value at an instant.
    pub fn at(&self, now: Instant) -> T {
        self.steps[self.locate(now).1].1
    }

    /// Returns the value at an instant, and when the next step begins.
    pub fn span_at(&self, now: Instant) -> (T, Option<Instant>) {
        let (round, index) = self.locate(now);
        let until = match self.steps.get(index + 1) {
            Some((at, _)) => Some(round + *at),
            None => self.period.map(|period| round + period),
        };
        (self.steps[index].1, until)
    }

    /// Returns the start of the period that covers an instant, and the index of its step.
    fn locate(&self, now: Instant) -> (Instant, usize) {
        let now = now.as_nanos();
        let into = self.period.map_or(now, |period| now % period.as_nanos());
        let after = self.steps.partition_point(|(at, _)| at.as_nanos() <= into);
        // The first step is at zero, so at least one is not after `into`.
        (Instant::from_nanos(now - into), after - 1)
    }
}

/// A line whose rate changes; a rate of zero suspends it. The packet in transmission continues at
/// the new rate.
#[derive(Debug, Clone)]
pub(crate) struct ScheduledTransmitter {
    /// Bits per second.
    rate: Schedule<u64>,
    /// The rate is always zero.
    suspended: bool,
    /// Bits times 10^9 of the last nanosecond that the last packet used.
    carry: u128,
}

impl ScheduledTransmitter {
    pub(crate) fn new(rate: Schedule<u64>) -> Self {
        let suspended = rate.steps().iter().all(|&(_, rate)| rate == 0);
        Self { rate, suspended, carry: 0 }
    }

    /// Returns when the last bit of a packet leaves whose transmission starts at `now`, in whole
    /// nanoseconds, rounded down; `None` if the rate stays zero. `idle`: the line was idle before.
    pub(crate) fn send(&mut self, now: Instant, bits: u64, idle: bool) -> Option<Instant> {
        if idle {
            // The fraction of the last nanosecond expires with the idle time.
            self.carry = 0;
        }
        if self.suspended {
            return None;
        }
        let mut need = u128::from(bits) * 1_000_000_000 + self.carry;
        let mut from = now;
        loop {
            let (rate, until) = self.rate.span_at(from);
            let rate = u128::from(rate);
            let supply = until.map(|until| rate * u128::from(until.since(from).as_nanos()));
            if supply.is_none_or(|supply| need <= supply) && rate > 0 {
                self.carry = need % rate;
                let span = u64::try_from(need / rate).unwrap_or(u64::MAX);
                return Some(from + Duration::from_nanos(span));
            }
            need -= supply?;
            from = until?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn schedule<T: Copy>(steps: &[(u64, T)], period: Option<u64>) -> Schedule<T> {
        let steps = steps.iter().map(|&(at, value)| (Duration::from_nanos(at), value)).collect();
        Schedule::new(steps, period.map(Duration::from_nanos)).unwrap()
    }

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn a_value_holds_from_its_time_to_the_next() {
        let once = schedule(&[(0, 'a'), (10, 'b'), (15, 'c')], None);
        let values: String = [0, 9, 10, 14, 15, 1_000].map(|ns| once.at(at(ns))).iter().collect();
        assert_eq!(values, "aabbcc");
        assert_eq!(once.span_at(at(12)), ('b', Some(at(15))));
        assert_eq!(once.span_at(at(15)), ('c', None));
        let twice = schedule(&[(0, 'a'), (10, 'b')], Some(20));
        let values: String = [0, 10, 19, 20, 30, 40].map(|ns| twice.at(at(ns))).iter().collect();
        assert_eq!(values, "abbaba");
        assert_eq!(twice.span_at(at(30)), ('b', Some(at(40))));
    }

    #[test]
    fn invalid_steps_are_rejected() {
        let of = |steps: &[u64], period: Option<u64>| {
            let steps = steps.iter().map(|&at| (Duration::from_nanos(at), ())).collect();
            Schedule::new(steps, period.map(Duration::from_nanos)).unwrap_err()
        };
        assert_eq!(of(&[], None), ScheduleError::Empty);
        assert_eq!(of(&[1], None), ScheduleError::NoStart);
        assert_eq!(of(&[0, 5, 5], None), ScheduleError::OutOfOrder { step: 2 });
        assert_eq!(of(&[0, 5, 4], None), ScheduleError::OutOfOrder { step: 2 });
        assert_eq!(of(&[0, 5], Some(5)), ScheduleError::BeyondPeriod { step: 1 });
    }

    /// 8 bits at 8 bit/s take 1 s.
    #[test]
    fn a_packet_continues_at_the_new_rate() {
        // After 0.5 s of 8 bit/s, 4 bits remain: 0.25 s at 16 bit/s.
        let mut line = ScheduledTransmitter::new(schedule(&[(0, 8), (S / 2, 16)], None));
        assert_eq!(line.send(at(0), 8, true), Some(at(750_000_000)));
        // Without a rate from 0.5 s to 2 s, they follow at 2.5 s.
        let mut line = ScheduledTransmitter::new(schedule(&[(0, 8), (S / 2, 0), (2 * S, 8)], None));
        assert_eq!(line.send(at(0), 8, true), Some(at(2_500_000_000)));
        let mut line = ScheduledTransmitter::new(schedule(&[(0, 8), (S / 2, 0)], None));
        assert_eq!(line.send(at(0), 8, true), None);
        // 4 bits in each period.
        let mut line = ScheduledTransmitter::new(schedule(&[(0, 8), (S / 2, 0)], Some(S)));
        assert_eq!(line.send(at(0), 6, true), Some(at(1_250_000_000)));
        // A packet that ends as the suspension begins does not wait for its end.
        let mut line = ScheduledTransmitter::new(schedule(&[(0, 8), (S / 2, 0)], Some(S)));
        assert_eq!(line.send(at(0), 4, true), Some(at(500_000_000)));
        assert_eq!(line.send(at(500_000_000), 4, false), Some(at(1_500_000_000)));
        let mut line = ScheduledTransmitter::new(schedule(&[(0, 0)], Some(S)));
        assert_eq!(line.send(at(0), 4, true), None);
    }

    /// 300 packets of 1 bit at 3 bit/s, then at 7 bit/s from second 50: 150 bits, then 150 bits in
    /// 21.428571428 s.
    #[test]
    fn a_busy_line_loses_no_part_of_a_nanosecond() {
        let mut line = ScheduledTransmitter::new(schedule(&[(0, 3), (50 * S, 7)], None));
        let mut now = at(0);
        for packet in 0..300 {
            now = line.send(now, 1, packet == 0).unwrap();
        }
        assert_eq!(now, at(71_428_571_428));
    }
}
