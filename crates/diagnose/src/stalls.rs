//! Delayed ACKs that a sender waits for.
//!
//! A receiver delays the ACK of a lone segment: 40 to 200 ms on Linux (`TCP_DELACK_MIN`), 100 ms on
//! BSD, 200 ms on Windows, at most 500 ms (RFC 9293 section 3.8.6.3). A sender that holds back its
//! next write until then (Nagle's algorithm, RFC 9293 section 3.7.4, or a send buffer of less than
//! two segments) stands still for as long, and nothing was lost.

use units::{Duration, Instant};

/// Shortest and longest delay of an ACK that is a timer's, less a margin for measurement.
const DELAYED_ACK: core::ops::RangeInclusive<Duration> =
    Duration::from_millis(35)..=Duration::from_millis(520);

/// Stalls of a sender that end with a delayed ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckStalls {
    /// Their number.
    pub count: u64,
    /// Time by which the ACKs were delayed in all.
    pub waited: Duration,
    /// Frame of the first and of the last data that such an ACK admitted.
    pub frames: (u64, u64),
    /// Time of the first and of the last.
    pub interval: (Instant, Instant),
    /// The last ACK of all outstanding data, if it was delayed: its delay.
    pending: Option<Duration>,
}

impl Default for AckStalls {
    fn default() -> Self {
        let (waited, interval) = (Duration::ZERO, (Instant::ZERO, Instant::ZERO));
        Self { count: 0, waited, frames: (0, 0), interval, pending: None }
    }
}

impl AckStalls {
    /// Records an ACK of the last outstanding data that took `delay` longer than the path.
    pub(crate) fn all_acked(&mut self, delay: Duration) {
        self.pending = DELAYED_ACK.contains(&delay).then_some(delay);
    }

    /// Records new data; `triggered`: the last ACK admitted them.
    pub(crate) fn new_data(&mut self, triggered: bool, at: Instant, frame: u64) {
        let Some(delay) = self.pending.take().filter(|_| triggered) else { return };
        if self.count == 0 {
            self.frames.0 = frame;
            self.interval.0 = at.saturating_sub(delay);
        }
        self.count += 1;
        self.waited += delay;
        self.frames.1 = frame;
        self.interval.1 = at;
    }
}
