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
    /// What this acknowledgment delivered ([`super::Update`]).
    pub delivered: u64,
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
        if rescue.th_ack >= end || !self.holes.is_empty() || rescue.delivered == 0 {
            return false;
        }
        self.snd_fack = rescue.th_ack;
        let segment = Offset(end.0.saturating_sub(u64::from(rescue.maxseg)));
        let start = segment.max(rescue.th_ack);
        let opened = self.insert(0, Hole { start, end, rxmit: start });
        if opened {
            self.hole_bytes += end - start;
        }
        opened
    }

    /// The window after a partial acknowledgment of `acked` bytes where PRR is off: room for one or
    /// two segments (tcp_sack_partialack). `sent_since` is `snd_nxt - snd_recover`, which may be
    /// below zero after a timeout.
    pub fn partial_ack_window(
        &self,
        acked: u64,
        sent_since: i64,
        maxseg: u32,
        ssthresh: u64,
    ) -> u64 {
        let maxseg = u64::from(maxseg.max(1));
        let segments = if acked / maxseg >= 2 { 2 } else { 1 };
        let window = self.sack_bytes_rexmit + segments * maxseg;
        window.saturating_add_signed(sent_since).min(ssthresh)
    }

    /// The retransmission timer fired for the `shift`-th time in a row, from 1: the first time all
    /// holes go again, later the reports are no longer believed (RFC 2018 section 8).
    pub fn on_timeout(&mut self, shift: u32) {
        if shift > 1 {
            self.clear();
            return;
        }
        for hole in &mut self.holes {
            hole.rxmit = hole.start;
        }
        self.next = (!self.holes.is_empty()).then_some(0);
        self.sack_bytes_rexmit = 0;
    }

    /// Forgets all that was reported (tcp_free_sackholes).
    pub fn clear(&mut self) {
        self.holes.clear();
        self.next = None;
        self.sacked_bytes = 0;
        self.sack_bytes_rexmit = 0;
        self.hole_bytes = 0;
        self.lost_bytes = 0;
    }

    /// `snd_nxt` after a timeout, moved over what was reported (tcp_sack_adjust).
    pub fn adjust(&self, snd_nxt: Offset) -> Offset {
        if self.holes.is_empty() || snd_nxt >= self.snd_fack {
            return snd_nxt;
        }
        let at = partition(&self.holes, |hole| hole.end <= snd_nxt);
        match self.holes.get(at) {
            // The kernel does not look before the first hole.
            Some(hole) if at > 0 => snd_nxt.max(hole.start),
            Some(_) => snd_nxt,
            None => self.snd_fack,
        }
    }
}

/// How far a hole was resent; one resent whole gets the end of the recovery for a mark, so that
/// reports from beyond it prove the retransmission lost.
pub(super) fn mark(rxmit: Offset, end: Offset, lrd: bool, snd_recover: Offset) -> Offset {
    if lrd && rxmit >= end { snd_recover.max(rxmit) } else { rxmit }
}
