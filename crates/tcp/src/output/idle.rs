//! Passes without data to send, and pure ACKs.

use cc::Controller;
use machine::Cx;
use packet::{Flags, Segment};
use record::{Event, Recorder, SendLimit, SentKind};
use units::unlikely;

use crate::connection::Connection;
use crate::endpoint::{TcpEndpoint, TcpState};
use crate::loss::LossDetector;
use crate::state::{ReceiveSide, SendSide};

impl TcpEndpoint {
    /// Has all data been sent, with nothing else to do but perhaps to acknowledge? This is the case
    /// in most passes of a receiver, and of a sender limited by its application or send buffer.
    #[inline(always)]
    pub(super) fn nothing_to_send(&self) -> bool {
        let snd = &self.snd;
        let quiet = match &snd.loss_detector {
            LossDetector::RackTlp(loss) => !loss.probe_is_due() && !snd.scoreboard.any_lost(),
            LossDetector::FreeBsdRack(rack) => !rack.is_entered(),
            LossDetector::Sack(_) | LossDetector::NewReno => true,
        };
        self.conn.state == TcpState::Established
            && snd.nxt == snd.max
            && snd.nxt == self.snd.data_end()
            && (snd.buffer.used() == 0 || self.conn.queues_packets())
            && quiet
            && self.reset.is_none()
            && snd.rexmt.head.is_none()
            && snd.probe.segment.is_none()
            && snd.rates.is_none()
            && !self.snd.cc.in_recovery()
    }

    /// A pass without data to send: a shortened [`TcpEndpoint::pass`].
    #[inline(always)]
    pub(super) fn rest<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        if core::mem::take(&mut self.snd.call.first_pass) {
            self.snd.call.idle = self.snd.max == self.snd.una;
            self.snd.call.nxt_at_call = self.snd.nxt;
        }
        // Linux looks at the window only where it has sent something or would (tcp_push_pending_frames).
        let looks = self.snd.nxt != self.snd.call.nxt_at_call
            || (self.snd.buffer.used() > 0 && !self.conn.queues_packets());
        if looks {
            // Is the window full of whole packets? The test needs no division.
            let full = (self.snd.packets_in_flight() + 1) * self.conn.mss()
                > self.snd.send_window(&self.conn);
            self.snd.validate_window(full);
        }
        let why =
            if unlikely(self.snd.buffer.fin) { SendLimit::Done } else { SendLimit::Application };
        self.snd.end_pass(&self.conn, cx, why);
        if self.rcv.ack_now || self.rcv.window_update_due(&self.conn, &self.timers) {
            self.build_ack(cx, slot);
            return Ok(());
        }
        Err(why)
    }

    /// The pass after a packet that filled the congestion window: a shortened
    /// [`TcpEndpoint::pass`].
    pub(super) fn end_full_window<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        self.snd.validate_window(true);
        self.snd.end_pass(&self.conn, cx, SendLimit::CongestionWindow);
        if self.rcv.ack_now || self.rcv.window_update_due(&self.conn, &self.timers) {
            self.build_ack_cold(cx, slot);
            return Ok(());
        }
        Err(SendLimit::CongestionWindow)
    }

    /// Builds a pure ACK.
    #[inline(always)]
    pub(super) fn build_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        // A pure ACK carries the sequence number of the next new byte (FreeBSD uses snd_max, but
        // snd_nxt while it probes a zero window).
        let probes =
            self.snd.probe.persisting && matches!(self.snd.loss_detector, LossDetector::Sack(_));
        let at = if unlikely(probes) { self.snd.nxt } else { self.snd.max };
        self.write_header(cx.now, at, 0, Flags::ACK, slot);
        if self.rcv.has_blocks(&self.conn) {
            self.rcv.write_blocks(&self.conn, 0, slot);
        }
        if unlikely(self.snd.is_rate_based()) {
            self.snd.ack_departs(cx.now);
        }
        cx.emit_with_state(&self.snd.with(&self.conn), || {
            let at = self.conn.payload_offset(at);
            Event::Sent { at, len: 0, kind: SentKind::Ack }
        });
    }

    pub(super) fn build_ack_cold<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        self.build_ack(cx, slot);
    }
}

impl ReceiveSide {
    /// Are there SACK blocks to send?
    #[inline(always)]
    pub(super) fn has_blocks(&self, conn: &Connection) -> bool {
        if let Some(report) = &self.report {
            return conn.negotiated.sack && !report.is_empty();
        }
        conn.negotiated.sack && (self.duplicate.0.is_some() || !self.reassembly.is_empty())
    }

    /// Writes SACK blocks into a segment with `len` bytes of payload.
    pub(super) fn write_blocks(&mut self, conn: &Connection, len: u64, slot: &mut Segment) {
        let most_blocks = if conn.negotiated.timestamps { 3 } else { 4 };
        // Blocks fit only beside little data.
        let fits = len == 0 || len + 4 + 8 * most_blocks as u64 <= conn.mss();
        if let Some(report) = &mut self.report {
            if fits {
                slot.options = report.blocks(self.irs, most_blocks).into();
            }
            report.on_sent(self.nxt);
            return;
        }
        if fits {
            let duplicate = self.duplicate.0;
            if duplicate.is_some() {
                self.duplicate.0 = None;
            }
            let blocks = self.reassembly.sack_blocks(self.irs, most_blocks, duplicate);
            slot.options = blocks.into();
        }
    }
}

impl SendSide {
    /// Ends a call because nothing can be sent.
    #[inline(always)]
    pub(super) fn end_pass<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        why: SendLimit,
    ) {
        self.call.due = false;
        self.validate_bytes(conn, Some(why));
        if why != self.call.waiting {
            cx.emit(|| Event::SendLimited(why));
        }
        self.call.waiting = why;
        if core::mem::take(&mut self.call.check_space) {
            self.wake_writer(conn, cx);
        }
    }
}
