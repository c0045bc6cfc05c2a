//! The advertised window: its size, and the times in which it is closed.
//!
//! A closed window (zero, which is zero at any scale) stops the sender, which probes it with at most
//! a byte (RFC 9293 section 3.8.6.1; some stacks send a segment). The receiver answers each probe
//! with its closed window. Probes are no retransmissions, and the silence between them is the
//! receiver's, not a loss.

use super::{CapturedAck, HalfConnection};
use crate::rounds::TimeUse;

/// State of a closed window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WindowClosure {
    /// Time since which it is closed.
    since: Option<u64>,
    /// Time at which it opened again, until the next data.
    opened_at: Option<u64>,
    /// It was closed since the last data.
    seen: bool,
    /// Probes since it closed.
    probes: u64,
    /// The last probe beyond the window, which a receiver may accept: its range.
    probe: Option<(u64, u64)>,
}

impl HalfConnection {
    /// Updates the advertised window, unless the ACK is old.
    pub(super) fn update_window(&mut self, at: u64, place: u64, ack: &CapturedAck) {
        if place < self.una || ack.fin && ack.window == 0 {
            return;
        }
        let closed = ack.window == 0;
        if ack.scaled {
            self.edge = place + ack.window;
            self.window = ack.window;
            self.window_max = self.window_max.max(ack.window);
            self.window_min = self.window_min.min(ack.window);
        } else {
            // Without the handshake the scale is unknown, but zero is zero.
            self.edge = if closed { place } else { u64::MAX };
        }
        match (closed, self.closure.since) {
            (true, None) => {
                self.zero_windows += 1;
                self.closure = WindowClosure { since: Some(at), seen: true, ..self.closure };
            }
            (false, Some(_)) => {
                self.closure.since = None;
                self.closure.opened_at = Some(at);
            }
            _ => {}
        }
    }

    /// Whether the window has no room for a segment. A sender does not wait for one if the room is
    /// half of the largest window (RFC 9293 section 3.8.6.2.1): on a loopback device a segment is as
    /// long as a window without scale.
    pub(super) fn is_window_full(&self) -> bool {
        let wanted = match self.window_max / 2 {
            0 => self.mss,
            half => self.mss.min(half),
        };
        self.edge.saturating_sub(self.nxt) < wanted
    }

    pub(super) const fn is_window_closed(&self) -> bool {
        self.closure.since.is_some()
    }

    /// Whether a segment is a probe of a closed window, and counts it. Nothing else may be sent
    /// beyond the window; a byte below it is the probe of a stack that repeats the last one.
    pub(super) fn window_probe(&mut self, (start, end): (u64, u64)) -> bool {
        if !self.is_window_closed() {
            return false;
        }
        let beyond = start >= self.edge && start >= self.una;
        let idle = self.una == self.nxt;
        let is_probe = beyond && (end - start <= 1 || idle) && start <= self.nxt;
        if is_probe {
            self.counts.window_probes += 1;
            self.closure.probes += 1;
            if start >= self.nxt {
                self.closure.probe = Some((self.nxt, end));
            }
        }
        is_probe
    }

    /// Adds the bytes of a probe that the receiver has accepted to the stream.
    pub(super) fn accept_probe(&mut self, offset: u64) {
        if let Some((start, end)) = self.closure.probe
            && offset > self.nxt
            && start == self.nxt
        {
            let accepted = offset.min(end);
            self.captured += accepted - self.nxt;
            self.nxt = accepted;
            self.begun = true;
            self.closure.probe = None;
        }
    }

    /// Counts a probe of a closed window that carries nothing new.
    pub(super) const fn count_closed_probe(&mut self) {
        self.counts.window_probes += 1;
        self.closure.probes += 1;
    }

    /// Accounts for the time in which the window was closed, until now or until it opened. Without
    /// probes and without data that follow its opening, the sender had nothing to send.
    pub(super) fn spend_closed_window(&mut self, at: u64) {
        let closure = core::mem::take(&mut self.closure);
        self.closure.since = closure.since;
        self.closure.probe = closure.probe;
        if !closure.seen && closure.since.is_none() {
            return;
        }
        let until = closure.opened_at.unwrap_or(at).min(at);
        let answered = at - until <= self.smoothed() + self.reaction();
        if self.all_acked_at.is_some() && (closure.probes > 0 || answered && self.begun) {
            self.spend(TimeUse::Reader, until);
        }
    }

    /// Whether the receive window limits the sender because its reader is slow. The window is the
    /// buffer less the unread data in it (RFC 9293 section 3.8.6): well below the largest one
    /// advertised, the application reads late.
    pub(super) fn rwnd_limit_cause(&self) -> TimeUse {
        let reader = self.closure.seen || self.window < self.window_max / 4 * 3;
        if reader { TimeUse::Reader } else { TimeUse::ReceiveWindow }
    }
}
