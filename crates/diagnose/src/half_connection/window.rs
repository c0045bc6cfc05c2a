//! The advertised window: its size, and the times in which it is closed.
//!
//! A closed window (zero, which is zero at any scale) stops the sender, which probes it with at most
//! a byte (RFC 9293 section 3.8.6.1; some stacks send a segment). The receiver answers each probe
//! with its closed window. Probes are no retransmissions, and the silence between them is the
//! receiver's, not a loss.

use units::{Instant, Offset};

use super::CapturedAck;
use super::scale::ScaleGuess;
use super::scoreboard::Scoreboard;
use crate::rounds::TimeUse;

/// Right edge of a window of unknown size.
const UNKNOWN_EDGE: Offset = Offset(u64::MAX);

/// The state of a window that closes, relative to the last data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum WindowState {
    /// It has been open since the last data.
    #[default]
    Open,
    /// It is closed, and was when the last data were sent.
    StillClosed,
    /// It closed after the last data; it had opened before at this time.
    Closed(Option<Instant>),
    /// It was closed when the last data were sent, and opened at this time.
    Opened(Instant),
    /// It closed after the last data, and opened at this time.
    Reopened(Instant),
}

/// What limits a sender whose data fill the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum WindowRoom {
    /// There was room for a segment after the last data.
    #[default]
    Open,
    /// There was none.
    Full,
}

/// The window that the receiver advertises.
#[derive(Debug, Clone)]
pub(crate) struct PeerWindow {
    edge: Offset,
    /// Last size, in bytes; 0 while the scale is unknown.
    pub(super) size: u64,
    max: u64,
    min: u64,
    /// Time of its last size that an ACK of new data or an update of the window has.
    updated: Instant,
    /// Number of times it closed.
    pub(crate) closures: u64,
    state: WindowState,
    room: WindowRoom,
    /// Probes since the last data.
    probes: u64,
    /// The last probe beyond the window, which a receiver may accept: its range.
    probe: Option<(Offset, Offset)>,
    /// Its scale, where no handshake has it.
    guess: ScaleGuess,
}

impl Default for PeerWindow {
    fn default() -> Self {
        Self {
            edge: UNKNOWN_EDGE,
            size: 0,
            max: 0,
            min: u64::MAX,
            updated: Instant::ZERO,
            closures: 0,
            state: WindowState::Open,
            room: WindowRoom::Open,
            probes: 0,
            probe: None,
            guess: ScaleGuess::default(),
        }
    }
}

impl PeerWindow {
    /// Smallest, largest and last size in bytes; `None` if the scale is unknown.
    pub(crate) fn sizes(&self) -> Option<(u64, u64, u64)> {
        (self.max > 0).then_some((self.min, self.max, self.size))
    }

    /// What the receiver holds unread, in bytes, and when it said so last: what its window is below its largest size;
    /// 0 if the scale is unknown.
    pub(crate) const fn unread(&self) -> (Instant, u64) {
        (self.updated, self.max.saturating_sub(self.size))
    }

    /// Largest size in bytes; 0 if the scale is unknown.
    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// Updates the window by an ACK of `offset`, unless the ACK is old.
    pub(super) fn update(&mut self, at: Instant, offset: Offset, una: Offset, ack: &CapturedAck) {
        if offset < una || ack.fin && ack.window == 0 {
            return;
        }
        let closed = ack.window == 0;
        let inferred = if ack.scaled { None } else { self.guess.known() };
        if ack.scaled || inferred.is_some() {
            let window = ack.window << inferred.unwrap_or(0);
            self.edge = offset + window;
            // The window of a FIN may be of any time before.
            if offset > una || window > self.size && !ack.fin {
                self.updated = at;
            }
            self.size = window;
            self.max = self.max.max(window);
            self.min = self.min.min(window);
        } else {
            self.guess.on_ack(offset, ack.window);
            // Without the handshake the scale is unknown, but zero is zero.
            self.edge = if closed { offset } else { UNKNOWN_EDGE };
        }
        self.closures += u64::from(closed && !self.is_closed());
        self.state = match (self.state, closed) {
            (WindowState::Open, true) => WindowState::Closed(None),
            (WindowState::Opened(at) | WindowState::Reopened(at), true) => {
                WindowState::Closed(Some(at))
            }
            (WindowState::StillClosed, false) => WindowState::Opened(at),
            (WindowState::Closed(_), false) => WindowState::Reopened(at),
            (state, _) => state,
        };
    }

    /// Whether the window has no room for a segment. A sender does not wait for one if the room is
    /// half of the largest window (RFC 9293 section 3.8.6.2.1): on a loopback device a segment is as
    /// long as a window without scale.
    fn is_full(&self, nxt: Offset, mss: u64) -> bool {
        let wanted = match self.max / 2 {
            0 => mss,
            half => mss.min(half),
        };
        self.edge.since(nxt).get() < wanted
    }

    /// Records whether data up to `nxt` fill the window.
    pub(super) fn on_sent(&mut self, nxt: Offset, mss: u64) {
        self.room = if self.is_full(nxt, mss) { WindowRoom::Full } else { WindowRoom::Open };
        if self.max == 0 {
            self.guess.on_sent(nxt, mss);
        }
    }

    /// Whether it was full after the last data, and still is.
    pub(super) fn is_limiting(&self) -> bool {
        self.room == WindowRoom::Full
    }

    /// Whether a full window has room again.
    pub(super) fn has_opened(&mut self, nxt: Offset, mss: u64) -> bool {
        let opened = self.room == WindowRoom::Full && !self.is_full(nxt, mss);
        if opened {
            self.room = WindowRoom::Open;
        }
        opened
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, WindowState::StillClosed | WindowState::Closed(_))
    }

    /// Whether a segment is a probe of a closed window, and counts it. Nothing else may be sent
    /// beyond the window; a byte below it is the probe of a stack that repeats the last one.
    pub(super) fn is_probe(&mut self, (start, end): (Offset, Offset), board: &Scoreboard) -> bool {
        if !self.is_closed() {
            return false;
        }
        let beyond = start >= self.edge && start >= board.una;
        let is_probe = beyond && (end - start <= 1 || board.is_all_acked()) && start <= board.nxt;
        if is_probe {
            self.probes += 1;
            if start >= board.nxt {
                self.probe = Some((board.nxt, end));
            }
        }
        is_probe
    }

    /// Counts a probe of a closed window that carries nothing new.
    pub(super) const fn count_probe(&mut self) {
        self.probes += 1;
    }

    /// The end of the part of a probe that the receiver has accepted, if an ACK or data at `offset`
    /// show it.
    pub(super) fn accepted_probe(&mut self, offset: Offset, nxt: Offset) -> Option<Offset> {
        let (_, end) = self.probe.filter(|&(start, _)| start == nxt && offset > nxt)?;
        self.probe = None;
        Some(offset.min(end))
    }

    /// New data at `at` end the account of a closed window: until when it was closed, and whether it
    /// was probed; `None` if it was open.
    pub(super) fn end_closure(&mut self, at: Instant) -> Option<WindowClosure> {
        let until = match self.state {
            WindowState::Open | WindowState::Opened(_) => None,
            WindowState::StillClosed | WindowState::Closed(None) => Some(at),
            WindowState::Closed(Some(opened)) | WindowState::Reopened(opened) => {
                Some(opened.min(at))
            }
        };
        self.state = if self.is_closed() { WindowState::StillClosed } else { WindowState::Open };
        let is_probed = core::mem::take(&mut self.probes) > 0;
        Some(WindowClosure { until: until?, is_probed })
    }

    /// What limits a sender with a full window. The window is the buffer less the unread data in it
    /// (RFC 9293 section 3.8.6): well below the largest one advertised, or closed since the last data,
    /// the application reads late.
    pub(super) fn limit_cause(&self) -> TimeUse {
        let was_closed = matches!(self.state, WindowState::Closed(_) | WindowState::Reopened(_));
        if was_closed || self.size < self.max / 4 * 3 {
            TimeUse::Reader
        } else {
            TimeUse::ReceiveWindow
        }
    }
}

/// The time in which a window was closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowClosure {
    pub(super) until: Instant,
    pub(super) is_probed: bool,
}
