//! Deadlines by purpose.

use record::Purpose;
use units::{Duration, Instant};

use crate::clock::{KernelClock, RoundedSpan};

/// In order of precedence at equal instants.
const ALL: [Purpose; 8] = [
    Purpose::DelayedAck,
    Purpose::Reorder,
    Purpose::LossProbe,
    Purpose::Retransmit,
    Purpose::Persist,
    Purpose::Keepalive,
    Purpose::TimeWait,
    Purpose::Pacing,
];

/// Number of timers that may be set in ticks, with every segment.
const TICKED: usize = slot(Purpose::Retransmit) + 1;
const OTHERS: usize = ALL.len() - TICKED;

#[cold]
fn none() -> Box<[Instant; OTHERS]> {
    Box::new([Instant::MAX; OTHERS])
}

/// One deadline for each purpose; [`Instant::MAX`] where there is none.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Timers {
    at: [Instant; TICKED],
    /// The other timers, allocated when one of them is first set.
    others: Option<Box<[Instant; OTHERS]>>,
    /// The earliest of those.
    rare: Instant,
    /// The earliest deadline set since the last [`Timers::next_before`].
    fresh: Instant,
    #[serde(skip)]
    rounding: RoundingCache,
}

/// The last rounding to ticks: when the tick began, and the rounded span of each timer.
#[derive(Clone, Default)]
struct RoundingCache {
    tick: u64,
    spans: [RoundedSpan; TICKED],
}

impl core::fmt::Debug for RoundingCache {
    /// No state: the same deadlines follow from any contents.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("RoundingCache")
    }
}

const fn slot(purpose: Purpose) -> usize {
    match purpose {
        Purpose::DelayedAck => 0,
        Purpose::Reorder => 1,
        Purpose::LossProbe => 2,
        Purpose::Retransmit => 3,
        Purpose::Persist => 4,
        Purpose::Keepalive => 5,
        Purpose::TimeWait => 6,
        Purpose::Pacing => 7,
    }
}

#[inline]
fn earliest(at: &[Instant]) -> Instant {
    at.iter().fold(Instant::MAX, |first, &at| first.min(at))
}

impl Default for Timers {
    fn default() -> Self {
        let none = Instant::MAX;
        Self {
            at: [none; TICKED],
            others: None,
            rare: none,
            fresh: none,
            rounding: RoundingCache::default(),
        }
    }
}

impl Timers {
    #[inline]
    pub(crate) fn set(&mut self, purpose: Purpose, at: Instant) {
        self.fresh = self.fresh.min(at);
        match self.at.get_mut(slot(purpose)) {
            Some(place) => *place = at,
            None => self.set_other(slot(purpose) - TICKED, at),
        }
    }

    #[inline]
    fn set_other(&mut self, place: usize, at: Instant) {
        // Stopping a timer that never ran has no effect.
        if self.others.is_some() || at != Instant::MAX {
            let others = self.others.get_or_insert_with(none);
            others[place] = at;
            self.rare = earliest(&others[..]);
        }
    }

    #[inline]
    fn get(&self, purpose: Purpose) -> Instant {
        let place = slot(purpose);
        match self.at.get(place) {
            Some(&at) => at,
            None => self.others.as_ref().map_or(Instant::MAX, |others| others[place - TICKED]),
        }
    }

    /// Sets a timer up to the retransmission timer to run for `span` from now on, in ticks of
    /// `clock` ([`KernelClock::deadline`]).
    #[inline(always)]
    pub(crate) fn set_ticks(
        &mut self,
        purpose: Purpose,
        clock: &KernelClock,
        now: Instant,
        span: Duration,
    ) {
        let slot = slot(purpose);
        let RoundingCache { tick, spans } = &mut self.rounding;
        let at = clock.deadline_cached(now, span, tick, &mut spans[slot]);
        self.at[slot] = at;
        self.fresh = self.fresh.min(at);
    }

    #[inline]
    pub(crate) fn stop(&mut self, purpose: Purpose) {
        self.set(purpose, Instant::MAX);
    }

    pub(crate) fn stop_all(&mut self) {
        *self = Self::default();
    }

    #[inline]
    pub(crate) fn runs(&self, purpose: Purpose) -> bool {
        self.get(purpose) != Instant::MAX
    }

    /// The deadline of that purpose.
    pub(crate) fn at(&self, purpose: Purpose) -> Option<Instant> {
        Some(self.get(purpose)).filter(|&at| at != Instant::MAX)
    }

    /// The next deadline; [`Instant::MAX`] if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        earliest(&self.at).min(self.rare)
    }

    /// The next deadline if it is before `known`, the earliest deadline at the last call.
    #[inline(always)]
    pub(crate) fn next_before(&mut self, known: Option<Instant>) -> Option<Instant> {
        let known = known.unwrap_or(Instant::MAX);
        if self.fresh >= known && known != Instant::MAX {
            return None;
        }
        self.fresh = Instant::MAX;
        Some(self.next_at()).filter(|&at| at < known)
    }

    /// The next deadline.
    #[inline]
    pub(crate) fn next(&self) -> Option<(Instant, Purpose)> {
        let first = self.next_at();
        let due = ALL.into_iter().find(|&purpose| self.get(purpose) == first);
        due.filter(|_| first != Instant::MAX).map(|purpose| (first, purpose))
    }

    /// Stops and returns a timer that has expired.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Purpose> {
        if self.next_at() > now {
            return None;
        }
        let (_, purpose) = self.next().filter(|&(at, _)| at <= now)?;
        self.stop(purpose);
        Some(purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_before_misses_no_deadline() {
        let mut stream = units::RandomStream::named(1, "timers", "test");
        let mut timers = Timers::default();
        // The deadline known to the caller, as a world has an entry in its event queue.
        let mut known: Option<Instant> = None;
        let mut now = Instant::ZERO;
        for _ in 0..20_000 {
            let purpose = ALL[stream.below(8) as usize];
            match stream.below(4) {
                0 => timers.stop(purpose),
                1 | 2 => timers.set(purpose, now + Duration::from_nanos(stream.below(1_000))),
                _ => {
                    now += Duration::from_nanos(stream.below(300));
                    while timers.take_due(now).is_some() {}
                    known = known.filter(|&at| at > now);
                }
            }
            let first = Some(timers.next_at()).filter(|&at| at < known.unwrap_or(Instant::MAX));
            assert_eq!(timers.next_before(known), first);
            known = first.or(known);
        }
    }

    #[test]
    fn the_earliest_comes_first_and_once() {
        let at = Instant::from_nanos;
        let mut timers = Timers::default();
        timers.set(Purpose::Retransmit, at(20));
        timers.set(Purpose::DelayedAck, at(10));
        timers.set(Purpose::TimeWait, at(20));
        assert_eq!(timers.next(), Some((at(10), Purpose::DelayedAck)));
        assert_eq!(timers.take_due(at(9)), None);
        assert_eq!(timers.take_due(at(20)), Some(Purpose::DelayedAck));
        assert_eq!(timers.take_due(at(20)), Some(Purpose::Retransmit));
        assert_eq!(timers.take_due(at(20)), Some(Purpose::TimeWait));
        assert_eq!(timers.take_due(at(20)), None);
    }
}
