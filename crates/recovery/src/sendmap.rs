//! What was sent and is not acknowledged, packet by packet, for stacks that judge losses by time.
//!
//! Sources: tcp_stacks/rack.c (the send map and its list by time), tcp_input.c of Linux
//! (tcp_sacktag_write_queue, tcp_clean_rtx_queue, the `*_out` counters), RFC 8985 section 5.
//!
//! One record per packet, in the order of the stream: appended as data leaves, popped as `snd_una`
//! moves. Costs, amortised over the packets sent:
//! - a packet sent and acknowledged without loss: a push and a pop;
//! - blocks: constant per packet newly reported and a binary search per block, since what had been
//!   reported is jumped over ([`SendMap::apply_sack`]);
//! - the oldest packet under way by the time it was sent, and the next one to send again: constant.
//!   Packets sent once lie in the order of time, so a cursor does; those sent again wait in a queue.
//!
//! Linear in the map are only what happens once per timeout or revert ([`SendMap::lose_all`],
//! [`SendMap::unmark_lost`], [`SendMap::forget_sacks`]) and cutting a packet in two
//! ([`SendMap::resend`] with a smaller segment size). A block that covers a packet in part does not
//! report it (tcp_match_skb_to_sack).

mod losses;
mod order;
mod piece;
mod reports;

use core::hint::cold_path;
use std::collections::VecDeque;

use units::{Instant, Offset};

pub use piece::{Count, Departure, Piece, Row, Sums};

use crate::apart::{Apart, Beginning};
use crate::dsack::Block;
use crate::ranges::Ranges;
use order::{Resends, Time};
use piece::{COUNTED, PUSHED};

/// Packets under way.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub struct SendMap {
    /// In the order of the stream, without gaps.
    pieces: VecDeque<Piece>,
    /// Number of the first piece, counted since the map began. Cursors are such numbers.
    base: u64,
    /// All of them.
    all: Count,
    /// What is known of losses; apart, since most of the time nothing is.
    losses: Apart<Losses>,
}

/// Reported, lost and sent again, and how far that was looked through.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
struct Losses {
    /// The sums, but for that of all.
    sums: Sums,
    /// Runs of reported pieces.
    sacked: Ranges,
    /// The blocks reported last, which say nothing new if they come again.
    heard: [Block; 4],
    /// Pieces sent again, in the order of time.
    resends: Resends,
    /// No piece before this one was sent once and is under way.
    once: u64,
    /// All sent before this has been passed, which makes all pieces before `passed` that were sent
    /// once.
    passed_until: Time,
    passed: u64,
    /// No piece before this one was sent once, has been passed and has not expired.
    expired: u64,
    /// No piece before this one was lost after its first transmission and waits.
    lost: u64,
    /// How many were and do.
    fresh_lost: u64,
    /// Times that a piece was taken for lost (`tp->lost`).
    lost_ever: u64,
    /// Ends of pieces lost after a later transmission, in the order of the stream.
    relost: VecDeque<Offset>,
}

/// None, since no block is empty.
const NO_BLOCKS: [Block; 4] = [(Offset(0), Offset(0)); 4];

/// Nothing was ever reported, lost or sent again.
static NOTHING: Losses = Losses {
    sums: Sums::NONE,
    sacked: Ranges::new(),
    heard: NO_BLOCKS,
    resends: Resends::new(),
    once: 0,
    passed_until: (Instant::ZERO, Offset(0)),
    passed: 0,
    expired: 0,
    lost: 0,
    fresh_lost: 0,
    lost_ever: 0,
    relost: VecDeque::new(),
};

impl Beginning for Losses {
    fn beginning() -> &'static Self {
        &NOTHING
    }
}

/// What a retransmission covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resent {
    /// Packets and bytes that left again.
    pub count: Count,
    /// Bytes of them that had been passed (`recovery_rxt_cnt` of D53832).
    pub passed_bytes: u64,
}

impl SendMap {
    /// A map of nothing.
    pub fn new() -> Self {
        Self { pieces: VecDeque::new(), base: 0, all: Count::default(), losses: Apart::default() }
    }

    /// The sums.
    #[inline(always)]
    pub fn sums(&self) -> Sums {
        Sums { all: self.all, ..self.losses.sums }
    }

    /// Counts a piece.
    #[inline(always)]
    fn count(&mut self, marks: u8, bytes: u64) {
        self.all.add(bytes);
        if marks & COUNTED != 0 {
            self.losses.sums.count(marks, bytes);
        }
    }

    /// The reverse of it.
    #[inline(always)]
    fn discount(&mut self, marks: u8, bytes: u64) {
        self.all.take(bytes);
        if marks & COUNTED != 0 {
            self.losses.sums.discount(marks, bytes);
        }
    }

    /// Nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Times that a piece was taken for lost, again or not (`tp->lost` of Linux).
    pub fn lost_ever(&self) -> u64 {
        self.losses.lost_ever
    }

    /// Was anything ever reported, lost or sent again?
    #[inline(always)]
    pub const fn knows_losses(&self) -> bool {
        self.losses.stands()
    }

    /// Is anything lost, sent again or not?
    #[inline(always)]
    pub fn any_lost(&self) -> bool {
        self.losses.stands() && self.losses.sums.lost.packets > 0
    }

    /// Was each piece sent once, and is none of them reported or lost?
    #[inline]
    pub fn nothing_missing(&self) -> bool {
        if !self.losses.stands() {
            return true;
        }
        let sums = &self.losses.sums;
        let marked = sums.sacked.packets | sums.lost.packets | sums.resent.packets;
        let waiting = self.losses.resends.len() | self.losses.relost.len();
        marked | sums.again_bytes | waiting as u64 == 0
    }

    /// The pieces, in the order of the stream.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Piece> {
        self.pieces.iter()
    }

    /// The first piece.
    pub fn first(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    /// The piece highest in the stream.
    pub fn last(&self) -> Option<&Piece> {
        self.pieces.back()
    }

    /// The piece that holds a byte.
    pub fn get(&self, place: Offset) -> Option<&Piece> {
        self.pieces.get(self.index_of(place)?)
    }

    /// Behind the highest byte reported.
    pub fn highest_sacked(&self) -> Option<Offset> {
        self.losses.sacked.end()
    }

    /// Runs of reported pieces.
    pub fn sacked_runs(&self) -> usize {
        self.losses.sacked.len()
    }

    /// One packet, `[start, end)`, left for the first time; it follows the one before.
    ///
    /// # Panics
    /// In debug builds, if it does not follow or is longer than a packet can be.
    #[inline]
    pub fn push(&mut self, start: Offset, end: Offset, now: Instant) {
        debug_assert!(self.pieces.back().is_none_or(|last| last.end() == start));
        debug_assert!(start < end && end - start <= u64::from(u32::MAX));
        let len = end.since(start).get() as u32;
        if self.pieces.len() == self.pieces.capacity() {
            self.make_room();
        }
        self.pieces.push_back(Piece {
            start,
            sent_at: now,
            len,
            transmissions: 1,
            again: 0,
            marks: 0,
        });
        self.all.add(u64::from(len));
    }

    /// Room for more: as much again while it is little, then an eighth, for a flight may be very long.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let len = self.pieces.len();
        self.pieces.reserve_exact(len.clamp(2, 32).max(len / 8));
    }

    /// What was just pushed carries PSH whenever it is sent.
    #[inline]
    pub fn mark_pushed(&mut self) {
        if let Some(last) = self.pieces.back_mut() {
            last.marks |= PUSHED;
        }
    }

    /// All before `una` is acknowledged: each piece wholly below is shown, as it stood, and dropped;
    /// one in part below is shortened.
    #[inline]
    pub fn acknowledge(&mut self, una: Offset, mut see: impl FnMut(&Piece)) {
        while let Some(piece) = self.pieces.front() {
            let bytes = piece.len();
            if piece.end() > una {
                break;
            }
            see(piece);
            if piece.marks & !PUSHED == 0 && piece.again == 0 {
                self.all.take(bytes);
            } else {
                let piece = *piece;
                self.forget_marked(&piece);
            }
            self.base += 1;
            self.pieces.pop_front();
        }
        if let Some(piece) = self.pieces.front_mut()
            && piece.start < una
        {
            cold_path();
            let (cut, before) = (una - piece.start, *piece);
            piece.len -= cut as u32;
            piece.start = una;
            let left = piece.len();
            self.forget_blocks();
            self.discount(before.marks, before.len());
            self.count(before.marks, left);
            if before.again > 0 {
                self.losses.sums.again_bytes -= u64::from(before.again) * cut;
            }
        }
        if !self.losses.sacked.is_empty() {
            self.losses.sacked.advance(una);
        }
        if !self.losses.resends.is_empty() || !self.losses.relost.is_empty() {
            self.losses.resends.acknowledge(una, self.pieces.is_empty());
            while self.losses.relost.front().is_some_and(|&end| end <= una) {
                self.losses.relost.pop_front();
            }
        }
    }

    /// A piece is acknowledged that was reported, lost or sent again.
    #[inline(never)]
    fn forget_marked(&mut self, piece: &Piece) {
        self.discount(piece.marks, piece.len());
        self.losses.sums.again_bytes -= u64::from(piece.again) * piece.len();
        self.losses.fresh_lost -= u64::from(piece.fresh_lost());
    }

    /// The same where nothing is missing ([`SendMap::nothing_missing`]): tells of the pieces wholly
    /// below, if there are any.
    #[inline(always)]
    pub fn acknowledge_plain(&mut self, una: Offset) -> Option<Row> {
        let departure = |piece: &Piece| Departure { sent_at: piece.sent_at, end: piece.end() };
        let first = departure(self.pieces.front()?);
        let mut row = Row { packets: 0, first, last: first };
        let mut bytes = 0;
        while let Some(piece) = self.pieces.front() {
            let departed = departure(piece);
            if departed.end > una {
                // In part at most.
                let cut = una.since(piece.start).get();
                if cut > 0 {
                    self.shorten_first(una, cut);
                }
                break;
            }
            bytes += piece.len();
            row.packets += 1;
            row.last = departed;
            self.pieces.pop_front();
        }
        self.base += row.packets;
        self.all.packets -= row.packets;
        self.all.bytes -= bytes;
        (row.packets > 0).then_some(row)
    }

    #[cold]
    fn shorten_first(&mut self, una: Offset, cut: u64) {
        if let Some(piece) = self.pieces.front_mut() {
            self.all.bytes -= cut;
            piece.len -= cut as u32;
            piece.start = una;
            self.forget_blocks();
        }
    }

    /// Pieces begin or end elsewhere: what covered one in part may cover it whole.
    fn forget_blocks(&mut self) {
        if self.losses.stands() {
            self.losses.heard = NO_BLOCKS;
        }
    }

    /// Cuts the piece at `at` in two at `place`, which lies within.
    fn cut(&mut self, at: usize, place: Offset) {
        let piece = &mut self.pieces[at];
        let (whole, mut upper) = (*piece, *piece);
        piece.len = (place - piece.start) as u32;
        piece.marks &= !PUSHED;
        upper.start = place;
        upper.len -= piece.len;
        let lower = *piece;
        self.discount(whole.marks, whole.len());
        self.count(lower.marks, lower.len());
        self.count(upper.marks, upper.len());
        self.pieces.insert(at + 1, upper);
        self.forget_blocks();
        let id = self.base + at as u64;
        let losses = &mut *self.losses;
        let Losses { once, passed, expired, lost, .. } = losses;
        for cursor in [once, passed, expired, lost] {
            *cursor += u64::from(*cursor > id);
        }
        if lower.fresh_lost() {
            self.losses.fresh_lost += 1;
        } else if lower.waits() {
            self.add_relost(lower.end());
        }
        self.losses.resends.cut(&lower, upper.end());
    }

    /// Number of the piece that holds a byte. Packets are about equally long, so the guess is close.
    fn index_of(&self, place: Offset) -> Option<usize> {
        let (first, last) = (self.pieces.front()?, self.pieces.back()?);
        if place < first.start || place >= last.end() {
            return None;
        }
        let longest = u64::from(first.len.max(1));
        let guess = ((place - first.start) / longest).min(self.pieces.len() as u64 - 1) as usize;
        for at in [guess, guess + 1] {
            let piece = self.pieces.get(at).filter(|piece| piece.start <= place);
            if piece.is_some_and(|piece| place < piece.end()) {
                return Some(at);
            }
        }
        Some(self.pieces.partition_point(|piece| piece.end() <= place))
    }

    /// Number of the piece that ends at `end`.
    fn index_of_end(&self, end: Offset) -> Option<usize> {
        let at = self.index_of(Offset(end.0.checked_sub(1)?))?;
        (self.pieces[at].end() == end).then_some(at)
    }

    /// Place of the piece with this number in the queue.
    fn index(&self, id: u64) -> Option<usize> {
        let at = usize::try_from(id.checked_sub(self.base)?).ok()?;
        (at < self.pieces.len()).then_some(at)
    }
}

impl Default for SendMap {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
