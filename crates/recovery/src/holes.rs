//! FreeBSD's SACK scoreboard of the base stack: a list of holes.
//!
//! Sources: tcp_sack.c of main 2024 (tcp_sack_doack) and tcp_input.c (tcp_compute_pipe).
//! Retransmission from the holes is in `retransmit.rs`.
//!
//! Holes are the sorted gaps between SACKed blocks. Cost of an acknowledgment: a binary search per
//! block, the holes it closes, and shifting at most half the holes where one is inserted or removed
//! in the middle; with the kernel's limit of 128 holes that is at most 64 records. The sum of the
//! bytes not yet lost inspects three holes at most. Nothing is allocated once the list has grown.
//!
//! Three quirks of the kernel are reproduced. Where an acknowledgment passes `snd_fack` while there
//! are holes, `sacked_bytes` stays too high until the next block on an empty scoreboard. Neither a
//! retransmission found lost nor a rescue that arrived is subtracted from `sack_bytes_rexmit`.

mod retransmit;

use std::collections::VecDeque;

use units::Offset;

use crate::dsack::SackRange;
use crate::ranges::partition;

use retransmit::rxmit_mark;
pub use retransmit::{PartialAckInput, RescueInput};

/// Blocks above a hole at which it is lost (`tcprexmtthresh`).
const DUP_THRESHOLD: u32 = 3;
/// Maximum number of blocks per acknowledgment (`TCP_MAX_SACK`).
const MAX_BLOCKS: usize = 4;

/// The differences between versions of the scoreboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct HolesParams {
    /// Maximum number of holes (`net.inet.tcp.sack.maxholes`): a block that needs one more is
    /// ignored.
    pub max_holes: usize,
    /// Blocks shorter than `t_maxseg` - 40 are ignored unless they reach `snd_max`.
    pub ignore_short: bool,
    /// A split hole is distinguished from other changes (`SACK_NEWLOSS`).
    pub new_loss: bool,
    /// Lost retransmission detection (`net.inet.tcp.do_lrd`).
    pub lrd: bool,
    /// An acknowledgment beyond `snd_fack` moves it and counts as delivered before the holes below
    /// it do (tcp_sack_doack of 14.0 and later).
    pub pulls_fack: bool,
    /// The first timeout in a row keeps the holes and retransmits them (tcp_resend_sackholes of
    /// main); otherwise each timeout frees them (tcp_free_sackholes).
    pub keeps_holes_at_rto: bool,
    /// Freeing the holes also clears the counters (tcp_free_sackholes of main).
    pub clears_sums: bool,
    /// A partial acknowledgment without blocks sets the window one or two segments above the pipe,
    /// not above the data sent during recovery (tcp_sack_partialack of main).
    pub partial_by_pipe: bool,
    /// How the pipe is computed.
    pub pipe: PipeRule,
}

/// How bytes in flight are counted (tcp_compute_pipe).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum PipeRule {
    /// All outstanding bytes (13.0, where `rfc6675_pipe` is off).
    Outstanding,
    /// Outstanding bytes less SACKed ones, plus retransmitted ones (14.3).
    Sacked,
    /// The same, less lost bytes (main, 2024).
    SackedAndLost,
}

impl HolesParams {
    /// releng/13.0.
    pub const FREEBSD_13_0: Self = Self {
        max_holes: 128,
        ignore_short: false,
        new_loss: false,
        lrd: false,
        pulls_fack: false,
        keeps_holes_at_rto: false,
        clears_sums: false,
        partial_by_pipe: false,
        pipe: PipeRule::Outstanding,
    };
    /// releng/14.3.
    pub const FREEBSD_14_3: Self =
        Self { new_loss: true, pulls_fack: true, pipe: PipeRule::Sacked, ..Self::FREEBSD_13_0 };
    /// main of October 2024.
    pub const FREEBSD_MAIN: Self = Self {
        max_holes: 128,
        ignore_short: true,
        new_loss: true,
        lrd: true,
        pulls_fack: true,
        keeps_holes_at_rto: true,
        clears_sums: true,
        partial_by_pipe: true,
        pipe: PipeRule::SackedAndLost,
    };
    /// RFC 6675, which has no limit; this one is sufficient for any scaled window.
    pub const RFC: Self =
        Self { max_holes: 1 << 20, ignore_short: false, lrd: false, ..Self::FREEBSD_MAIN };
}

/// A hole: bytes missing at the receiver below the highest SACKed byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct SackHole {
    /// First byte.
    pub start: Offset,
    /// The byte following the last.
    pub end: Offset,
    /// End of the retransmitted part; `start` if none.
    pub rxmit: Offset,
}

impl SackHole {
    /// Bytes of the hole that were retransmitted.
    fn retransmitted_bytes(&self) -> u64 {
        self.rxmit.min(self.end).since(self.start).get()
    }

    fn bytes(&self) -> u64 {
        self.end.since(self.start).get()
    }
}

/// An acknowledgment and the sender's state before it.
#[derive(Debug, Clone, Copy)]
pub struct SackInput<'a> {
    /// Acknowledgment number.
    pub th_ack: Offset,
    /// SACK blocks, at most four; empty without the option.
    pub blocks: &'a [SackRange],
    /// Oldest byte not acknowledged before it.
    pub snd_una: Offset,
    /// The byte following the highest byte sent.
    pub snd_max: Offset,
    /// End of the recovery.
    pub snd_recover: Offset,
    /// Maximum segment size, options included (`t_maxseg`).
    pub t_maxseg: u32,
}

/// Change of the scoreboard by an acknowledgment (`sackstatus_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SackChange {
    /// Nothing new was SACKed (`SACK_NOCHANGE`).
    #[default]
    None,
    /// New data was SACKed (`SACK_CHANGE`).
    NewData,
    /// A hole was split, or the list was full: more is missing (`SACK_NEWLOSS`).
    NewLoss,
}

/// The result of an acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackUpdate {
    /// Change of the scoreboard.
    pub changed: SackChange,
    /// Bytes newly delivered, by the scoreboard's account (`delivered_data`). 0 for an
    /// acknowledgment without blocks on an empty scoreboard: the caller counts its bytes.
    pub delivered: u64,
}

/// The scoreboard of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct SackScoreboard {
    params: HolesParams,
    /// In sequence order.
    holes: VecDeque<SackHole>,
    /// Index of the hole to retransmit from next (`sackhint.nexthole`).
    next: Option<usize>,
    snd_fack: Offset,
    sacked_bytes: u64,
    sack_bytes_rexmit: u64,
    hole_bytes: u64,
    lost_bytes: u64,
    /// Bytes delivered by the last update (`delivered_data`), until the next.
    delivered: u64,
}

impl SackScoreboard {
    /// An empty scoreboard.
    pub const fn new(params: HolesParams) -> Self {
        Self {
            params,
            holes: VecDeque::new(),
            next: None,
            snd_fack: Offset(0),
            sacked_bytes: 0,
            sack_bytes_rexmit: 0,
            hole_bytes: 0,
            lost_bytes: 0,
            delivered: 0,
        }
    }

    /// True if there are no holes.
    pub fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }

    /// Number of holes.
    pub fn len(&self) -> usize {
        self.holes.len()
    }

    /// The holes in sequence order.
    pub fn iter(&self) -> impl Iterator<Item = &SackHole> {
        self.holes.iter()
    }

    /// The byte following the highest SACKed byte; undefined while there are no holes.
    pub const fn snd_fack(&self) -> Offset {
        self.snd_fack
    }

    /// Bytes SACKed above `snd_una`.
    pub const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Retransmitted bytes of holes.
    pub const fn sack_bytes_rexmit(&self) -> u64 {
        self.sack_bytes_rexmit
    }

    /// Bytes of lost holes: with at least three blocks, or more than two segments, SACKed above
    /// them.
    pub const fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Bytes in flight between `snd_una` and `snd_max`. The kernel's quirks can make it negative.
    pub fn pipe(&self, snd_una: Offset, snd_max: Offset) -> i64 {
        snd_max.since(snd_una).get() as i64 + self.flight_correction()
    }

    /// By how much the bytes in flight differ from those outstanding.
    pub fn flight_correction(&self) -> i64 {
        let retransmission = self.sack_bytes_rexmit as i64;
        match self.params.pipe {
            PipeRule::Outstanding => 0,
            PipeRule::Sacked => retransmission - self.sacked_bytes as i64,
            PipeRule::SackedAndLost => {
                retransmission - self.sacked_bytes as i64 - self.lost_bytes as i64
            }
        }
    }

    /// Bytes delivered by the last acknowledgment that updated the scoreboard
    /// (`sackhint.delivered_data`).
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Handles an acknowledgment without blocks on an empty scoreboard.
    pub const fn forget_sacked(&mut self) {
        self.sacked_bytes = 0;
    }

    /// A recovery has ended (cc_post_recovery of 14.0 and later).
    pub const fn forget_delivered(&mut self) {
        self.delivered = 0;
    }

    /// Brings `snd_fack` back between `snd_una` and `snd_max` (cc_cong_signal and cc_post_recovery
    /// of main).
    pub fn clamp_fack(&mut self, snd_una: Offset, snd_max: Offset) {
        if self.params.clears_sums && (self.snd_fack < snd_una || self.snd_fack > snd_max) {
            self.snd_fack = snd_una;
        }
    }

    /// Processes an acknowledgment (tcp_sack_doack); to be called before `snd_una` moves.
    pub fn update(&mut self, ack: &SackInput<'_>) -> SackUpdate {
        let mut update = SackUpdate::default();
        let mut blocks = [(Offset(0), Offset(0)); MAX_BLOCKS + 1];
        let mut count = 0;
        let mut left_edge = 0;
        // The acknowledged range counts as a block if there are holes.
        if ack.snd_una < ack.th_ack && !self.holes.is_empty() {
            left_edge = ack.th_ack - ack.snd_una;
            blocks[count] = (ack.snd_una, ack.th_ack);
            count += 1;
            if self.params.pulls_fack && self.snd_fack < ack.th_ack {
                update.delivered += left_edge;
                self.snd_fack = ack.th_ack;
                update.changed = SackChange::NewData;
            }
        }
        for &block in ack.blocks.iter().take(MAX_BLOCKS) {
            if self.acceptable(ack, block) {
                blocks[count] = block;
                count += 1;
            }
        }
        let blocks = &mut blocks[..count];
        if blocks.is_empty() {
            return update;
        }
        blocks.sort_by_key(|&(_, end)| end);
        if self.holes.is_empty() {
            self.snd_fack = ack.snd_una.max(ack.th_ack);
            self.sacked_bytes = 0;
            self.hole_bytes = 0;
        }
        let below = self.advance_fack(ack, blocks, &mut update);
        for &(start, end) in blocks[..below].iter().rev() {
            self.remove_range(start, end, ack.snd_recover, &mut update);
        }
        if ack.blocks.is_empty() {
            // Not a duplicate ACK; a rescue may follow.
            update.changed = SackChange::None;
        } else if update.changed == SackChange::NewLoss && !self.params.new_loss {
            update.changed = SackChange::NewData;
        }
        self.delivered = update.delivered;
        self.sacked_bytes = (self.sacked_bytes + update.delivered).saturating_sub(left_edge);
        if self.params.pipe == PipeRule::SackedAndLost {
            self.lost_bytes = self.hole_bytes - self.not_lost_bytes(ack.t_maxseg);
        }
        update
    }

    /// Rejects D-SACK blocks, which are below `snd_una`, and blocks beyond `snd_max`.
    fn acceptable(&self, ack: &SackInput<'_>, (start, end): SackRange) -> bool {
        let short = self.params.ignore_short
            && end < ack.snd_max
            && end.since(start).get() < u64::from(ack.t_maxseg.saturating_sub(40));
        end > start
            && start > ack.snd_una
            && start > ack.th_ack
            && start < ack.snd_max
            && end <= ack.snd_max
            && !short
    }

    /// Moves `snd_fack` to the end of the highest block, which may open a hole before it; returns
    /// the number of blocks, sorted by their ends, still to be removed from the holes.
    fn advance_fack(
        &mut self,
        ack: &SackInput<'_>,
        blocks: &[SackRange],
        update: &mut SackUpdate,
    ) -> usize {
        let (start, end) = blocks[blocks.len() - 1];
        if self.snd_fack >= start {
            if self.snd_fack < end {
                update.delivered += end - self.snd_fack;
                self.snd_fack = end;
                update.changed = SackChange::NewData;
            }
            return blocks.len();
        }
        if let Some(rescue) = self.holes.back_mut().filter(|last| self.snd_fack <= last.end) {
            // A rescue retransmission arrived: all before it is the hole. `snd_fack` is beyond any
            // other hole.
            self.hole_bytes -= rescue.bytes();
            rescue.start = self.snd_fack.max(ack.snd_una).max(ack.th_ack);
            rescue.end = start;
            rescue.rxmit = rescue.start;
            self.hole_bytes += rescue.bytes();
            update.delivered += end - start;
            self.snd_fack = end;
            update.changed = SackChange::NewLoss;
            return blocks.len() - 1;
        }
        let hole = SackHole { start: self.snd_fack, end: start, rxmit: self.snd_fack };
        if self.insert_hole(self.holes.len(), hole) {
            self.hole_bytes += hole.bytes();
            update.delivered += end - start;
            self.snd_fack = end;
            update.changed = SackChange::NewData;
            return blocks.len() - 1;
        }
        // The list is full: blocks entirely beyond `snd_fack` are ignored.
        let within = blocks.iter().rposition(|&(start, _)| self.snd_fack >= start);
        let within = within.map_or(0, |at| at + 1);
        if let Some(&(_, end)) = blocks[..within].last().filter(|&&(_, end)| self.snd_fack < end) {
            update.delivered += end - self.snd_fack;
            self.snd_fack = end;
            update.changed = SackChange::NewLoss;
        }
        within
    }

    /// Removes `[start, end)` from the holes.
    fn remove_range(
        &mut self,
        start: Offset,
        end: Offset,
        snd_recover: Offset,
        update: &mut SackUpdate,
    ) {
        let first = partition(&self.holes, |hole| hole.end <= start);
        let mut past = partition(&self.holes, |hole| hole.start < end);
        if first >= past {
            return;
        }
        update.changed = SackChange::NewData;
        let last = self.holes[past - 1];
        if last.end > end {
            if last.start < start {
                self.split(past - 1, start, end, snd_recover, update);
                return;
            }
            self.trim_start(past - 1, end, update);
            past -= 1;
        }
        let mut gone = first;
        if gone < past && self.holes[gone].start < start {
            self.trim_end(gone, start, snd_recover, update);
            gone += 1;
        }
        self.remove(gone, past, update);
    }

    fn trim_start(&mut self, at: usize, start: Offset, update: &mut SackUpdate) {
        let hole = &mut self.holes[at];
        self.sack_bytes_rexmit -= hole.retransmitted_bytes();
        let bytes = start - hole.start;
        hole.start = start;
        hole.rxmit = hole.rxmit.max(start);
        self.sack_bytes_rexmit += hole.retransmitted_bytes();
        self.hole_bytes -= bytes;
        update.delivered += bytes;
    }

    fn trim_end(&mut self, at: usize, end: Offset, snd_recover: Offset, update: &mut SackUpdate) {
        let lrd = self.params.lrd;
        let hole = &mut self.holes[at];
        self.sack_bytes_rexmit -= hole.retransmitted_bytes();
        let bytes = hole.end - end;
        hole.end = end;
        hole.rxmit = rxmit_mark(hole.rxmit.min(end), end, lrd, snd_recover);
        self.sack_bytes_rexmit += hole.retransmitted_bytes();
        self.hole_bytes -= bytes;
        update.delivered += bytes;
    }

    fn split(
        &mut self,
        at: usize,
        start: Offset,
        end: Offset,
        snd_recover: Offset,
        update: &mut SackUpdate,
    ) {
        update.changed = SackChange::NewLoss;
        let hole = self.holes[at];
        let upper = SackHole { start: end, end: hole.end, rxmit: hole.rxmit.max(end) };
        if !self.insert_hole(at + 1, upper) {
            return;
        }
        let lrd = self.params.lrd;
        let lower = &mut self.holes[at];
        lower.end = start;
        lower.rxmit = rxmit_mark(lower.rxmit.min(start), start, lrd, snd_recover);
        self.sack_bytes_rexmit -= hole.retransmitted_bytes();
        self.sack_bytes_rexmit +=
            self.holes[at].retransmitted_bytes() + upper.retransmitted_bytes();
        self.hole_bytes -= end - start;
        update.delivered += end - start;
    }

    /// Removes the holes from index `first` to before `past`.
    fn remove(&mut self, first: usize, past: usize, update: &mut SackUpdate) {
        for hole in self.holes.range(first..past) {
            self.hole_bytes -= hole.bytes();
            self.sack_bytes_rexmit -= hole.retransmitted_bytes();
            update.delivered += hole.bytes();
        }
        self.holes.drain(first..past);
        self.next = self.next.and_then(|next| {
            let next =
                if next < first { next } else { next.saturating_sub(past - first).max(first) };
            (next < self.holes.len()).then_some(next)
        });
    }

    /// Inserts a hole; returns false if the list is full.
    fn insert_hole(&mut self, at: usize, hole: SackHole) -> bool {
        if self.holes.len() >= self.params.max_holes {
            return false;
        }
        self.holes.insert(at, hole);
        self.next = match self.next {
            Some(next) if next >= at => Some(next + 1),
            None => Some(at),
            same => same,
        };
        true
    }

    /// Bytes of holes with fewer than three blocks above and at most two segments SACKed there.
    fn not_lost_bytes(&self, t_maxseg: u32) -> u64 {
        let mut bytes = 0;
        let (mut blocks, mut reported) = (0, 0);
        let mut above = self.snd_fack;
        for hole in self.holes.iter().rev() {
            blocks += 1;
            reported += above.since(hole.end).get();
            above = hole.start;
            if blocks >= DUP_THRESHOLD || reported > u64::from((DUP_THRESHOLD - 1) * t_maxseg) {
                break;
            }
            bytes += hole.bytes();
        }
        bytes
    }
}

#[cfg(test)]
mod tests;
