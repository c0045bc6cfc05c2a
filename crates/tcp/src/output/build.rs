//! Building of segments, and the records of their transmission.

use core::hint::cold_path;

use cc::{Controller, WindowController};
use machine::Cx;
use packet::{Flags, Segment};
use record::{Cause, Event, Purpose, Recorder, SentKind};
use recovery::sendmap::RetransmitResult;
use units::{Duration, Instant, Offset, SeqNum, unlikely};

use super::ack_fields::SenderFields;
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::profile::PushRule;
use crate::segment_plan::SegmentPlan;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::sent;
use crate::stacks::Stack;
use crate::timers::Timers;

impl TcpEndpoint {
    /// Builds a full segment of new data that is not the last, and records its transmission: a
    /// shortened [`TcpEndpoint::build`].
    #[inline(never)]
    pub(super) fn build_new<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        if self.snd.packets_in_flight() == 0 {
            self.snd.begin_flight(&self.conn, cx);
        }
        let fields = self.snd.sender.fields(self.snd.sender.max, self.conn.mss(), Flags::ACK);
        self.rcv.write_header(&self.conn, &mut self.timers, cx.now, &fields, slot);
        self.snd.note_new(&self.conn, &mut self.timers, cx);
    }

    /// Builds a full packet as [`TcpEndpoint::build_new`] does, after another at the same instant and
    /// outside of recovery.
    pub(super) fn build_next<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        let fields = self.snd.sender.fields(self.snd.sender.max, self.conn.mss(), Flags::ACK);
        self.rcv.write_next_header(&self.conn, &mut self.timers, cx.now, &fields, slot);
        self.snd.note_next(&self.conn, &mut self.timers, cx);
    }

    /// Builds the segment and records its transmission.
    pub(crate) fn build<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        plan: &SegmentPlan,
        slot: &mut Segment,
    ) {
        let mut flags = Flags::ACK;
        if plan.push {
            flags |= Flags::PSH;
        }
        if unlikely(plan.fin) {
            flags |= Flags::FIN;
        }
        if unlikely(self.conn.is_tcp_respond(plan)) {
            let fields = self.snd.fields(plan.at, 0, Flags::ACK);
            self.rcv.write_response(&self.conn, cx.now, &fields, slot);
        } else {
            let fields = self.snd.fields(plan.at, plan.len, flags);
            self.rcv.write_header_cold(&self.conn, &mut self.timers, cx.now, &fields, slot);
            if plan.len > self.conn.mss() {
                slot.gso_size = self.conn.negotiated.mss as u16;
            }
            if self.rcv.has_blocks(&self.conn) {
                self.rcv.write_blocks(&self.conn, plan.len, slot);
            }
        }
        self.snd.note_built(&self.conn, &mut self.timers, cx, plan);
    }

    /// Builds a pure ACK.
    #[inline(always)]
    pub(super) fn build_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        let at = self.snd.pure_ack_at();
        let fields = self.snd.ack_fields(at);
        self.rcv.write_header(&self.conn, &mut self.timers, cx.now, &fields, slot);
        if self.rcv.has_blocks(&self.conn) {
            self.rcv.write_blocks(&self.conn, 0, slot);
        }
        self.snd.note_ack(&self.conn, cx, fields.at);
    }

    /// [`TcpEndpoint::build_ack`], once for all callers that are cold.
    pub(super) fn build_ack_cold<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        self.build_ack(cx, slot);
    }

    /// Builds the pending RST.
    #[cold]
    pub(super) fn build_reset<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        (seq, ack): (SeqNum, Option<SeqNum>),
        slot: &mut Segment,
    ) {
        if self.snd.rare.active_reset {
            self.snd.rare.active_reset = false;
            let fields = self.snd.sender.fields(self.snd.sender.nxt, 0, Flags::RST | Flags::ACK);
            self.rcv.write_header_cold(&self.conn, &mut self.timers, cx.now, &fields, slot);
            if self.rcv.has_blocks(&self.conn) {
                self.rcv.write_blocks(&self.conn, 0, slot);
            }
        } else {
            *slot = self.conn.reset_segment(seq, ack);
        }
        let at = self.conn.payload_offset(self.snd.nxt);
        cx.emit(|| Event::Sent { at, len: 0, kind: SentKind::Reset });
    }
}

impl SendSide {
    /// Records the transmission of a planned segment.
    #[inline(always)]
    pub(crate) fn note_planned<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &SegmentPlan,
    ) {
        match plan.kind {
            SentKind::Probe => {
                cold_path();
                self.note_probe(plan.at + plan.len, cx.now);
            }
            _ if plan.len > 0 || plan.fin => self.note_sent(conn, timers, cx, plan),
            _ => {}
        }
        self.emit_sent(conn, cx, plan);
    }

    /// Records the transmission of a full segment of new data that is not the last.
    #[inline(always)]
    fn note_new<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        let at = self.max;
        self.note_full(conn, cx.now);
        if self.cc.in_recovery() {
            self.rack_tlp_sent(conn, conn.mss(), 1, false);
        }
        self.note_flight(conn, timers, cx.now, at);
        self.on_burst_sent(conn, cx, at, self.max);
        self.emit_full_sent(conn, cx, at);
    }

    /// Records the transmission of data or a FIN: advances the sequence variables, starts timers,
    /// updates counters.
    fn note_sent<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &SegmentPlan,
    ) {
        if plan.len > 0 && self.packets_in_flight() == 0 {
            self.begin_flight(conn, cx);
        }
        let timed = matches!(self.stack, Stack::RackTlp(_));
        if plan.at < self.max
            && timed
            && conn.cfg.profile.rules.sending.collapses_retransmissions
            && plan.len <= conn.mss()
        {
            let end = plan.end();
            self.scoreboard.collapse(plan.at, end);
        }
        let SentData { end, repeated, .. } = self.record_sent(conn, cx.now, plan, timed);
        if timed {
            let probe = plan.kind == SentKind::Retransmission(Cause::LossProbe);
            let packets = plan.packets(conn.mss());
            self.rack_tlp_sent(conn, plan.len, packets, repeated && !probe);
        }
        if repeated {
            if conn.cfg.tso {
                self.buffer.on_retransmitted(plan.at, end);
            }
            self.head_retransmitted(conn, timers, cx.now, plan.at);
            self.watch_flight(conn, timers, cx.now);
        } else {
            self.note_flight(conn, timers, cx.now, plan.at);
            self.on_burst_sent(conn, cx, plan.at, end);
        }
    }

    /// Records the first transmission of data at `at`: it is timed, unless other data is.
    #[inline]
    fn note_flight(&mut self, conn: &Connection, timers: &mut Timers, now: Instant, at: Offset) {
        if self.rtt.timing.is_none() {
            self.rtt.timing = Some((at, now));
        }
        self.watch_flight(conn, timers, now);
    }

    /// Ensures that the timers for data in flight run.
    #[inline(always)]
    pub(super) fn watch_flight(&mut self, conn: &Connection, timers: &mut Timers, now: Instant) {
        self.plan_probe_timer(conn, timers, now, false);
        // The retransmission timer is set when the reordering timer has expired.
        if !timers.runs(Purpose::Retransmit) && !timers.runs(Purpose::Reorder) {
            self.arm_retransmit(conn, timers, now);
        }
    }
}

/// Data or a FIN that was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentData {
    /// The offset after it.
    pub(crate) end: Offset,
    /// Some of it was sent before.
    pub(crate) repeated: bool,
    pub(crate) retransmission: RetransmitResult,
}

impl Sender {
    /// Emits the transmission of a segment.
    #[inline(always)]
    pub(crate) fn emit_sent<R: Recorder>(
        &self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        plan: &SegmentPlan,
    ) {
        cx.emit_with_state(&self.with(conn), || {
            let at = conn.payload_offset(plan.at);
            Event::Sent { at, len: plan.len as u32, kind: plan.kind }
        });
    }

    /// Enters data or a FIN that is sent now into the counters and the scoreboard, and advances the
    /// sequence variables. `timed`: lost data is retransmitted at its own offset, whatever the cause.
    #[inline(always)]
    pub(crate) fn record_sent(
        &mut self,
        conn: &Connection,
        now: Instant,
        plan: &SegmentPlan,
        timed: bool,
    ) -> SentData {
        let (mss, end) = (conn.mss(), plan.end());
        let packets = plan.packets(mss);
        if plan.len > 0 {
            self.totals.data_packets += packets;
        }
        let repeated = plan.at < self.max;
        let mut retransmission = RetransmitResult::default();
        if repeated {
            if plan.len > 0 {
                self.totals.retransmitted_packets += packets;
            }
            let probe = plan.kind == SentKind::Retransmission(Cause::LossProbe);
            // Stamped after everything sent at this instant, so that none of it, if it arrives
            // first, seems to have been sent later: in a kernel no two calls share an instant. In a
            // guest they do, and the lower one was sent first (tcp_skb_sent_after).
            let newest = self.scoreboard.last().map_or(now, |last| last.sent_at().max(now));
            let at = newest + Duration::from_nanos(u64::from(!conn.is_of_guest()));
            self.rexmt.last_at = at;
            retransmission = self.scoreboard.retransmit(plan.at, end.min(self.max), at, probe);
        }
        if end > self.max {
            let (at, sent_at) = (plan.at.max(self.max), self.new_data_sent_at(now));
            sent::push(&mut self.scoreboard, at, end, plan.fin, mss, sent_at);
            let marks = conn.cfg.profile.rules.sending.push == PushRule::WriteQueue && conn.cfg.tso;
            let marked = match marks {
                true => self.ends_push(conn, plan.at, plan.at + plan.len),
                false => end >= self.data_end() || plan.len < mss,
            };
            if plan.push && marked {
                // The PSH that ends a burst is only in its clone (__tcp_transmit_skb).
                self.scoreboard.set_push();
            }
        }
        // A segment sent out of order does not move snd_nxt, unless it is the only one outstanding.
        let out_of_turn = match plan.kind {
            SentKind::Retransmission(Cause::FastRetransmit | Cause::PartialAck) => true,
            // Data cut off by a closed window is retransmitted from `snd_nxt` on.
            SentKind::Retransmission(_) => timed && plan.at != self.nxt,
            _ => false,
        };
        if !out_of_turn {
            self.nxt = end;
        }
        self.max = self.max.max(end);
        self.nxt = self.nxt.max(self.una).min(self.max);
        self.last.sent = now;
        if self.measures_rates() {
            self.rates_sent(now, plan.at, end, repeated);
        }
        SentData { end, repeated, retransmission }
    }

    /// What this side writes into the header of `len` bytes at `at`.
    #[inline(always)]
    pub(crate) fn fields(&mut self, at: Offset, len: u64, flags: Flags) -> SenderFields {
        let (marks, ecn) = self.ecn.mark(len > 0 && at >= self.max);
        SenderFields { at, len, flags: flags | marks, ecn }
    }

    /// What this side writes into the header of a pure ACK.
    #[inline(always)]
    pub(crate) fn ack_fields(&mut self, at: Offset) -> SenderFields {
        self.fields(at, 0, Flags::ACK)
    }

    /// Records the transmission of a pure ACK.
    #[inline(always)]
    pub(crate) fn note_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        at: Offset,
    ) {
        if conn.queues_packets() {
            self.last.acked = cx.now;
        }
        if unlikely(self.is_rate_based()) {
            self.ack_departs(cx.now);
        }
        cx.emit_with_state(&self.with(conn), || {
            let at = conn.payload_offset(at);
            Event::Sent { at, len: 0, kind: SentKind::Ack }
        });
    }

    #[inline(always)]
    pub(super) fn note_full(&mut self, conn: &Connection, now: Instant) {
        self.totals.data_packets += 1;
        self.move_full(conn, now, self.max);
        self.last.sent = now;
    }

    /// Records the transmission of a full packet at `at` and advances the sequence variables.
    #[inline(always)]
    pub(super) fn move_full(&mut self, conn: &Connection, now: Instant, at: Offset) {
        self.max = at + conn.mss();
        self.nxt = self.max;
        let sent_at = self.new_data_sent_at(now);
        self.scoreboard.push(at, self.max, sent_at);
    }

    /// Records a window probe, which may have carried a new byte.
    pub(crate) fn note_probe(&mut self, end: Offset, now: Instant) {
        if end > self.max {
            let sent_at = self.new_data_sent_at(now);
            self.scoreboard.push(self.max, end, sent_at);
            self.max = end;
        }
    }

    /// Transmission time of new data sent now: not before a retransmission at the same instant.
    #[inline(always)]
    fn new_data_sent_at(&self, now: Instant) -> Instant {
        now.max(self.rexmt.last_at)
    }

    /// Prepares for data sent while nothing is in flight.
    #[cold]
    pub(crate) fn begin_flight<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let last = conn.clock.tick(self.last.sent);
        self.show_controller(conn, cx.now, self.una);
        self.cc.on_tx_start(conn.clock.tick(cx.now), last);
        self.restart_rates(conn, cx);
    }

    /// Records that a full segment of new data at `at` was sent.
    #[inline(always)]
    pub(super) fn emit_full_sent<R: Recorder>(
        &self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        at: Offset,
    ) {
        cx.emit_with_state(&self.with(conn), || {
            let (at, len) = (conn.payload_offset(at), conn.negotiated.mss);
            Event::Sent { at, len, kind: SentKind::New }
        });
    }
}

impl Connection {
    fn reset_segment(&self, seq: SeqNum, ack: Option<SeqNum>) -> Segment {
        Segment {
            flow: self.cfg.flow,
            dir: self.dir(),
            ip: self.cfg.ip,
            flags: if ack.is_some() { Flags::RST | Flags::ACK } else { Flags::RST },
            seq,
            ack: ack.unwrap_or_default(),
            ..Segment::default()
        }
    }

    /// Is it a keepalive probe of FreeBSD, sent by tcp_respond (tcp_timer_keep)?
    fn is_tcp_respond(&self, plan: &SegmentPlan) -> bool {
        let responds = self.cfg.profile.rules.closing.keepalive_by_respond;
        plan.kind == SentKind::Probe && plan.len == 0 && responds
    }
}
