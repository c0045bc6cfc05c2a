//! FreeBSD's scoreboard of the base stack: what the receiver lacks.
//!
//! Sources: tcp_sack.c of main 2024 (tcp_sack_doack) and tcp_input.c (tcp_compute_pipe). What is sent
//! again from the holes is in `resend.rs`.
//!
//! Holes lie between blocks that were reported, sorted. Cost of an acknowledgment: a binary search
//! per block, the holes it closes, and moving at most half the holes over where one is opened or
//! closed in the middle; with the kernel's bound of 128 holes that is at most 64 records. The sum of
//! what is not yet lost looks at three holes at most. Nothing is allocated once the list has grown.
//!
//! Three accidents of the kernel are kept. Where an acknowledgment passes `snd_fack` while holes are
//! there, `sacked_bytes` is left too high until the next block comes on an empty scoreboard. Neither
//! a retransmission found lost nor a rescue that arrived is taken off `sack_bytes_rexmit`.

mod resend;

use std::collections::VecDeque;

use units::Offset;

use crate::dsack::Block;
use crate::ranges::partition;

use resend::mark;
pub use resend::{PartialAck, Rescue};

/// Blocks above which a hole is lost (`tcprexmtthresh`).
const DUP_THRESHOLD: u32 = 3;
/// Blocks of one acknowledgment at most (`TCP_MAX_SACK`).
const MAX_BLOCKS: usize = 4;

/// What versions of the scoreboard differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct HolesParams {
    /// Holes at most (`net.inet.tcp.sack.maxholes`): a block that needs one more is not taken in.
    pub max_holes: usize,
    /// Blocks shorter than `t_maxseg` - 40 are ignored unless they reach `snd_max`.
    pub ignore_short: bool,
    /// A hole that was split is told apart from other changes (`SACK_NEWLOSS`).
    pub new_loss: bool,
    /// A retransmission that is lost is found (`net.inet.tcp.do_lrd`).
    pub lrd: bool,
    /// An acknowledgment beyond `snd_fack` moves it and counts as delivered before the holes below it
    /// do (tcp_sack_doack of 14.0 and later).
    pub pulls_fack: bool,
    /// The first timeout in a row keeps the holes and resends them (tcp_resend_sackholes of main);
    /// else each forgets them (tcp_free_sackholes).
    pub keeps_at_timeout: bool,
    /// Forgetting the holes forgets the sums beside them too (tcp_free_sackholes of main).
    pub clears_sums: bool,
    /// A partial acknowledgment without blocks opens the window by one or two segments beyond the
    /// pipe, not beyond what was sent in the recovery (tcp_sack_partialack of main).
    pub partial_by_pipe: bool,
    /// What counts as under way.
    pub pipe: PipeRule,
}

/// How the bytes under way are counted (tcp_compute_pipe).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum PipeRule {
    /// All that is not acknowledged (13.0, where `rfc6675_pipe` is off).
    Outstanding,
    /// Less what was reported, and what went again counts twice (14.3).
    Sacked,
    /// Less what is lost besides (main, 2024).
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
        keeps_at_timeout: false,
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
        keeps_at_timeout: true,
        clears_sums: true,
        partial_by_pipe: true,
        pipe: PipeRule::SackedAndLost,
    };
    /// RFC 6675, which knows no bound; this one holds any window that scaling allows.
    pub const RFC: Self =
        Self { max_holes: 1 << 20, ignore_short: false, lrd: false, ..Self::FREEBSD_MAIN };
}

/// A hole: bytes the receiver lacks below what it has reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Hole {
    /// First byte.
    pub start: Offset,
    /// Behind the last byte.
    pub end: Offset,
    /// How far it has been resent; at `start` if not at all.
    pub rxmit: Offset,
}

impl Hole {
    /// Bytes of it that were resent.
    fn resent(&self) -> u64 {
        self.rxmit.min(self.end).since(self.start).get()
    }

    fn bytes(&self) -> u64 {
        self.end.since(self.start).get()
    }
}

/// An acknowledgment and where the sender stood before it.
#[derive(Debug, Clone, Copy)]
pub struct SackInput<'a> {
    /// What it acknowledges.
    pub th_ack: Offset,
    /// Its blocks, at most four; empty without the option.
    pub blocks: &'a [Block],
    /// Oldest byte not acknowledged before it.
    pub snd_una: Offset,
    /// Behind the highest byte sent.
    pub snd_max: Offset,
    /// Where the recovery ends.
    pub snd_recover: Offset,
    /// Largest segment, options not deducted (`t_maxseg`).
    pub t_maxseg: u32,
}

/// What an acknowledgment changed (`sackstatus_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Changed {
    /// Nothing new was reported (`SACK_NOCHANGE`).
    #[default]
    None,
    /// Something new arrived (`SACK_CHANGE`).
    Change,
    /// A hole was split, or there was no room for one: more is missing (`SACK_NEWLOSS`).
    NewLoss,
}

/// What came of an acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Update {
    /// What changed.
    pub changed: Changed,
    /// Bytes newly known to have arrived, by the scoreboard's account (`delivered_data`). An
    /// acknowledgment without blocks on an empty scoreboard gives 0: its bytes are the caller's.
    pub delivered: u64,
}

/// The scoreboard of one connection.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Holes {
    params: HolesParams,
    /// By place.
    holes: VecDeque<Hole>,
    /// The hole to resend from next (`sackhint.nexthole`).
    next: Option<usize>,
    snd_fack: Offset,
    sacked_bytes: u64,
    sack_bytes_rexmit: u64,
    hole_bytes: u64,
    lost_bytes: u64,
    /// What the last update delivered (`delivered_data`), until another does.
    delivered: u64,
}

impl Holes {
    /// A scoreboard without holes.
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

    /// Nothing is missing below what was reported.
    pub fn is_empty(&self) -> bool {
        self.holes.is_empty()
    }

    /// Number of holes.
    pub fn len(&self) -> usize {
        self.holes.len()
    }

    /// The holes, by place.
    pub fn iter(&self) -> impl Iterator<Item = &Hole> {
        self.holes.iter()
    }

    /// Behind the highest byte reported; of no meaning while there are no holes.
    pub const fn snd_fack(&self) -> Offset {
        self.snd_fack
    }

    /// Bytes reported above what is acknowledged.
    pub const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Bytes of holes that were resent.
    pub const fn sack_bytes_rexmit(&self) -> u64 {
        self.sack_bytes_rexmit
    }

    /// Bytes of holes that are taken for lost: at least three blocks lie above them, or more than
    /// two segments were reported there.
    pub const fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Bytes in flight, of those between `snd_una` and `snd_max`. The kernel's accidents can make it
    /// negative.
    pub fn pipe(&self, snd_una: Offset, snd_max: Offset) -> i64 {
        let outstanding = snd_max.since(snd_una).get() as i64;
        let resent = self.sack_bytes_rexmit as i64;
        match self.params.pipe {
            PipeRule::Outstanding => outstanding,
            PipeRule::Sacked => outstanding + resent - self.sacked_bytes as i64,
            PipeRule::SackedAndLost => {
                outstanding + resent - self.sacked_bytes as i64 - self.lost_bytes as i64
            }
        }
    }

    /// Bytes that the last acknowledgment with something to say of holes delivered
    /// (`sackhint.delivered_data`).
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// An acknowledgment came that says nothing of holes while there are none.
    pub const fn forget_sacked(&mut self) {
        self.sacked_bytes = 0;
    }

    /// A recovery has ended (cc_post_recovery of 14.0 and later).
    pub const fn forget_delivered(&mut self) {
        self.delivered = 0;
    }

    /// `snd_fack` is brought back between `snd_una` and `snd_max` (cc_cong_signal and
    /// cc_post_recovery of main).
    pub fn bound_fack(&mut self, snd_una: Offset, snd_max: Offset) {
        if self.params.clears_sums && (self.snd_fack < snd_una || self.snd_fack > snd_max) {
            self.snd_fack = snd_una;
        }
    }

    /// Takes in an acknowledgment (tcp_sack_doack); to be called before `snd_una` moves.
    pub fn update(&mut self, ack: &SackInput<'_>) -> Update {
        let mut update = Update::default();
        let mut blocks = [(Offset(0), Offset(0)); MAX_BLOCKS + 1];
        let mut count = 0;
        let mut left_edge = 0;
        // What is acknowledged counts as a block where there are holes.
        if ack.snd_una < ack.th_ack && !self.holes.is_empty() {
            left_edge = ack.th_ack - ack.snd_una;
            blocks[count] = (ack.snd_una, ack.th_ack);
            count += 1;
            if self.params.pulls_fack && self.snd_fack < ack.th_ack {
                update.delivered += left_edge;
                self.snd_fack = ack.th_ack;
                update.changed = Changed::Change;
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
        let below = self.reach(ack, blocks, &mut update);
        for &(start, end) in blocks[..below].iter().rev() {
            self.cut(start, end, ack.snd_recover, &mut update);
        }
        if ack.blocks.is_empty() {
            // No duplicate, and a rescue may follow.
            update.changed = Changed::None;
        } else if update.changed == Changed::NewLoss && !self.params.new_loss {
            update.changed = Changed::Change;
        }
        self.delivered = update.delivered;
        self.sacked_bytes = (self.sacked_bytes + update.delivered).saturating_sub(left_edge);
        if self.params.pipe == PipeRule::SackedAndLost {
            self.lost_bytes = self.hole_bytes - self.not_lost(ack.t_maxseg);
        }
        update
    }

    /// A duplicate's block lies below, one beyond `snd_max` is a lie.
    fn acceptable(&self, ack: &SackInput<'_>, (start, end): Block) -> bool {
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
    /// how many blocks, sorted by their ends, are left to be cut out of the holes.
    fn reach(&mut self, ack: &SackInput<'_>, blocks: &[Block], update: &mut Update) -> usize {
        let (start, end) = blocks[blocks.len() - 1];
        if self.snd_fack >= start {
            if self.snd_fack < end {
                update.delivered += end - self.snd_fack;
                self.snd_fack = end;
                update.changed = Changed::Change;
            }
            return blocks.len();
        }
        if let Some(rescue) = self.holes.back_mut().filter(|last| self.snd_fack <= last.end) {
            // A rescue retransmission arrived: what lies before it is the hole. `snd_fack` is
            // beyond any other hole.
            self.hole_bytes -= rescue.bytes();
            rescue.start = self.snd_fack.max(ack.snd_una).max(ack.th_ack);
            rescue.end = start;
            rescue.rxmit = rescue.start;
            self.hole_bytes += rescue.bytes();
            update.delivered += end - start;
            self.snd_fack = end;
            update.changed = Changed::NewLoss;
            return blocks.len() - 1;
        }
        let hole = Hole { start: self.snd_fack, end: start, rxmit: self.snd_fack };
        if self.insert(self.holes.len(), hole) {
            self.hole_bytes += hole.bytes();
            update.delivered += end - start;
            self.snd_fack = end;
            update.changed = Changed::Change;
            return blocks.len() - 1;
        }
        // No room: blocks that lie wholly beyond are passed over.
        let within = blocks.iter().rposition(|&(start, _)| self.snd_fack >= start);
        let within = within.map_or(0, |at| at + 1);
        if let Some(&(_, end)) = blocks[..within].last().filter(|&&(_, end)| self.snd_fack < end) {
            update.delivered += end - self.snd_fack;
            self.snd_fack = end;
            update.changed = Changed::NewLoss;
        }
        within
    }

    /// Takes `[start, end)` out of the holes.
    fn cut(&mut self, start: Offset, end: Offset, snd_recover: Offset, update: &mut Update) {
        let first = partition(&self.holes, |hole| hole.end <= start);
        let mut behind = partition(&self.holes, |hole| hole.start < end);
        if first >= behind {
            return;
        }
        update.changed = Changed::Change;
        let last = self.holes[behind - 1];
        if last.end > end {
            if last.start < start {
                self.split(behind - 1, start, end, snd_recover, update);
                return;
            }
            self.trim_start(behind - 1, end, update);
            behind -= 1;
        }
        let mut gone = first;
        if gone < behind && self.holes[gone].start < start {
            self.trim_end(gone, start, snd_recover, update);
            gone += 1;
        }
        self.remove(gone, behind, update);
    }

    fn trim_start(&mut self, at: usize, start: Offset, update: &mut Update) {
        let hole = &mut self.holes[at];
        self.sack_bytes_rexmit -= hole.resent();
        let bytes = start - hole.start;
        hole.start = start;
        hole.rxmit = hole.rxmit.max(start);
        self.sack_bytes_rexmit += hole.resent();
        self.hole_bytes -= bytes;
        update.delivered += bytes;
    }

    fn trim_end(&mut self, at: usize, end: Offset, snd_recover: Offset, update: &mut Update) {
        let lrd = self.params.lrd;
        let hole = &mut self.holes[at];
        self.sack_bytes_rexmit -= hole.resent();
        let bytes = hole.end - end;
        hole.end = end;
        hole.rxmit = mark(hole.rxmit.min(end), end, lrd, snd_recover);
        self.sack_bytes_rexmit += hole.resent();
        self.hole_bytes -= bytes;
        update.delivered += bytes;
    }

    fn split(
        &mut self,
        at: usize,
        start: Offset,
        end: Offset,
        snd_recover: Offset,
        update: &mut Update,
    ) {
        update.changed = Changed::NewLoss;
        let hole = self.holes[at];
        let upper = Hole { start: end, end: hole.end, rxmit: hole.rxmit.max(end) };
        if !self.insert(at + 1, upper) {
            return;
        }
        let lrd = self.params.lrd;
        let lower = &mut self.holes[at];
        lower.end = start;
        lower.rxmit = mark(lower.rxmit.min(start), start, lrd, snd_recover);
        self.sack_bytes_rexmit -= hole.resent();
        self.sack_bytes_rexmit += self.holes[at].resent() + upper.resent();
        self.hole_bytes -= end - start;
        update.delivered += end - start;
    }

    /// Removes the holes from `first` to before `behind`.
    fn remove(&mut self, first: usize, behind: usize, update: &mut Update) {
        for hole in self.holes.range(first..behind) {
            self.hole_bytes -= hole.bytes();
            self.sack_bytes_rexmit -= hole.resent();
            update.delivered += hole.bytes();
        }
        self.holes.drain(first..behind);
        self.next = self.next.and_then(|next| {
            let next =
                if next < first { next } else { next.saturating_sub(behind - first).max(first) };
            (next < self.holes.len()).then_some(next)
        });
    }

    /// Opens a hole; `false` if there is no room.
    fn insert(&mut self, at: usize, hole: Hole) -> bool {
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

    /// Bytes of holes with fewer than three blocks above and at most two segments reported there.
    fn not_lost(&self, t_maxseg: u32) -> u64 {
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
