//! Loss state of FreeBSD's base stack: the scoreboard, PRR's counters, and the rules in which
//! versions differ; `steps` change it, and `base` calls them in the kernel's order.

pub(crate) mod state;
mod steps;

use cc::Controller;
use machine::Cx;
use record::{Cause, Event, Recorder};
use recovery::holes::SackUpdate;
use units::Offset;

use steps::SackSequence;

use super::LossDetector;
use super::base::ProcessedAck;
use crate::connection::Connection;
use crate::received_ack::ReceivedAck;
use crate::sender::Sender;
use crate::state::SendSide;

impl SendSide {
    /// tcp_sack_doack: before `snd_una` moves.
    pub(super) fn sack_update(&mut self, conn: &Connection, received: &ReceivedAck) -> SackUpdate {
        let snd = self.sack_sequence(conn);
        let Some(loss) = self.loss_detector.sack() else { return SackUpdate::default() };
        let update = loss.on_sack(received, &snd, self.sender.cc.recovery_point());
        self.settle_flight();
        update
    }

    /// tcp_do_prr_ack.
    pub(super) fn sack_prr<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck,
    ) {
        let snd = self.sack_sequence(conn);
        let Some(loss) = self.loss_detector.sack() else { return };
        loss.on_prr_ack(ack, &snd, self.sender.rexmt.dup_acks, &mut self.sender.cc);
        self.emit_window(conn, cx, Cause::Recovering);
    }

    /// tcp_compute_pipe; all outstanding data where 13.0 does not call it.
    pub(super) fn computed_pipe(&self) -> i64 {
        let (una, max) = (self.una, self.max);
        match &self.loss_detector {
            LossDetector::Sack(loss) => loss.holes.pipe(una, max),
            _ => max.since(una).get() as i64,
        }
    }

    /// tcp_sack_partialack.
    pub(super) fn sack_partial_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        th_ack: Offset,
    ) {
        let snd = self.sack_sequence(conn);
        let Some(loss) = self.loss_detector.sack() else { return };
        let opened = loss.on_partial_ack(th_ack, &snd, &mut self.sender.cc);
        self.settle_flight();
        if opened {
            cx.emit(|| Event::Lost { packets: 1 });
        }
        self.emit_window(conn, cx, Cause::Recovering);
    }

    /// Handles a retransmission timeout, before the controller is informed.
    pub(crate) fn sack_timeout(&mut self) {
        let shift = self.rexmt.shift;
        if let Some(loss) = self.loss_detector.sack() {
            loss.holes.on_timeout(shift);
            self.settle_flight();
        }
    }

    /// The part of a hole to retransmit now (tcp_output, `sack_rxmit`): where it begins, its
    /// length.
    pub(crate) fn next_hole(&mut self) -> Option<(Offset, u64)> {
        let point = self.cc.recovery_point();
        let window = self.peer.wnd.min(self.cwnd());
        let data_end = self.data_end();
        let loss = self.loss_detector.sack()?;
        let room = window.saturating_sub(loss.holes.sack_bytes_rexmit());
        let (start, end) = loss.holes.next_hole()?;
        // Not beyond the recovery point.
        let left = end.min(point).min(data_end).since(start).get();
        let len = room.min(left);
        (len > 0).then_some((start, len))
    }

    /// Advances `snd_nxt` past SACKed data after a timeout; returns the bytes by which that
    /// enlarges the window (tcp_sack_adjust).
    pub(crate) fn skip_sacked(&mut self, conn: &Connection) -> u64 {
        let LossDetector::Sack(loss) = &self.loss_detector else { return 0 };
        if !conn.negotiated.sack || self.nxt >= self.max {
            return 0;
        }
        let (nxt, reported) = loss.holes.adjust(self.nxt);
        let enlarges = loss.rule.sacked_enlarges_window;
        self.nxt = nxt.min(self.max);
        if enlarges { reported } else { 0 }
    }

    /// Records `len` bytes sent, from a hole or not.
    pub(crate) fn sack_sent(&mut self, len: u64, hole: bool) {
        let reduced = self.in_fast_recovery() || self.rexmt.cwr_end.is_some();
        let point = self.cc.recovery_point();
        let Some(loss) = self.loss_detector.sack() else { return };
        let least = loss.on_sent(len, hole, reduced, point);
        self.settle_flight();
        self.nxt = self.nxt.max(least.unwrap_or(self.nxt));
    }
}

impl Sender {
    /// What the steps of the base stack read.
    pub(super) fn sack_sequence(&self, conn: &Connection) -> SackSequence {
        SackSequence {
            una: self.una,
            nxt: self.nxt,
            max: self.max,
            data_end: self.data_end(),
            mss: conn.negotiated.mss,
            maxseg: conn.negotiated.maxseg,
        }
    }
}
