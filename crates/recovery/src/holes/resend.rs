//! What is sent again from the holes.
//!
//! Sources: tcp_sack.c of main 2024 (tcp_sack_output, tcp_sack_partialack, tcp_sack_adjust,
//! tcp_sack_lost_retransmission, tcp_resend_sackholes, tcp_free_sackholes), tcp_output.c (the mark of
//! what was resent).

use units::Offset;

use super::{Hole, Holes};
use crate::dsack::Block;
use crate::ranges::partition;

/// What a rescue retransmission depends on (RFC 6675 section 4, rule 4 of NextSeg).
#[derive(Debug, Clone, Copy)]
pub struct Rescue {
    /// What was acknowledged.
    pub th_ack: Offset,
    /// Behind the last byte of data sent, a FIN not counted.
    pub high_data: Offset,
    /// Where the recovery ends.
    pub snd_recover: Offset,
    /// Largest segment.
    pub maxseg: u32,
}

/// A partial acknowledgment without blocks, before `snd_una` moves.
#[derive(Debug, Clone, Copy)]
pub struct PartialAck {
    /// What was acknowledged.
    pub th_ack: Offset,
    /// Oldest byte not acknowledged before it.
    pub snd_una: Offset,
    /// Next byte to send.
    pub snd_nxt: Offset,
    /// Where the recovery ends.
    pub snd_recover: Offset,
    /// Largest segment.
    pub maxseg: u32,
    /// Slow-start threshold.
    pub ssthresh: u64,
}

impl Holes {
    /// Where to resend from, up to the end of that hole (tcp_sack_output); `None` if all holes were
    /// resent. What lies beyond `snd_recover` waits for the next recovery: the caller's part.
    pub fn next_hole(&mut self) -> Option<Block> {
        let from = self.next?;
        let at = (from..self.holes.len()).find(|&at| self.holes[at].rxmit < self.holes[at].end)?;
        self.next = Some(at);
        Some((self.holes[at].rxmit, self.holes[at].end))
    }

    /// `bytes` from where [`Holes::next_hole`] pointed left again.
    pub fn resent(&mut self, bytes: u64, snd_recover: Offset) {
        let Some(hole) = self.next.and_then(|next| self.holes.get_mut(next)) else { return };
        self.sack_bytes_rexmit -= hole.resent();
        let rxmit = (hole.rxmit + bytes).min(hole.end);
        hole.rxmit = mark(rxmit, hole.end, self.params.lrd, snd_recover);
        self.sack_bytes_rexmit += hole.resent();
    }

    /// Has a retransmission been lost (tcp_sack_lost_retransmission)? To be asked in recovery, after
    /// every acknowledgment that changed something. If so, holes that were resent whole before
    /// `snd_fack` go again from the first on; the congestion signal and the window are the caller's.
    pub fn lost_retransmission(&mut self, snd_recover: Offset) -> bool {
        let fack = self.snd_fack;
        let resent = |hole: &Hole| hole.rxmit >= hole.end && hole.rxmit <= fack;
        if !self.params.lrd || fack <= snd_recover || !self.holes.front().is_some_and(resent) {
            return false;
        }
        self.next = Some(0);
        for hole in self.holes.iter_mut().filter(|hole| resent(hole)) {
            hole.rxmit = hole.start;
        }
        true
    }

    /// Opens a hole of one segment at the end where a recovery has no hole left but is not through:
    /// the last segments may be missing too (tcp_sack_partialack; RFC 6675's rescue).
    pub fn rescue(&mut self, rescue: &Rescue) -> bool {
        let end = rescue.high_data.min(rescue.snd_recover);
        if rescue.th_ack >= end || !self.holes.is_empty() || self.delivered == 0 {
            return false;
        }
        self.snd_fack = rescue.th_ack.max(self.snd_fack);
        let segment = Offset(end.0.saturating_sub(u64::from(rescue.maxseg)));
        let start = segment.max(rescue.th_ack);
        let opened = self.insert(0, Hole { start, end, rxmit: start });
        if opened {
            self.hole_bytes += end - start;
        }
        opened
    }

    /// The window after a partial acknowledgment without blocks: room for one or two segments
    /// (tcp_sack_partialack). 32-bit arithmetic: where less was sent since the recovery point than
    /// is taken off, 14.3's sum wraps and the threshold bounds it.
    pub fn partial_ack_window(&self, ack: &PartialAck) -> u64 {
        let maxseg = u64::from(ack.maxseg.max(1));
        let segments = if ack.th_ack.since(ack.snd_una).get() / maxseg >= 2 { 2 } else { 1 };
        let (nxt, resent) = (ack.snd_nxt.0 as i64, self.sack_bytes_rexmit as i64);
        let base = if self.params.partial_by_pipe {
            let out = nxt - ack.th_ack.0 as i64 + resent;
            (out - self.sacked_bytes as i64 - self.lost_bytes as i64).max(maxseg as i64)
        } else {
            resent + nxt - ack.snd_recover.0 as i64
        };
        let window = base + (segments * maxseg) as i64;
        u64::from(window as u32).min(ack.ssthresh)
    }

    /// The retransmission timer fired for the `shift`-th time in a row, from 1.
    pub fn on_timeout(&mut self, shift: u32) {
        if shift > 1 || !self.params.keeps_at_timeout {
            self.clear();
            return;
        }
        for hole in &mut self.holes {
            hole.rxmit = hole.start;
        }
        self.next = (!self.holes.is_empty()).then_some(0);
        self.sack_bytes_rexmit = 0;
    }

    /// Forgets all holes (tcp_free_sackholes).
    pub fn clear(&mut self) {
        self.holes.clear();
        self.next = None;
        self.sack_bytes_rexmit = 0;
        self.hole_bytes = 0;
        if self.params.clears_sums {
            self.sacked_bytes = 0;
            self.lost_bytes = 0;
            self.delivered = 0;
        }
    }

    /// `snd_nxt` after a timeout, moved over what was reported, and the bytes reported below it
    /// (tcp_sack_adjust).
    pub fn adjust(&self, snd_nxt: Offset) -> (Offset, u64) {
        if self.holes.is_empty() {
            return (snd_nxt, 0);
        }
        let at = partition(&self.holes, |hole| hole.end <= snd_nxt);
        if snd_nxt >= self.snd_fack || at == self.holes.len() {
            return (snd_nxt.max(self.snd_fack), self.sacked_bytes);
        }
        if at == 0 {
            // The kernel does not look before the first hole.
            return (snd_nxt, 0);
        }
        let gaps = self.holes.range(..at).zip(self.holes.range(1..));
        let reported = gaps.map(|(below, above)| above.start.since(below.end).get()).sum();
        (snd_nxt.max(self.holes[at].start), reported)
    }

    /// How far the hole from which [`Holes::next_hole`] points is resent.
    pub fn resent_up_to(&self) -> Option<Offset> {
        let hole = self.next.and_then(|next| self.holes.get(next))?;
        Some(hole.rxmit.min(hole.end))
    }
}

/// How far a hole was resent; one resent whole gets the end of the recovery for a mark, so that
/// reports from beyond it prove the retransmission lost.
pub(super) fn mark(rxmit: Offset, end: Offset, lrd: bool, snd_recover: Offset) -> Offset {
    if lrd && rxmit >= end { snd_recover.max(rxmit) } else { rxmit }
}
