//! Retransmission from the holes.
//!
//! Sources: tcp_sack.c of main 2024 (tcp_sack_output, tcp_sack_partialack, tcp_sack_adjust,
//! tcp_sack_lost_retransmission, tcp_resend_sackholes, tcp_free_sackholes), tcp_output.c (the
//! update of `rxmit`).

use units::Offset;

use super::{SackHole, SackScoreboard};
use crate::dsack::SackRange;
use crate::ranges::partition;

/// Input of a rescue retransmission (RFC 6675 section 4, rule 4 of NextSeg).
#[derive(Debug, Clone, Copy)]
pub struct RescueInput {
    /// Acknowledgment number.
    pub th_ack: Offset,
    /// The byte following the last data sent, FIN not included.
    pub high_data: Offset,
    /// End of the recovery.
    pub snd_recover: Offset,
    /// Maximum segment size.
    pub maxseg: u32,
}

/// A partial acknowledgment without blocks, before `snd_una` moves.
#[derive(Debug, Clone, Copy)]
pub struct PartialAckInput {
    /// Acknowledgment number.
    pub th_ack: Offset,
    /// Oldest byte not acknowledged before it.
    pub snd_una: Offset,
    /// Next byte to send.
    pub snd_nxt: Offset,
    /// End of the recovery.
    pub snd_recover: Offset,
    /// Maximum segment size.
    pub maxseg: u32,
    /// Slow-start threshold.
    pub ssthresh: u64,
}

impl SackScoreboard {
    /// The next range to retransmit, up to the end of its hole (tcp_sack_output); `None` if all
    /// holes were retransmitted. The caller leaves data beyond `snd_recover` to the next recovery.
    pub fn next_hole(&mut self) -> Option<SackRange> {
        let from = self.next?;
        let at = (from..self.holes.len()).find(|&at| self.holes[at].rxmit < self.holes[at].end)?;
        self.next = Some(at);
        Some((self.holes[at].rxmit, self.holes[at].end))
    }

    /// `bytes` from the range of [`SackScoreboard::next_hole`] were retransmitted.
    pub fn on_retransmit(&mut self, bytes: u64, snd_recover: Offset) {
        let Some(hole) = self.next.and_then(|next| self.holes.get_mut(next)) else { return };
        self.sack_bytes_rexmit -= hole.retransmitted_bytes();
        let rxmit = (hole.rxmit + bytes).min(hole.end);
        hole.rxmit = rxmit_mark(rxmit, hole.end, self.params.lrd, snd_recover);
        self.sack_bytes_rexmit += hole.retransmitted_bytes();
    }

    /// Detects a lost retransmission (tcp_sack_lost_retransmission). To be called in recovery,
    /// after every acknowledgment that changed the scoreboard. If one is found, holes retransmitted
    /// entirely below `snd_fack` are retransmitted once more from the first; the caller does the
    /// congestion signal and the window.
    pub fn lost_retransmission(&mut self, snd_recover: Offset) -> bool {
        let fack = self.snd_fack;
        let retransmission = |hole: &SackHole| hole.rxmit >= hole.end && hole.rxmit <= fack;
        if !self.params.lrd
            || fack <= snd_recover
            || !self.holes.front().is_some_and(retransmission)
        {
            return false;
        }
        self.next = Some(0);
        for hole in self.holes.iter_mut().filter(|hole| retransmission(hole)) {
            hole.rxmit = hole.start;
        }
        true
    }

    /// Opens a hole of one segment at the end if a recovery has no hole left but is not complete:
    /// the last segments may be missing too (tcp_sack_partialack; the rescue of RFC 6675).
    pub fn open_rescue_hole(&mut self, input: &RescueInput) -> bool {
        let end = input.high_data.min(input.snd_recover);
        if input.th_ack >= end || !self.holes.is_empty() || self.delivered == 0 {
            return false;
        }
        self.snd_fack = input.th_ack.max(self.snd_fack);
        let segment = Offset(end.0.saturating_sub(u64::from(input.maxseg)));
        let start = segment.max(input.th_ack);
        let opened = self.insert_hole(0, SackHole { start, end, rxmit: start });
        if opened {
            self.hole_bytes += end - start;
        }
        opened
    }

    /// The window after a partial acknowledgment without blocks: it allows one or two segments
    /// (tcp_sack_partialack). 32-bit arithmetic: where less was sent since the recovery point than
    /// is subtracted, the sum of 14.3 wraps and the threshold limits it.
    pub fn partial_ack_window(&self, ack: &PartialAckInput) -> u64 {
        let maxseg = u64::from(ack.maxseg.max(1));
        let segments = if ack.th_ack.since(ack.snd_una).get() / maxseg >= 2 { 2 } else { 1 };
        let (nxt, retransmission) = (ack.snd_nxt.0 as i64, self.sack_bytes_rexmit as i64);
        let base = if self.params.partial_by_pipe {
            let out = nxt - ack.th_ack.0 as i64 + retransmission;
            (out - self.sacked_bytes as i64 - self.lost_bytes as i64).max(maxseg as i64)
        } else {
            retransmission + nxt - ack.snd_recover.0 as i64
        };
        let window = base + (segments * maxseg) as i64;
        u64::from(window as u32).min(ack.ssthresh)
    }

    /// The retransmission timer fired for the `shift`-th time in a row, from 1.
    pub fn on_timeout(&mut self, shift: u32) {
        if shift > 1 || !self.params.keeps_holes_at_rto {
            self.clear();
            return;
        }
        for hole in &mut self.holes {
            hole.rxmit = hole.start;
        }
        self.next = (!self.holes.is_empty()).then_some(0);
        self.sack_bytes_rexmit = 0;
    }

    /// Frees all holes (tcp_free_sackholes).
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

    /// `snd_nxt` after a timeout, advanced past SACKed data, and the bytes SACKed below it
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
            // The kernel ignores data before the first hole.
            return (snd_nxt, 0);
        }
        let gaps = self.holes.range(..at).zip(self.holes.range(1..));
        let reported = gaps.map(|(below, above)| above.start.since(below.end).get()).sum();
        (snd_nxt.max(self.holes[at].start), reported)
    }

    /// End of the retransmitted part of the hole that [`SackScoreboard::next_hole`] returns.
    pub fn retransmitted_up_to(&self) -> Option<Offset> {
        let hole = self.next.and_then(|next| self.holes.get(next))?;
        Some(hole.rxmit.min(hole.end))
    }
}

/// The `rxmit` of a hole; once retransmitted entirely it gets the recovery point, so that SACKs
/// beyond it prove the retransmission lost.
pub(super) fn rxmit_mark(rxmit: Offset, end: Offset, lrd: bool, snd_recover: Offset) -> Offset {
    if lrd && rxmit >= end { snd_recover.max(rxmit) } else { rxmit }
}
