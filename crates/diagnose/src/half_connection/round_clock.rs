//! Accounts for the time of one direction, round by round.

use units::{Instant, Offset};

use super::{FrameTime, MAX_RTO};
use crate::rounds::{RoundLog, RoundOrigin, TimeUse};

/// When the round ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundEnd {
    /// With the first transmission after ACKs beyond this offset.
    After(Offset),
    /// With the next transmission: its first byte is acknowledged.
    Next,
}

/// The rounds, and the time up to which they account.
#[derive(Debug, Clone)]
pub(crate) struct RoundClock {
    pub(crate) log: RoundLog,
    end: RoundEnd,
    /// The time up to here is accounted for.
    since: Instant,
}

impl RoundClock {
    pub(super) fn new(start: Instant, nxt: Offset) -> Self {
        Self { log: RoundLog::new(start), end: RoundEnd::After(nxt), since: start }
    }

    /// The clock with the rounds from the one that `since` is in.
    pub(super) fn since_round(&self, since: Instant) -> Self {
        Self { log: self.log.since(since), ..*self }
    }

    /// The time up to which is accounted for.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    /// Accounts for the time until `until`, if it is later than what is accounted for.
    pub(super) fn spend(&mut self, what: TimeUse, until: Instant) {
        let time = until.since(self.since);
        // No timer runs for so long, and none lets a sender wait so long for an ACK.
        let what = match what {
            TimeUse::Timeout | TimeUse::Recovery | TimeUse::Window if time > MAX_RTO => {
                TimeUse::Idle
            }
            _ => what,
        };
        self.log.spend(what, time);
        self.since = self.since.max(until);
    }

    /// Begins the first round at another offset.
    pub(super) fn begin_at(&mut self, nxt: Offset) {
        if matches!(self.end, RoundEnd::After(_)) {
            self.end = RoundEnd::After(nxt);
        }
    }

    /// Begins a round; it ends when the ACKs are beyond `nxt`.
    pub(super) fn begin(&mut self, now: FrameTime, before: RoundOrigin, nxt: Offset) {
        self.log.next(now.at, now.frame, before);
        self.end = RoundEnd::After(nxt);
    }

    /// Begins the next round with a transmission, if the first byte of this one is acknowledged.
    pub(super) fn begin_if_acked(&mut self, now: FrameTime, nxt: Offset) {
        if self.end == RoundEnd::Next {
            self.begin(now, RoundOrigin::Round, nxt);
        }
    }

    /// Processes the cumulative ACK of all data before `una`.
    pub(super) fn on_acked(&mut self, una: Offset) {
        if matches!(self.end, RoundEnd::After(offset) if una > offset) {
            self.end = RoundEnd::Next;
        }
    }

    /// Largest flight of this round and of the one before: the window that was reached.
    pub(super) fn window_reached(&self) -> u64 {
        self.log.now.flight.max(self.log.done.last().map_or(0, |round| round.flight))
    }
}
