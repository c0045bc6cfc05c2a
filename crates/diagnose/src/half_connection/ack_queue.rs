//! ACKs on the way from the capture point to the sender.

use std::collections::VecDeque;

use packet::SackBlocks;
use units::{Instant, Offset, SeqNum};

use super::ORIGIN;

/// An ACK that passed the capture point towards the sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapturedAck {
    pub(crate) at: Instant,
    pub(crate) frame: u64,
    pub(crate) number: SeqNum,
    /// Advertised window in bytes, and whether the window scale is known.
    pub(crate) window: u64,
    pub(crate) scaled: bool,
    pub(crate) stamp: Option<u32>,
    pub(crate) echo: Option<u32>,
    pub(crate) sack: SackBlocks,
    /// The segment carries no data.
    pub(crate) pure: bool,
    /// The segment is a FIN: what it says about the window concerns no sender that waits.
    pub(crate) fin: bool,
    /// The ECE flag (RFC 3168) is set.
    pub(crate) ece: bool,
    /// Options were cut off by the snap length.
    pub(crate) options_cut: bool,
}

/// Duplicate ACKs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Duplicates {
    /// Those without SACK blocks.
    pub(super) plain: u64,
    /// An ACK had some.
    pub(super) has_blocks: bool,
    /// The window of the last ACK: one that changes it is none.
    window: u64,
}

impl Duplicates {
    /// Duplicates that show that SACK is not in use: each would report what arrived behind the hole (RFC 2018 section 4).
    const FEWEST: u64 = 10;

    /// Whether they show that SACK is not in use.
    pub(super) const fn are_without_sack(self) -> bool {
        self.plain >= Self::FEWEST && !self.has_blocks
    }
}

/// ACKs that have passed the capture point, and those that have not reached the sender.
#[derive(Debug, Clone)]
pub(crate) struct AckQueue {
    pub(super) pending: VecDeque<CapturedAck>,
    /// The highest offset that an ACK acknowledged here.
    pub(super) acked: Offset,
    /// When it did so first.
    pub(super) acked_at: Instant,
    /// Time of the latest ACK that acknowledged new data and was not delayed (RFC 9293 section 3.8.6.3): of two segments, or
    /// of a part of the data.
    pub(super) prompt_at: Instant,
    /// Time of the latest ACK.
    pub(super) last_at: Instant,
    pub(super) duplicates: Duplicates,
}

impl AckQueue {
    pub(super) fn new(start: Instant) -> Self {
        let pending = VecDeque::new();
        let duplicates = Duplicates::default();
        Self {
            pending,
            acked: ORIGIN,
            acked_at: start,
            prompt_at: start,
            last_at: start,
            duplicates,
        }
    }

    /// Records an ACK of `offset` that passes the capture point, of data up to `nxt` in segments of `mss`.
    pub(super) fn on_passing(&mut self, ack: &CapturedAck, offset: Offset, nxt: Offset, mss: u64) {
        let at = ack.at;
        let Duplicates { plain, has_blocks, window } = &mut self.duplicates;
        *has_blocks |= !ack.sack.as_slice().is_empty() || ack.options_cut;
        let is_duplicate = ack.pure && offset == self.acked && nxt > offset + mss;
        *plain += u64::from(is_duplicate && ack.window == *window && !ack.fin);
        *window = ack.window;
        if offset > self.acked && offset.since(nxt).get() <= 1 {
            if offset < nxt || offset - self.acked >= 2 * mss {
                self.prompt_at = at;
            }
            (self.acked, self.acked_at) = (offset, at);
        }
        self.last_at = at;
    }

    /// Whether the receiver has acknowledged data up to `end`, or has sent an ACK since `sent_at`.
    pub(super) fn is_answered(&self, end: Offset, sent_at: Instant) -> bool {
        end <= self.acked || self.last_at >= sent_at
    }
}
