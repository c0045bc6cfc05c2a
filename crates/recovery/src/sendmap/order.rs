//! The pieces by the time they were sent, and by what is to be sent again.

use std::collections::VecDeque;

use units::{Instant, Offset};

use super::SendMap;
use super::piece::{EXPIRED, PASSED, Piece, WAS_PASSED};

/// When something left, and its end: of pieces sent together, the lowest is the oldest.
pub(super) type Time = (Instant, Offset);

/// Pieces sent again, in the order of time. An entry is stale once its piece was reported,
/// acknowledged, lost or sent once more.
#[derive(Debug, Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Resends {
    /// End of a piece, which stays when it is acknowledged in part, and when it was sent.
    entries: VecDeque<(Offset, Instant)>,
    /// Entries dropped since the map began.
    dropped: u64,
    /// Number, counted since the map began, of the first that has not been passed.
    passed: u64,
}

impl Resends {
    pub(super) const fn new() -> Self {
        Self { entries: VecDeque::new(), dropped: 0, passed: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn push(&mut self, end: Offset, now: Instant) {
        self.entries.push_back((end, now));
    }

    /// Drops what is acknowledged as far as it stands in front.
    pub(super) fn acknowledge(&mut self, una: Offset, all: bool) {
        while self.entries.front().is_some_and(|&(end, _)| all || end <= una) {
            self.pop();
        }
    }

    /// None of them counts as passed.
    pub(super) const fn restart(&mut self) {
        self.passed = self.dropped;
    }

    fn pop(&mut self) {
        self.entries.pop_front();
        self.dropped += 1;
    }

    /// A piece sent again counts as under way once more, at the time it was sent.
    pub(super) fn restore(&mut self, piece: &mut Piece, passed_until: Time) {
        let entry = (piece.end(), piece.sent_at);
        let time = |&(end, sent_at): &(Offset, Instant)| (sent_at, end);
        let at = self.entries.partition_point(|other| time(other) < time(&entry));
        if self.entries.get(at) == Some(&entry) {
            return;
        }
        self.entries.insert(at, entry);
        self.passed = self.passed.max(self.dropped);
        if time(&entry) < passed_until {
            piece.marks |= PASSED;
            self.passed += 1;
        }
    }

    /// A piece was cut in two: `lower`, and what ends at `upper_end`.
    pub(super) fn cut(&mut self, lower: &Piece, upper_end: Offset) {
        // In the order of time; what left together lies side by side.
        let first = self.entries.partition_point(|&(_, sent_at)| sent_at < lower.sent_at);
        let together = self.entries.range(first..);
        let mut together = together.take_while(|&&(_, sent_at)| sent_at == lower.sent_at);
        let Some(nth) = together.position(|&(end, _)| end == upper_end) else { return };
        let at = first + nth;
        self.entries.insert(at, (lower.end(), lower.sent_at));
        self.passed += u64::from(self.dropped + (at as u64) < self.passed);
    }
}

impl SendMap {
    /// The piece under way that was sent longest ago; of those sent together, the lowest.
    pub fn oldest(&mut self) -> Option<&Piece> {
        let at = self.oldest_at()?;
        self.pieces.get(at)
    }

    /// Takes it for lost; returns it as it stood.
    pub fn lose_oldest(&mut self) -> Option<Piece> {
        let at = self.oldest_at()?;
        let piece = self.pieces[at];
        self.lose_at(at);
        Some(piece)
    }

    fn oldest_at(&mut self) -> Option<usize> {
        self.losses.once = self.losses.once.max(self.base);
        let once = loop {
            match self.index(self.losses.once) {
                Some(at) if !self.pieces[at].once() => self.losses.once += 1,
                found => break found,
            }
        };
        let again = loop {
            let Some(&entry) = self.losses.resends.entries.front() else { break None };
            match self.live(entry) {
                None => self.losses.resends.pop(),
                found => break found,
            }
        };
        match (once, again) {
            (Some(once), Some(again)) => {
                let piece = &self.pieces[again];
                let first = self.pieces[once].sent_before(piece.sent_at, piece.end());
                Some(if first { once } else { again })
            }
            (once, again) => once.or(again),
        }
    }

    /// The piece of an entry, unless that is stale.
    fn live(&self, (end, sent_at): (Offset, Instant)) -> Option<usize> {
        let at = self.index_of_end(end)?;
        let piece = &self.pieces[at];
        let live = piece.transmissions > 1 && piece.under_way() && piece.sent_at == sent_at;
        live.then_some(at)
    }

    /// What was sent at `sent_at`, up to `end`, has arrived: all under way that was sent before it
    /// has been passed.
    pub fn pass(&mut self, sent_at: Instant, end: Offset) {
        if (sent_at, end) <= self.losses.passed_until {
            return;
        }
        self.losses.passed_until = (sent_at, end);
        self.losses.passed = self.losses.passed.max(self.base);
        while let Some(at) = self.index(self.losses.passed) {
            let piece = &mut self.pieces[at];
            if piece.transmissions == 1 {
                if !piece.sent_before(sent_at, end) {
                    break;
                }
                piece.marks |= PASSED;
            }
            self.losses.passed += 1;
        }
        self.losses.resends.passed = self.losses.resends.passed.max(self.losses.resends.dropped);
        loop {
            let at = (self.losses.resends.passed - self.losses.resends.dropped) as usize;
            let Some(&(end_of, sent)) = self.losses.resends.entries.get(at) else { break };
            if (sent, end_of) >= (sent_at, end) {
                break;
            }
            let piece = self.index_of_end(end_of).map(|at| &mut self.pieces[at]);
            if let Some(piece) = piece.filter(|piece| piece.sent_at == sent) {
                // rack_log_sack_passed: what it was before counts no more.
                piece.marks = piece.marks & !WAS_PASSED | PASSED;
            }
            self.losses.resends.passed += 1;
        }
    }

    /// The time of what has been passed is over: until it is sent again it counts as not under way
    /// (rack_mark_lost, which asks for the time of the first one only).
    pub fn expire_passed(&mut self) {
        self.losses.expired = self.losses.expired.max(self.losses.once).max(self.base);
        while self.losses.expired < self.losses.passed {
            let Some(at) = self.index(self.losses.expired) else { break };
            self.expire(at);
            self.losses.expired += 1;
        }
        let count = self.losses.resends.passed.saturating_sub(self.losses.resends.dropped) as usize;
        for nth in 0..count.min(self.losses.resends.entries.len()) {
            if let Some(at) = self.live(self.losses.resends.entries[nth]) {
                self.expire(at);
            }
        }
    }

    fn expire(&mut self, at: usize) {
        let piece = &mut self.pieces[at];
        if piece.under_way() && piece.passed() && piece.marks & EXPIRED == 0 {
            piece.marks |= EXPIRED;
            self.losses.sums.expired.add(piece.len());
        }
    }

    /// Takes for lost what has been passed and is `expired`; tells how many that are, and which of those
    /// that have been passed and are left was sent last.
    pub fn lose_passed(&mut self, expired: impl Fn(&Piece) -> bool) -> (u64, Option<&Piece>) {
        let mut lost = 0;
        while let Some(at) = self.oldest_at()
            && self.pieces[at].passed()
            && expired(&self.pieces[at])
        {
            self.lose_at(at);
            lost += 1;
        }
        // One sent earlier that nothing has passed, since it left again, must not hide the others.
        loop {
            let Some(at) = self.newest_passed_at() else { return (lost, None) };
            if !expired(&self.pieces[at]) {
                return (lost, self.pieces.get(at));
            }
            self.lose_at(at);
            lost += 1;
        }
    }

    /// Of the pieces under way that have been passed, the one sent last.
    pub fn newest_passed(&mut self) -> Option<&Piece> {
        // Drops what is stale, so that it need not be gone through.
        self.oldest_at()?;
        self.pieces.get(self.newest_passed_at()?)
    }

    /// The same. Runs of reported pieces are jumped over; the cost is that of the stale retransmissions in
    /// between.
    fn newest_passed_at(&self) -> Option<usize> {
        let count = self.losses.resends.passed.saturating_sub(self.losses.resends.dropped) as usize;
        let count = count.min(self.losses.resends.entries.len());
        let again = match count {
            0 => None,
            _ => {
                let mut entries = self.losses.resends.entries.range(..count).rev();
                entries.find_map(|&entry| self.live(entry))
            }
        };
        let once = self.newest_passed_once();
        match (once, again) {
            (Some(once), Some(again)) => {
                let piece = &self.pieces[again];
                let last = !self.pieces[once].sent_before(piece.sent_at, piece.end());
                Some(if last { once } else { again })
            }
            (once, again) => once.or(again),
        }
    }

    /// Of the pieces in flight, the one sent last and the one sent before it.
    pub fn newest_two(&self) -> (Option<&Piece>, Option<&Piece>) {
        let last_once = self.newest_once(self.base + self.pieces.len() as u64);
        let before = last_once.and_then(|at| self.newest_once(self.base + at as u64));
        let again = self.losses.resends.entries.iter().rev().filter_map(|&entry| self.live(entry));
        let mut newest: [Option<&Piece>; 2] = [None; 2];
        for at in again.take(2).chain(last_once).chain(before) {
            let piece = &self.pieces[at];
            let later = |other: &Piece| other.sent_before(piece.sent_at, piece.end());
            if newest[0].is_none_or(later) {
                newest = [Some(piece), newest[0]];
            } else if newest[1].is_none_or(later) {
                newest[1] = Some(piece);
            }
        }
        (newest[0], newest[1])
    }

    /// The last piece sent once and in flight of those before number `behind`; runs of reported
    /// pieces are skipped.
    fn newest_once(&self, mut behind: u64) -> Option<usize> {
        let lowest = self.losses.once.max(self.base);
        while behind > lowest {
            let at = self.index(behind - 1)?;
            let piece = &self.pieces[at];
            if piece.once() {
                return Some(at);
            }
            behind = match self.losses.sacked.start_of_range_before(piece.end()) {
                Some(start) if piece.sacked() => self.base + self.index_of(start)? as u64,
                _ => behind - 1,
            };
        }
        None
    }

    fn newest_passed_once(&self) -> Option<usize> {
        let lowest = self.losses.once.max(self.base);
        let mut behind = self.losses.passed;
        while behind > lowest {
            let at = self.index(behind - 1)?;
            let piece = &self.pieces[at];
            if piece.once() && piece.passed() {
                return Some(at);
            }
            behind = match self.losses.sacked.start_of_range_before(piece.end()) {
                Some(start) if piece.sacked() => self.base + self.index_of(start)? as u64,
                _ => behind - 1,
            };
        }
        None
    }

    /// The lowest piece that is lost and waits to be sent again.
    pub fn next_lost(&mut self) -> Option<&Piece> {
        let mut fresh = None;
        if self.losses.fresh_lost > 0 {
            self.losses.lost = self.losses.lost.max(self.base);
            while let Some(at) = self.index(self.losses.lost) {
                if self.pieces[at].fresh_lost() {
                    fresh = Some(at);
                    break;
                }
                self.losses.lost += 1;
            }
        } else {
            self.losses.lost = self.base + self.pieces.len() as u64;
        }
        let again = loop {
            let Some(&end) = self.losses.relost.front() else { break None };
            match self.index_of_end(end).filter(|&at| self.pieces[at].waits()) {
                None => self.losses.relost.pop_front(),
                found => break found,
            };
        };
        let at = match (fresh, again) {
            (Some(fresh), Some(again)) => fresh.min(again),
            (fresh, again) => fresh.or(again)?,
        };
        self.pieces.get(at)
    }
}
