//! What is taken for lost, goes again, and was lost after all.

use units::{Instant, Offset};

use super::piece::{Count, EXPIRED, LOST, PASSED, PROBE, RESENT, WAS_PASSED};
use super::{Resent, SendMap};

impl SendMap {
    /// `[start, end)` left again at `now`, as a tail loss probe or not. Pieces it covers in part are
    /// cut; reported ones only get a new time.
    pub fn resend(&mut self, start: Offset, end: Offset, now: Instant, probe: bool) -> Resent {
        let mut resent = Resent::default();
        let Some(mut at) = self.index_of(start) else { return resent };
        if self.pieces[at].start < start {
            self.cut(at, start);
            at += 1;
        }
        while self.pieces.get(at).is_some_and(|piece| piece.start < end) {
            if self.pieces[at].end() > end {
                self.cut(at, end);
            }
            let piece = &mut self.pieces[at];
            self.losses.fresh_lost -= u64::from(piece.fresh_lost());
            piece.transmissions = piece.transmissions.saturating_add(1);
            piece.sent_at = now;
            resent.count.add(piece.len());
            let passed = piece.passed();
            if piece.marks & EXPIRED != 0 {
                self.losses.sums.expired.take(piece.len());
            }
            piece.marks &= !(PASSED | PROBE | EXPIRED);
            if !probe && piece.again < u8::MAX {
                piece.again += 1;
                self.losses.sums.again_bytes += piece.len();
            }
            if !piece.sacked() {
                if !piece.resent() {
                    self.losses.sums.resent.add(piece.len());
                }
                piece.marks |= RESENT;
                if passed {
                    resent.passed_bytes += piece.len();
                    piece.marks |= WAS_PASSED;
                }
                if probe {
                    piece.marks |= PROBE;
                }
                let end = piece.end();
                self.losses.resends.push(end, now);
            }
            at += 1;
        }
        resent
    }

    /// Takes the piece that holds `place` for lost: it is to be sent again. `false` if it was
    /// reported, or waits already.
    pub fn lose(&mut self, place: Offset) -> bool {
        let Some(at) = self.index_of(place) else { return false };
        let under_way = self.pieces[at].under_way();
        if under_way {
            self.lose_at(at);
        }
        under_way
    }

    /// Takes all that was not reported for lost, what is under way again included (tcp_enter_loss).
    pub fn lose_all(&mut self) {
        for at in 0..self.pieces.len() {
            if self.pieces[at].under_way() {
                self.lose_at(at);
            }
        }
    }

    pub(super) fn lose_at(&mut self, at: usize) {
        self.losses.lost_ever += 1;
        let piece = &mut self.pieces[at];
        let bytes = piece.len();
        if piece.resent() {
            self.losses.sums.resent.take(bytes);
        }
        if piece.marks & EXPIRED != 0 {
            self.losses.sums.expired.take(bytes);
        }
        if !piece.lost() {
            self.losses.sums.lost.add(bytes);
        }
        piece.marks = piece.marks & !(RESENT | EXPIRED) | LOST;
        if piece.transmissions == 1 {
            self.losses.fresh_lost += 1;
            self.losses.lost = self.losses.lost.min(self.base + at as u64);
        } else {
            let end = piece.end();
            self.add_relost(end);
        }
    }

    pub(super) fn add_relost(&mut self, end: Offset) {
        let before = self.losses.relost.partition_point(|&other| other < end);
        if self.losses.relost.get(before) != Some(&end) {
            self.losses.relost.insert(before, end);
        }
    }

    /// Nothing was lost after all: what waits is under way (tcp_undo_cwnd_reduction).
    pub fn unmark_lost(&mut self) {
        let losses = &mut *self.losses;
        for piece in &mut self.pieces {
            if piece.waits() && piece.transmissions > 1 {
                losses.resends.restore(piece, losses.passed_until);
            }
            piece.marks &= !LOST;
        }
        self.losses.sums.lost = Count::default();
        self.losses.fresh_lost = 0;
        self.losses.relost.clear();
        self.losses.once = self.base;
        self.losses.expired = self.base;
    }
}
