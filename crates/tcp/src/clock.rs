//! A kernel's clock: coarse ticks for timers, milliseconds for timestamps.

use core::num::NonZeroU64;

use units::ratio::{scaled, scaled_up};
use units::{Duration, Instant, unlikely};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Ticks and timestamps of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct KernelClock {
    hz: u32,
    /// Length of a tick in nanoseconds, where that is a whole number.
    tick_nanos: Option<NonZeroU64>,
    phase: Duration,
    timestamp_base: u32,
    /// The timestamp clock advances with each tick (FreeBSD: getmicrouptime), not each millisecond.
    by_ticks: bool,
}

impl KernelClock {
    /// A clock of `hz` ticks a second, `phase` into a tick (and into a millisecond) when the run
    /// begins; timestamps count from `timestamp_base`.
    pub(crate) const fn new(hz: u32, phase: Duration, timestamp_base: u32) -> Self {
        let whole = hz > 0 && NANOS_PER_SECOND.is_multiple_of(hz as u64);
        let tick_nanos = if whole { NonZeroU64::new(NANOS_PER_SECOND / hz as u64) } else { None };
        Self { hz, tick_nanos, phase, timestamp_base, by_ticks: false }
    }

    /// The same clock with timestamps that advance only with ticks.
    pub(crate) const fn with_timestamps_by_ticks(self, by_ticks: bool) -> Self {
        // With more than 1,000 ticks a second time is taken once a millisecond (`tc_tick`).
        Self { by_ticks: by_ticks && self.hz < 1_000, ..self }
    }

    /// The phase within its tick when the run began.
    #[inline]
    pub(crate) const fn phase(&self) -> Duration {
        self.phase
    }

    #[inline]
    fn nanos(&self, now: Instant) -> u64 {
        now.as_nanos().saturating_add(self.phase.as_nanos())
    }

    /// Ticks counted at `now`.
    #[inline]
    pub(crate) fn tick(&self, now: Instant) -> u64 {
        let nanos = self.nanos(now);
        match self.hz {
            // The usual frequencies without a division: this runs for every acknowledgment.
            100 => nanos / 10_000_000,
            250 => nanos / 4_000_000,
            1_000 => nanos / 1_000_000,
            hz => tick_of(nanos, hz),
        }
    }

    /// When a timer set at `now` for `span` fires: on a tick, the span rounded up to whole ticks,
    /// at least one.
    pub(crate) fn deadline(&self, now: Instant, span: Duration) -> Instant {
        self.after_ticks(now, self.ticks(span).max(1))
    }

    /// [`KernelClock::deadline`] for timers that are restarted with almost every segment, without a
    /// division as long as tick and rounded span are the same as last time. `tick`: when the tick
    /// began, in nanoseconds of the clock; `whole`: the span, rounded up to whole ticks.
    #[inline(always)]
    pub(crate) fn deadline_cached(
        &self,
        now: Instant,
        span: Duration,
        tick: &mut u64,
        whole: &mut u64,
    ) -> Instant {
        let Some(length) = self.tick_nanos else { return self.deadline_fractional(now, span) };
        let (nanos, span) = (self.nanos(now), span.as_nanos().max(1));
        if unlikely(nanos.wrapping_sub(*tick) >= length.get()) {
            *tick = nanos - nanos % length;
        }
        if unlikely(whole.wrapping_sub(span) >= length.get()) {
            *whole = span.div_ceil(length.get()).saturating_mul(length.get());
        }
        let at = tick.saturating_add(*whole);
        Instant::from_nanos(at.saturating_sub(self.phase.as_nanos()))
    }

    /// [`KernelClock::deadline_cached`] if a tick is not a whole number of nanoseconds.
    #[cold]
    #[inline(never)]
    fn deadline_fractional(&self, now: Instant, span: Duration) -> Instant {
        self.deadline(now, span)
    }

    /// The instant at which the clock has counted `ticks` more than at `now`.
    pub(crate) fn after_ticks(&self, now: Instant, ticks: u64) -> Instant {
        let count = self.tick(now) + ticks;
        let nanos = match self.tick_nanos {
            Some(nanos) => count.saturating_mul(nanos.get()),
            None => scaled_up(count, NANOS_PER_SECOND, u64::from(self.hz)),
        };
        Instant::from_nanos(nanos.saturating_sub(self.phase.as_nanos()))
    }

    /// A duration in whole ticks, rounded up.
    pub(crate) fn ticks(&self, span: Duration) -> u64 {
        match self.tick_nanos {
            Some(nanos) => span.as_nanos().div_ceil(nanos.get()),
            None => scaled_up(span.as_nanos(), u64::from(self.hz), NANOS_PER_SECOND),
        }
    }

    /// Milliseconds of the timestamp clock in whole ticks, rounded down (`TCP_TS_TO_TICKS`).
    pub(crate) fn ticks_of_millis(&self, ms: u32) -> u64 {
        u64::from(ms) * u64::from(self.hz) / 1_000
    }

    /// Value of the timestamp clock, which counts milliseconds in both systems.
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        if unlikely(self.by_ticks) {
            let ms = self.tick(now) * 1_000 / u64::from(self.hz.max(1));
            return self.timestamp_base.wrapping_add(ms as u32);
        }
        self.timestamp_base.wrapping_add((self.nanos(now) / 1_000_000) as u32)
    }
}

#[inline(never)]
fn tick_of(nanos: u64, hz: u32) -> u64 {
    scaled(nanos, u64::from(hz), NANOS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_on_ticks() {
        let clock = KernelClock::new(100, Duration::from_millis(7), 0);
        let now = Instant::ZERO + Duration::from_millis(1);
        assert_eq!(clock.tick(now), 0);
        // 8 ms into a tick of 10 ms: 15 ms are 2 ticks, the second of which ends 12 ms from now.
        let fires = clock.deadline(now, Duration::from_millis(15));
        assert_eq!(fires, now + Duration::from_millis(12));
        assert_eq!(clock.tick(fires), 2);
    }

    #[test]
    fn cached_rounding_equals_rounding() {
        let mut stream = units::RandomStream::named(1, "clock", "test");
        for hz in [1_000, 300, 250, 100] {
            let clock = KernelClock::new(hz, Duration::from_micros(700), 0);
            let (mut tick, mut whole) = (0, 0);
            let mut now = Instant::ZERO;
            for _ in 0..10_000 {
                let (most, longest) = (1 << stream.below(24), 1 << stream.below(30));
                now += Duration::from_nanos(stream.below(most));
                let span = Duration::from_nanos(stream.below(longest));
                let at = clock.deadline_cached(now, span, &mut tick, &mut whole);
                assert_eq!(at, clock.deadline(now, span), "{hz} {now:?} {span:?}");
            }
        }
    }

    #[test]
    fn freebsds_timestamps_are_those_of_the_last_tick() {
        // tcp_ts_getticks: getmicrouptime gives the time of the last hardclock.
        let at = |hz, ms| {
            let clock = KernelClock::new(hz, Duration::ZERO, 0).with_timestamps_by_ticks(true);
            clock.timestamp(Instant::ZERO + Duration::from_millis(ms))
        };
        assert_eq!((at(100, 8), at(100, 33), at(1_000, 33), at(10_000, 33)), (0, 30, 33, 33));
    }

    #[test]
    fn timestamps_count_milliseconds_from_their_base() {
        let clock = KernelClock::new(1_000, Duration::from_micros(700), u32::MAX);
        assert_eq!(clock.timestamp(Instant::ZERO), u32::MAX);
        assert_eq!(clock.timestamp(Instant::ZERO + Duration::from_micros(300)), 0);
        assert_eq!(clock.timestamp(Instant::ZERO + Duration::from_micros(100_400)), 100);
    }
}
