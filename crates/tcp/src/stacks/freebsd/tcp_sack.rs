//! The functions of tcp_sack.c, which change the scoreboard, the window and `snd_nxt`.

use cc::Controller;
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::holes::SackUpdate;
use units::Offset;

use super::FreeBsd;
use super::do_segment::ProcessedAck;
use super::steps::SackSequence;
use crate::connection::Connection;
use crate::received_ack::ReceivedAck;

impl FreeBsd<'_> {
    /// tcp_sack_doack: before `snd_una` moves.
    pub(super) fn sack_doack(&mut self, conn: &Connection, received: &ReceivedAck) -> SackUpdate {
        let snd = self.sack_sequence(conn);
        let update = self.state.on_sack(received, &snd, self.snd.cc.recovery_point());
        self.settle_flight();
        update
    }

    /// tcp_do_prr_ack.
    pub(super) fn do_prr_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck,
    ) {
        let snd = self.sack_sequence(conn);
        self.state.on_prr_ack(ack, &snd, self.snd.rexmt.dup_acks, &mut self.snd.cc);
        self.snd.emit_window(conn, cx, Cause::Recovering);
    }

    /// tcp_compute_pipe; all outstanding data where 13.0 does not call it.
    pub(super) fn compute_pipe(&self) -> i64 {
        let (una, max) = (self.snd.una, self.snd.max);
        self.state.holes.pipe(una, max)
    }

    /// tcp_sack_partialack.
    pub(super) fn sack_partialack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        th_ack: Offset,
    ) {
        let snd = self.sack_sequence(conn);
        let opened = self.state.on_partial_ack(th_ack, &snd, &mut self.snd.cc);
        self.settle_flight();
        if opened {
            cx.emit(|| Event::Lost { packets: 1 });
        }
        self.snd.emit_window(conn, cx, Cause::Recovering);
    }

    /// Handles a retransmission timeout, before the controller is informed.
    pub(super) fn timeout_scoreboard(&mut self) {
        let shift = self.snd.rexmt.shift;
        self.state.holes.on_timeout(shift);
        self.settle_flight();
    }

    /// The part of a hole to retransmit now (tcp_output, `sack_rxmit`): where it begins, its
    /// length.
    pub(super) fn next_hole(&mut self) -> Option<(Offset, u64)> {
        let point = self.snd.cc.recovery_point();
        let window = self.snd.peer.wnd.min(self.snd.cwnd());
        let data_end = self.snd.data_end();
        let room = window.saturating_sub(self.state.holes.sack_bytes_rexmit());
        let (start, end) = self.state.holes.next_hole()?;
        // Not beyond the recovery point.
        let left = end.min(point).min(data_end).since(start).get();
        let len = room.min(left);
        (len > 0).then_some((start, len))
    }

    /// Advances `snd_nxt` past SACKed data after a timeout; returns the bytes by which that
    /// enlarges the window (tcp_sack_adjust).
    pub(super) fn sack_adjust(&mut self, conn: &Connection) -> u64 {
        if !conn.negotiated.sack || self.snd.nxt >= self.snd.max {
            return 0;
        }
        let (nxt, reported) = self.state.holes.adjust(self.snd.nxt);
        let enlarges = self.state.rule.sacked_enlarges_window;
        self.snd.nxt = nxt.min(self.snd.max);
        if enlarges { reported } else { 0 }
    }

    /// Records `len` bytes sent, from a hole or not.
    pub(super) fn sack_sent(&mut self, len: u64, hole: bool) {
        let reduced = self.snd.in_fast_recovery() || self.snd.rexmt.cwr_end.is_some();
        let point = self.snd.cc.recovery_point();
        let least = self.state.on_sent(len, hole, reduced, point);
        self.settle_flight();
        self.snd.nxt = self.snd.nxt.max(least.unwrap_or(self.snd.nxt));
    }

    /// What the steps of the base stack read.
    pub(super) fn sack_sequence(&self, conn: &Connection) -> SackSequence {
        SackSequence {
            una: self.snd.una,
            nxt: self.snd.nxt,
            max: self.snd.max,
            data_end: self.snd.data_end(),
            mss: conn.negotiated.mss,
            maxseg: conn.negotiated.maxseg,
        }
    }
}
