//! What acknowledgments report of the map (RFC 2018).

use core::hint::cold_path;

use units::{Instant, Offset};

use super::piece::{COUNTED, Count, EXPIRED, LOST, PASSED, Piece, RESENT, SACKED, WAS_PASSED};
use super::{NO_BLOCKS, SendMap};
use crate::dsack::Block;

impl SendMap {
    /// Blocks were reported: each piece that is newly covered is shown, as it stood, in the order of
    /// the stream within a block, and marked. Returns what was newly reported. Blocks below `snd_una`
    /// or beyond what was sent count for nothing.
    #[inline]
    pub fn apply_sack(&mut self, blocks: &[Block], see: impl FnMut(&Piece)) -> Count {
        if blocks.is_empty() { Count::default() } else { self.apply_blocks(blocks, see) }
    }

    fn apply_blocks(&mut self, blocks: &[Block], mut see: impl FnMut(&Piece)) -> Count {
        let before = self.losses.sums.sacked;
        let (Some(first), Some(last)) = (self.pieces.front(), self.pieces.back()) else {
            return Count::default();
        };
        let (una, max) = (first.start, last.end());
        let mut heard = NO_BLOCKS;
        for (nth, &block) in blocks.iter().enumerate() {
            let (start, end) = block;
            if start < end && end > una && end <= max {
                // Of three or four blocks one is new (RFC 2018 section 4).
                if !self.losses.heard.contains(&block) {
                    self.apply_block(start.max(una), end, &mut see);
                }
                if let Some(heard) = heard.get_mut(nth) {
                    *heard = block;
                }
            }
        }
        self.losses.heard = heard;
        Count {
            packets: self.losses.sums.sacked.packets - before.packets,
            bytes: self.losses.sums.sacked.bytes - before.bytes,
        }
    }

    /// Goes through what lies between the runs already reported.
    fn apply_block(&mut self, start: Offset, end: Offset, see: &mut impl FnMut(&Piece)) {
        let mut at = self.losses.sacked.first_beyond(start);
        let mut place = start;
        while place < end {
            let run = self.losses.sacked.get(at);
            if let Some((from, to)) = run
                && from <= place
            {
                place = place.max(to);
                at += 1;
                continue;
            }
            let gap_end = run.map_or(end, |(from, _)| from.min(end));
            if let Some((from, to)) = self.report(place, gap_end, see) {
                at = self.losses.sacked.fill(at, from, to);
            }
            place = gap_end;
        }
    }

    /// Marks the pieces wholly within `[start, end)`, none of them reported; returns their range.
    fn report(
        &mut self,
        start: Offset,
        end: Offset,
        see: &mut impl FnMut(&Piece),
    ) -> Option<Block> {
        let mut at = self.index_of(start)?;
        if self.pieces[at].start < start {
            at += 1;
        }
        let from = self.pieces.get(at)?.start;
        let mut to = from;
        while let Some(piece) = self.pieces.get_mut(at).filter(|piece| piece.end() <= end) {
            see(piece);
            let bytes = piece.len();
            let losses = &mut *self.losses;
            if piece.marks & COUNTED != 0 {
                cold_path();
                losses.fresh_lost -= u64::from(piece.fresh_lost());
                losses.sums.discount(piece.marks, bytes);
                piece.marks &= !(LOST | RESENT | EXPIRED);
            }
            piece.marks |= SACKED;
            losses.sums.sacked.add(bytes);
            to = piece.end();
            at += 1;
        }
        (from < to).then_some((from, to))
    }

    /// The highest piece below `edge` that was not reported, as far as it is below.
    pub fn highest_unreported(&self, edge: Offset) -> Option<Block> {
        let mut below = edge;
        while let Some(piece) = self.get(Offset(below.0.checked_sub(1)?)) {
            if !piece.sacked() {
                return Some((piece.start(), piece.end().min(edge)));
            }
            let run = self.losses.sacked.start_of_range_before(piece.end());
            below = run.unwrap_or(piece.start()).min(piece.start());
        }
        None
    }

    /// Has the receiver dropped what it had reported? The first byte not acknowledged was reported
    /// (tcp_check_sack_reneging; RFC 2018 section 8).
    pub fn reneged(&self) -> bool {
        self.pieces.front().is_some_and(Piece::sacked)
    }

    /// Forgets reports and what was passed by them, as after a timeout (rack_remxt_tmr).
    pub fn forget_reports(&mut self) {
        let losses = &mut *self.losses;
        losses.passed_until = (Instant::ZERO, Offset(0));
        for piece in &mut self.pieces {
            if piece.marks & EXPIRED != 0 {
                losses.sums.expired.take(piece.len());
            }
            piece.marks &= !(PASSED | WAS_PASSED | EXPIRED);
        }
        losses.passed = self.base;
        losses.resends.restart();
        self.forget_sacks();
    }

    /// Believes no report any more.
    pub fn forget_sacks(&mut self) {
        let losses = &mut *self.losses;
        for piece in &mut self.pieces {
            if piece.sacked() && piece.transmissions > 1 {
                losses.resends.restore(piece, losses.passed_until);
            }
            piece.marks &= !SACKED;
        }
        self.losses.sums.sacked = Count::default();
        self.losses.sacked.clear();
        self.losses.heard = NO_BLOCKS;
        self.losses.once = self.base;
        self.losses.expired = self.base;
    }
}
