//! A kernel's clock: coarse ticks for timers, milliseconds for timestamps.

mod device;
mod fair_server;

pub(crate) use device::GuestTimer;

use core::num::NonZeroU64;

use units::ratio::{scaled, scaled_up};
use units::{Duration, Instant, unlikely};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Ticks and timestamps of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct KernelClock {
    hz: u32,
    /// Length of a tick in nanoseconds, where that is a whole number.
    #[serde(skip)]
    tick_nanos: Option<NonZeroU64>,
    phase: Duration,
    timestamp_base: u32,
    /// The timestamp clock advances with each tick (FreeBSD: getmicrouptime), not each millisecond.
    by_ticks: bool,
    /// Timers are those of Linux's timer wheel, and stamps whole microseconds.
    wheel: bool,
    /// The tick in which a timer of the wheel last fired, plus one (its lower half).
    fired: u32,
    /// Resolution of the clock source in nanoseconds, at least 1.
    step: u32,
    /// Nanoseconds of the current time that the clock source does not show.
    hidden: u32,
}

/// The last rounding of a timer's span: timers are restarted with almost every segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RoundedSpan {
    /// The span, rounded up to whole ticks, in nanoseconds.
    whole: u64,
    /// Linux: length of a bucket of the timer wheel for that span, and the beginning of the last
    /// bucket used, in nanoseconds of the clock.
    bucket_len: u64,
    bucket: u64,
    /// With one tick less it would be in a shorter bucket.
    edge: bool,
}

/// Buckets of a level of Linux's timer wheel, and the shift from one level to the next
/// (`LVL_SIZE`, `LVL_CLK_SHIFT` of kernel/time/timer.c).
const LEVEL_SIZE: u64 = 64;
const LEVEL_SHIFT: u32 = 3;
const LEVELS: u32 = 9;

/// Granularity in ticks, as a shift, of a timer that expires in `ticks` (calc_wheel_index).
const fn wheel_shift(ticks: u64) -> u32 {
    let mut level = 1;
    while level < LEVELS && ticks >= (LEVEL_SIZE - 1) << ((level - 1) * LEVEL_SHIFT) {
        level += 1;
    }
    (level - 1) * LEVEL_SHIFT
}

impl KernelClock {
    /// A clock of `hz` ticks a second, `phase` into a tick (and into a millisecond) when the run
    /// begins; timestamps count from `timestamp_base`.
    pub(crate) const fn new(hz: u32, phase: Duration, timestamp_base: u32) -> Self {
        let tick_nanos = Self::whole_tick(hz);
        Self {
            hz,
            tick_nanos,
            phase,
            timestamp_base,
            by_ticks: false,
            wheel: false,
            fired: 0,
            step: 1,
            hidden: 0,
        }
    }

    const fn whole_tick(hz: u32) -> Option<NonZeroU64> {
        let whole = hz > 0 && NANOS_PER_SECOND.is_multiple_of(hz as u64);
        if whole { NonZeroU64::new(NANOS_PER_SECOND / hz as u64) } else { None }
    }

    /// Sets the length of a tick, after it was not stored.
    pub(crate) const fn set_tick(&mut self) {
        self.tick_nanos = Self::whole_tick(self.hz);
    }

    /// The same clock with timestamps that advance only with ticks.
    pub(crate) const fn with_timestamps_by_ticks(self, by_ticks: bool) -> Self {
        // With more than 1,000 ticks a second time is taken once a millisecond (`tc_tick`).
        Self { by_ticks: by_ticks && self.hz < 1_000, ..self }
    }

    /// The same clock with timers of Linux's timer wheel: none fires early, and longer ones are
    /// coarser.
    pub(crate) const fn with_wheel(self, wheel: bool) -> Self {
        Self { wheel, ..self }
    }

    /// The machine's timers: a device that a coarse clock programs, where a process of the recorder runs at the interval
    /// `every`; `None` where the clock is exact.
    pub(crate) fn device(&self, every: Duration) -> Option<GuestTimer> {
        let tick = self.tick_nanos.filter(|_| self.step > 1)?;
        Some(GuestTimer::new(self.step, tick.get(), every.as_nanos()))
    }

    /// The time at which the clock source shows `shown`.
    pub(crate) fn exact(&self, shown: Instant) -> Instant {
        shown + Duration::from_nanos(self.hidden.into())
    }

    /// The same clock with a clock source that advances by `step` nanoseconds.
    pub(crate) const fn with_step(self, step: u32) -> Self {
        Self { step: if step == 0 { 1 } else { step }, ..self }
    }

    /// The time that the clock source shows.
    #[inline(always)]
    pub(crate) fn read(&mut self, now: Instant) -> Instant {
        if unlikely(self.step > 1) { self.read_coarse(now) } else { now }
    }

    #[cold]
    fn read_coarse(&mut self, now: Instant) -> Instant {
        self.hidden = (now.as_nanos() % u64::from(self.step)) as u32;
        Instant::from_nanos(now.as_nanos() - u64::from(self.hidden))
    }

    /// The time that one reading of the clock takes in the context of a process.
    pub(crate) fn reading(&self) -> Duration {
        Duration::from_nanos(self.step.into())
    }

    /// A time as a stamp in whole microseconds, as Linux subtracts them (tcp_skb_timestamp_us, `tcp_mstamp`): the
    /// difference of two stamps is not the time between them in whole microseconds.
    #[inline(always)]
    pub(crate) const fn stamp(&self, at: Instant) -> Instant {
        if self.wheel { Instant::from_nanos(at.as_nanos() - at.as_nanos() % 1_000) } else { at }
    }

    /// Is the clock source as fine as time?
    pub(crate) const fn is_exact(&self) -> bool {
        self.step == 1
    }

    /// A timer of the wheel fires now. Until the next tick the wheel is one tick ahead (`base->clk` of
    /// __run_timers), and so the buckets of other timers may be shorter.
    pub(crate) fn note_fired(&mut self, now: Instant) {
        if self.wheel {
            self.fired = (self.tick(now) + 1) as u32;
        }
    }

    /// The phase within its tick when the run began.
    #[inline]
    pub(crate) const fn phase(&self) -> Duration {
        self.phase
    }

    /// Nanoseconds of this clock at `now`.
    #[inline]
    pub(crate) fn nanos(&self, now: Instant) -> u64 {
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

    /// Length of a tick (jiffies_to_usecs(1)).
    #[cold]
    pub(crate) fn jiffy(&self) -> Duration {
        self.span(1)
    }

    /// A span without its last part of a tick (nsecs_to_jiffies).
    pub(crate) fn whole_ticks(&self, span: Duration) -> Duration {
        match self.tick_nanos {
            Some(length) => Duration::from_nanos(span.as_nanos() - span.as_nanos() % length),
            None => self.span(tick_of(span.as_nanos(), self.hz)),
        }
    }

    /// When a timer set at `now` for `span` fires: on a tick, the span rounded up to whole ticks,
    /// at least one; on Linux at the end of the bucket of the timer wheel with that tick
    /// (calc_index).
    pub(crate) fn deadline(&self, now: Instant, span: Duration) -> Instant {
        self.timer_at(now, self.ticks(span).max(1))
    }

    /// [`KernelClock::deadline`] for a span of whole ticks.
    pub(crate) fn timer_at(&self, now: Instant, ticks: u64) -> Instant {
        let tick = self.tick(now);
        let at = tick + ticks;
        let ahead = u64::from(self.fired == (tick + 1) as u32);
        let shift = if self.wheel { wheel_shift(ticks.saturating_sub(ahead)) } else { 0 };
        self.tick_begins(if self.wheel { ((at >> shift) + 1) << shift } else { at })
    }

    /// The tick for which a timer was set that fires at `deadline`, unless its bucket is longer.
    pub(crate) fn timeout_of(&self, deadline: Instant) -> u64 {
        self.tick(deadline).saturating_sub(u64::from(self.wheel))
    }

    /// [`KernelClock::deadline`] for timers that are restarted with almost every segment, without a
    /// division as long as tick, rounded span and bucket are the same as last time. `tick`: when
    /// the tick began, in nanoseconds of the clock.
    #[inline(always)]
    pub(crate) fn deadline_cached(
        &self,
        now: Instant,
        span: Duration,
        tick: &mut u64,
        last: &mut RoundedSpan,
    ) -> Instant {
        let Some(length) = self.tick_nanos else { return self.deadline_exact(now, span) };
        let (nanos, span) = (self.nanos(now), span.as_nanos().max(1));
        if unlikely(nanos.wrapping_sub(*tick) >= length.get()) {
            *tick = nanos - nanos % length;
        }
        if unlikely(last.whole.wrapping_sub(span) >= length.get()) {
            let ticks = span.div_ceil(length.get());
            last.whole = ticks.saturating_mul(length.get());
            last.bucket_len = length.get() << wheel_shift(ticks);
            last.bucket = u64::MAX;
            last.edge = wheel_shift(ticks) != wheel_shift(ticks - 1);
        }
        if unlikely(last.edge) {
            return self.deadline_exact(now, Duration::from_nanos(span));
        }
        let mut at = tick.saturating_add(last.whole);
        if self.wheel {
            if unlikely(at.wrapping_sub(last.bucket) >= last.bucket_len) {
                last.bucket = at - at % last.bucket_len;
            }
            at = last.bucket.saturating_add(last.bucket_len);
        }
        Instant::from_nanos(at.saturating_sub(self.phase.as_nanos()))
    }

    /// [`KernelClock::deadline_cached`] for a clock or a span that needs the exact calculation.
    #[cold]
    fn deadline_exact(&self, now: Instant, span: Duration) -> Instant {
        self.deadline(now, span)
    }

    /// When the clock counts tick `count`.
    fn tick_begins(&self, count: u64) -> Instant {
        Instant::from_nanos(self.ticks_as_nanos(count).saturating_sub(self.phase.as_nanos()))
    }

    /// Ticks in nanoseconds, rounded up.
    pub(crate) fn ticks_as_nanos(&self, count: u64) -> u64 {
        match self.tick_nanos {
            Some(nanos) => count.saturating_mul(nanos.get()),
            None => scaled_up(count, NANOS_PER_SECOND, u64::from(self.hz)),
        }
    }

    /// Ticks as a duration, rounded down, so that [`KernelClock::ticks`] returns the same number.
    pub(crate) fn span(&self, ticks: u64) -> Duration {
        Duration::from_nanos(match self.tick_nanos {
            Some(nanos) => ticks.saturating_mul(nanos.get()),
            None => scaled(ticks, NANOS_PER_SECOND, u64::from(self.hz)),
        })
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

/// Whole microseconds between two of Linux's stamps (tcp_stamp_us_delta).
pub(crate) const fn stamp_delta(now: Instant, since: Instant) -> u64 {
    (now.as_nanos() / 1_000).saturating_sub(since.as_nanos() / 1_000)
}

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
    fn linux_timers_never_fire_early_and_longer_ones_are_coarser() {
        // calc_wheel_index at HZ 250: levels of 4, 32 and 256 ms; the next one begins at 252 ms and
        // at 2.016 s.
        let clock = KernelClock::new(250, Duration::ZERO, 0).with_wheel(true);
        let fires = |now: u64, ms: u64| {
            let now = Instant::ZERO + Duration::from_micros(now);
            clock.deadline(now, Duration::from_millis(ms)).as_nanos() / 1_000_000
        };
        assert_eq!((fires(0, 40), fires(3_900, 40), fires(4_000, 40)), (44, 44, 48));
        assert_eq!((fires(0, 38), fires(0, 248)), (44, 252));
        assert_eq!((fires(0, 252), fires(4_000, 252), fires(0, 288)), (256, 288, 320));
        assert_eq!((fires(0, 2_012), fires(0, 2_016)), (2_016, 2_048));
        assert_eq!((fires(0, 2_048), fires(0, 2_300)), (2_304, 2_304));
    }

    #[test]
    fn cached_rounding_equals_rounding() {
        let mut stream = units::RandomStream::named(1, "clock", "test");
        for (hz, wheel) in
            [1_000, 300, 250, 100].into_iter().flat_map(|hz| [(hz, false), (hz, true)])
        {
            let clock = KernelClock::new(hz, Duration::from_micros(700), 0).with_wheel(wheel);
            let (mut tick, mut last) = (0, RoundedSpan::default());
            let mut now = Instant::ZERO;
            for _ in 0..10_000 {
                let (most, longest) = (1 << stream.below(24), 1 << stream.below(30));
                now += Duration::from_nanos(stream.below(most));
                let span = Duration::from_nanos(stream.below(longest));
                let at = clock.deadline_cached(now, span, &mut tick, &mut last);
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
    fn linux_rounds_stamps_and_not_their_difference() {
        // tcp_stamp_us_delta: 2.0 us between two stamps of 1.999 and 3.000 us, though 1.001 us have passed.
        let (sent, acked) = (Instant::from_nanos(1_999), Instant::from_nanos(3_000));
        let micros = |clock: KernelClock| clock.stamp(acked).since(clock.stamp(sent)).as_nanos();
        let clock = KernelClock::new(250, Duration::ZERO, 0);
        assert_eq!((micros(clock), micros(clock.with_wheel(true))), (1_001, 2_000));
    }

    #[test]
    fn timestamps_count_milliseconds_from_their_base() {
        let clock = KernelClock::new(1_000, Duration::from_micros(700), u32::MAX);
        assert_eq!(clock.timestamp(Instant::ZERO), u32::MAX);
        assert_eq!(clock.timestamp(Instant::ZERO + Duration::from_micros(300)), 0);
        assert_eq!(clock.timestamp(Instant::ZERO + Duration::from_micros(100_400)), 100);
    }
}
