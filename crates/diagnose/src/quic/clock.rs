//! Times of QUIC logs, which records and results have in ns.

use units::{Duration, Instant};

/// Time and index of an event of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogEvent {
    pub(super) at: Instant,
    pub(super) index: u64,
}

impl LogEvent {
    pub(super) const fn new(ns: u64, index: u64) -> Self {
        Self { at: Instant::from_nanos(ns), index }
    }

    /// Its time in ns.
    pub(super) const fn ns(self) -> u64 {
        self.at.as_nanos()
    }
}

/// A time in ns in seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

/// Formats a time of a log, in ns: see [`rules::time`](crate::rules::time).
pub fn time(ns: u64) -> String {
    crate::rules::time(Duration::from_nanos(ns))
}

/// Begin and end, in ns, on the clock of the log.
pub(super) fn interval((from, to): (u64, u64)) -> (Instant, Instant) {
    (Instant::from_nanos(from), Instant::from_nanos(to))
}
