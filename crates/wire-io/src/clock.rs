//! Real time as instants of a run.

use std::os::fd::BorrowedFd;
use std::time;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use thread_priority::unix::{set_thread_priority_and_policy, thread_native_id};
use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
use units::{Duration, Instant};

/// End of a wait that is spent spinning, since sleeping threads wake up late.
const SPIN: Duration = Duration::from_micros(60);

/// Monotonic time since the start of a run.
#[derive(Debug, Clone, Copy)]
pub struct RealClock {
    began: time::Instant,
}

impl RealClock {
    /// Starts the clock.
    #[expect(clippy::disallowed_methods, reason = "this crate reads real time")]
    pub fn start() -> Self {
        Self { began: time::Instant::now() }
    }

    /// Returns the current time.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "this crate reads real time")]
    pub fn now(&self) -> Instant {
        let nanos = time::Instant::now().duration_since(self.began).as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Sleeps until a descriptor is readable or shortly before `until`; the caller spins for the
    /// rest. Returns immediately if that time has passed.
    pub fn wait(&self, until: Option<Instant>, readable: &[BorrowedFd<'_>]) {
        // Bounded, so that the caller can check for a stop.
        const MOST: Duration = Duration::from_millis(100);
        let left = until.map_or(MOST, |at| at.since(self.now())).min(MOST);
        if left <= SPIN {
            return;
        }
        let left = time::Duration::from_nanos((left - SPIN).as_nanos());
        let mut fds: Vec<_> =
            readable.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        // An interruption counts as a wakeup.
        let _ = ppoll(&mut fds, Some(TimeSpec::from(left)), None);
    }
}

/// Converts to a duration of the standard library.
pub const fn real(span: Duration) -> time::Duration {
    time::Duration::from_nanos(span.as_nanos())
}

/// Minimizes the timer slack of this thread (50 us by default) and, with the privilege and more
/// than one processor, gives it real-time priority (`SCHED_FIFO`).
pub fn set_realtime_priority() {
    // If it fails, the lateness is measured.
    let _ = nix::sys::prctl::set_timerslack(1);
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1) {
        let _ = set_thread_priority_and_policy(
            thread_native_id(),
            ThreadPriority::Min,
            ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_on_time() {
        let clock = RealClock::start();
        let until = clock.now() + Duration::from_millis(3);
        clock.wait(Some(until), &[]);
        let left = until.since(clock.now());
        // It returns early by the spin time; a busy machine may be late.
        assert!(left <= SPIN, "{left:?}");
        clock.wait(Some(clock.now()), &[]);
        assert!(clock.now() >= Instant::ZERO + Duration::from_millis(2));
    }
}
