//! The timer of the machine on which kernels are recorded in User-Mode Linux.
//!
//! The clock source advances by 256 ns, but the timer device counts single nanoseconds from the moment at which it is
//! programmed: it fires late by what the clock did not show at that moment, and by one (itimer_next_event); if the clock does
//! not show the time yet, it is programmed again for at least 500 ns. Every event in between programs it anew, and so moves
//! what it is late: the process that reads `tcp_info` every 10 ms, and the first tick after a process has run, with which
//! the tick stops again. Found in the times of sixty recordings, where nothing else happens between two bursts.

use units::{Duration, Instant};

use super::KernelClock;

/// Least time in nanoseconds after which the device fires (`min_delta_ns`).
const LEAST: u64 = 500;
/// How often the recorder reads `tcp_info`, in nanoseconds.
const SAMPLED: u64 = 10_000_000;

impl KernelClock {
    /// When a high-resolution timer for `at` fires that is started now, at `shown` by the clock source.
    pub(crate) fn hrtimer_at(&self, at: Instant, shown: Instant) -> Instant {
        if self.step == 1 {
            return at;
        }
        Instant::from_nanos(self.fires(self.exact(shown).as_nanos(), at.as_nanos()))
    }

    /// When it fires if the device is programmed at `now`.
    fn fires(&self, now: u64, at: u64) -> u64 {
        let step = u64::from(self.step);
        let shows = |time: u64| time - time % step;
        if at < shows(now) + LEAST {
            return now + LEAST + 1;
        }
        let tick = self.tick_nanos.map_or(u64::MAX, core::num::NonZeroU64::get);
        let after = |time: u64, period: u64| (time / period + 1).saturating_mul(period);
        let (mut now, mut late) = (now, now % step);
        loop {
            let sample = after(now, SAMPLED);
            let ran = (now / SAMPLED * SAMPLED).max(self.process_ran.min(now));
            let last_tick = after(ran, tick);
            let ticks = last_tick > now;
            let next = if ticks { sample.min(last_tick) } else { sample };
            if next >= at {
                break;
            }
            let mut fired = next + late + 1;
            if shows(fired) < next {
                fired += LEAST + 1;
            }
            late = fired % step;
            if next == sample && !(ticks && last_tick == sample) {
                // The tick begins again.
                late = (late + 1) % step;
            }
            now = fired;
        }
        let fired = at + late + 1;
        if shows(fired) < at { fired + LEAST + 1 } else { fired }
    }

    /// A process that waited has run, at `now`: a timer for `at`, if one is pending, then fires at the time returned. With
    /// a tick before that the device is programmed for the tick.
    pub(crate) fn note_process(&mut self, now: Instant, at: Option<Instant>) -> Option<Instant> {
        if self.step == 1 {
            return None;
        }
        self.process_ran = now.as_nanos();
        let tick = self.tick_nanos?.get();
        let next = (now.as_nanos() / tick + 1) * tick;
        let at = at?.as_nanos();
        (next < at).then(|| Instant::from_nanos(self.fires(now.as_nanos(), at)))
    }

    /// The time at which the clock source shows `shown`.
    pub(crate) fn exact(&self, shown: Instant) -> Instant {
        shown + Duration::from_nanos(self.hidden.into())
    }
}
