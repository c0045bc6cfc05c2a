//! Real time as the instants of a run.

use std::os::fd::BorrowedFd;
use std::time;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use thread_priority::unix::{set_thread_priority_and_policy, thread_native_id};
use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
use units::{Duration, Instant};

/// The last of a wait is spent looking, since a sleeper wakes up late.
const LOOK: Duration = Duration::from_micros(60);

/// The monotonic clock since a run began.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: time::Instant,
}

impl Clock {
    /// A run begins now.
    #[expect(clippy::disallowed_methods, reason = "this crate is where real time comes in")]
    pub fn start() -> Self {
        Self { began: time::Instant::now() }
    }

    /// The present.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "this crate is where real time comes in")]
    pub fn now(&self) -> Instant {
        let nanos = time::Instant::now().duration_since(self.began).as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Sleeps until a descriptor can be read or the moment has almost come: the rest is to be spent
    /// looking. Returns at once if that is so already.
    pub fn wait(&self, until: Option<Instant>, readable: &[BorrowedFd<'_>]) {
        // So that a stop is noticed where nothing else happens.
        const MOST: Duration = Duration::from_millis(100);
        let left = until.map_or(MOST, |at| at.since(self.now())).min(MOST);
        if left <= LOOK {
            return;
        }
        let left = time::Duration::from_nanos((left - LOOK).as_nanos());
        let mut fds: Vec<_> =
            readable.iter().map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        // Being interrupted is as good as being woken.
        let _ = ppoll(&mut fds, Some(TimeSpec::from(left)), None);
    }
}

/// A real span of time.
pub const fn real(span: Duration) -> time::Duration {
    time::Duration::from_nanos(span.as_nanos())
}

/// Asks the kernel to wake this thread on time (it may be 50 us late otherwise), and before all others
/// where the privilege is there (`SCHED_FIFO`) and another processor is left for real hosts.
pub fn be_punctual() {
    // Where it cannot be had, waking up late is measured.
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
    fn a_wait_does_not_outlast_its_end_by_much() {
        let clock = Clock::start();
        let until = clock.now() + Duration::from_millis(3);
        clock.wait(Some(until), &[]);
        let left = until.since(clock.now());
        // Woken before, by what is to be spent looking; a busy machine may be late.
        assert!(left <= LOOK, "{left:?}");
        clock.wait(Some(clock.now()), &[]);
        assert!(clock.now() >= Instant::ZERO + Duration::from_millis(2));
    }
}
