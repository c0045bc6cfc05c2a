//! Times of QUIC logs, which are in ns, in the findings.

use units::{Duration, Instant};

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
