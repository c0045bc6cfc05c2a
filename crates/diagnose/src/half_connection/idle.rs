//! Times without data in flight: what the sender waited for.

use units::{Duration, Instant};

use crate::rounds::TimeUse;
use crate::stalls::AckStalls;

/// Pauses of the application.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pauses {
    /// Their number.
    pub(crate) count: u64,
    /// The longest: its length, and the frame that ends it.
    pub(crate) longest: (Duration, u64),
}

impl Pauses {
    pub(super) fn add(&mut self, time: Duration, frame: u64) {
        self.count += 1;
        if time > self.longest.0 {
            self.longest = (time, frame);
        }
    }
}

/// An idle time.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdleTime {
    pub(super) length: Duration,
    pub(super) end: Instant,
    /// The packets before it show that the sender had more to send, or sent more.
    pub(super) is_unfinished: bool,
    /// The receiver has asked for more since.
    pub(super) is_asked: bool,
    /// What it was taken for.
    pub(super) counted_as: TimeUse,
}

/// The sender without data in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdleTimes {
    /// Time at which the sender received the ACK of all its data; `None` if some are outstanding.
    pub(super) all_acked_at: Option<Instant>,
    /// Time of the first data of the receiver since the last data of the sender: a request.
    pub(super) request_at: Option<Instant>,
    /// An idle time that may have been a retransmission timeout.
    pub(super) suspected_timeout: Option<IdleTime>,
    /// Arrival of data that the path had delayed (delay spike).
    pub(super) delay_spike_at: Option<Instant>,
    pub(crate) pauses: Pauses,
    /// Delayed ACKs that the sender waited for: see [`stalls`](crate::stalls).
    pub(crate) stalls: AckStalls,
}

impl IdleTimes {
    /// The sender sends data.
    pub(super) const fn on_sent(&mut self) {
        self.all_acked_at = None;
        self.request_at = None;
    }

    /// The sender receives data.
    pub(super) fn on_request(&mut self, at: Instant) {
        self.request_at.get_or_insert(at);
    }

    /// The sender receives the ACK of all its data.
    pub(super) fn on_all_acked(&mut self, at: Instant) {
        self.all_acked_at.get_or_insert(at);
    }

    /// Whether the receiver has sent data since the last ones of the sender, by `at`.
    pub(super) fn has_request(&self, at: Instant) -> bool {
        self.request_at.is_some_and(|asked| asked <= at)
    }

    /// Whether data arrived within `limit` before `at` that the path had delayed.
    pub(super) fn is_after_delay_spike(&self, at: Instant, limit: Duration) -> bool {
        self.delay_spike_at.is_some_and(|held| at.since(held) <= limit)
    }
}
