//! Building of segments, and the records of their transmission.

use core::hint::cold_path;

use cc::{Controller, WindowController};
use machine::Cx;
use packet::{Flags, Options, Segment, Timestamps};
use record::{Cause, Event, Purpose, Recorder, SentKind};
use recovery::sendmap::RetransmitResult;
use units::{Duration, Instant, Offset, unlikely};

use super::SegmentPlan;
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::loss::LossDetector;
use crate::profile::PushRule;
use crate::sent;
use crate::state::SendSide;
use crate::timers::Timers;

impl TcpEndpoint {
    /// Writes the header of a segment and records the ACK and the window that it advertises.
    #[inline(always)]
    pub(super) fn write_header(
        &mut self,
        now: Instant,
        at: Offset,
        len: u64,
        flags: Flags,
        slot: &mut Segment,
    ) {
        let promised = self.rcv.adv.since(self.rcv.nxt).get();
        let window = self.rcv.window.window(promised, self.rcv.reassembly.bytes());
        let field = self.rcv.window.field(window);
        self.write_fields(now, at, len, flags, field, slot);
        self.rcv.adv = self.rcv.adv.max(self.rcv.nxt + self.rcv.window.counted(window, field));
        self.rcv.acked = self.rcv.nxt;
        self.rcv.window.on_sent(window, || self.conn.clock.timestamp(now));
        self.rcv.ack_now = false;
        self.rcv.delays_ack = false;
        self.rcv.last_window_zero = field == 0;
        self.timers.stop(Purpose::DelayedAck);
        if unlikely(self.rcv.policy.is_quick()) {
            let tight = self.rcv.window.is_tight(self.rcv.reassembly.bytes());
            self.rcv.policy.on_window_selected(tight);
        }
        self.rcv.policy.on_ack_sent();
        if len > 0 {
            self.rcv.policy.on_data_sent(|| self.conn.clock.tick(now));
        }
        self.rcv.compressed.waiting = 0;
    }

    /// [`TcpEndpoint::write_header`], once for all callers that are cold.
    pub(super) fn write_header_cold(
        &mut self,
        now: Instant,
        at: Offset,
        len: u64,
        flags: Flags,
        slot: &mut Segment,
    ) {
        self.write_header(now, at, len, flags, slot);
    }

    #[inline(always)]
    pub(super) fn write_fields(
        &mut self,
        now: Instant,
        at: Offset,
        len: u64,
        flags: Flags,
        field: u16,
        slot: &mut Segment,
    ) {
        let (marks, ecn) = self.snd.ecn.mark(len > 0 && at >= self.snd.max);
        let marks = marks | self.rcv.ecn.echo();
        *slot = Segment {
            flow: self.conn.cfg.flow,
            dir: self.conn.dir(),
            ip: self.conn.cfg.ip,
            ecn,
            flags: flags | marks,
            seq: at.to_seq(self.conn.cfg.isn),
            ack: self.rcv.nxt.to_seq(self.rcv.irs),
            payload: len as u32,
            window: field,
            gso_size: 0,
            nsegs: 0,
            timestamps: self.conn.negotiated.timestamps.then(|| Timestamps {
                val: self.conn.clock.timestamp(now),
                ecr: self.rcv.ts_recent,
            }),
            options: Options::None,
        };
    }

    /// Builds a full segment of new data that is not the last, and records its transmission: a
    /// shortened [`TcpEndpoint::build`].
    #[inline(never)]
    pub(super) fn build_new<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) {
        if self.snd.packets_in_flight() == 0 {
            self.snd.begin_flight(&self.conn, cx);
        }
        let at = self.snd.max;
        self.write_header(cx.now, at, self.conn.mss(), Flags::ACK, slot);
        self.snd.note_full(&self.conn, cx.now);
        if self.snd.cc.in_recovery() {
            let mss = self.conn.mss();
            self.snd.rack_tlp_sent(&self.conn, mss, 1, false);
        }
        self.snd.note_flight(&self.conn, &mut self.timers, cx.now, at);
        self.snd.on_burst_sent(&self.conn, cx, at, self.snd.max);
        self.snd.emit_full_sent(&self.conn, cx, at);
    }

    /// Builds the segment and records its transmission.
    pub(super) fn build<R: Recorder>(
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
            self.write_response(cx.now, plan.at, slot);
        } else {
            self.write_header_cold(cx.now, plan.at, plan.len, flags, slot);
            if plan.len > self.conn.mss() {
                slot.gso_size = self.conn.negotiated.mss as u16;
            }
            if self.rcv.has_blocks(&self.conn) {
                self.rcv.write_blocks(&self.conn, plan.len, slot);
            }
        }
        match plan.kind {
            SentKind::Probe => {
                cold_path();
                self.snd.note_probe(plan.at + plan.len, cx.now);
            }
            _ if plan.len > 0 || plan.fin => {
                self.snd.note_sent(&self.conn, &mut self.timers, cx, plan);
            }
            _ => {}
        }
        cx.emit_with_state(&self.snd.with(&self.conn), || {
            let at = self.conn.payload_offset(plan.at);
            Event::Sent { at, len: plan.len as u32, kind: plan.kind }
        });
    }

    /// Writes the header of a segment that leaves the state of the receiver alone, as tcp_respond
    /// does: an ACK that is due remains due, and the window does not count as advertised.
    #[cold]
    fn write_response(&mut self, now: Instant, at: Offset, slot: &mut Segment) {
        let promised = self.rcv.adv.since(self.rcv.nxt).get();
        let window = self.rcv.window.window(promised, self.rcv.reassembly.bytes());
        let field = self.rcv.window.field(window);
        self.write_fields(now, at, 0, Flags::ACK, field, slot);
    }
}

impl SendSide {
    /// Records the transmission of data or a FIN: advances the sequence variables, starts timers,
    /// updates counters.
    fn note_sent<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &SegmentPlan,
    ) {
        let end = plan.at + plan.len + u64::from(plan.fin);
        let mss = conn.mss();
        if plan.len > 0 && self.packets_in_flight() == 0 {
            self.begin_flight(conn, cx);
        }
        let packets = if plan.len <= mss { 1 } else { plan.len.div_ceil(mss) };
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
            if matches!(self.loss_detector, LossDetector::RackTlp(_))
                && conn.cfg.profile.rules.sending.collapses_retransmissions
                && packets == 1
            {
                self.scoreboard.collapse(plan.at, end);
            }
            // Stamped after everything sent at this instant, so that none of it, if it arrives
            // first, seems to have been sent later: in a kernel no two calls share an instant.
            let newest = self.scoreboard.last().map_or(cx.now, |last| last.sent_at().max(cx.now));
            let at = newest + Duration::from_nanos(1);
            self.rexmt.last_at = at;
            retransmission = self.scoreboard.retransmit(plan.at, end.min(self.max), at, probe);
        }
        if end > self.max {
            let (at, sent_at) = (plan.at.max(self.max), self.new_data_sent_at(cx.now));
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
        let timed =
            matches!(self.loss_detector, LossDetector::RackTlp(_) | LossDetector::FreeBsdRack(_));
        let out_of_turn = match plan.kind {
            SentKind::Retransmission(Cause::FastRetransmit | Cause::PartialAck) => true,
            // Lost data is retransmitted at its own offset, data cut off by a closed window from
            // `snd_nxt` on.
            SentKind::Retransmission(_) => timed && plan.at != self.nxt,
            _ => false,
        };
        if !out_of_turn {
            self.nxt = end;
        }
        self.max = self.max.max(end);
        self.nxt = self.nxt.max(self.una).min(self.max);
        self.last.sent = cx.now;
        if self.measures_rates() {
            self.rates_sent(cx.now, plan.at, end, repeated);
        }
        if timed {
            let probe = plan.kind == SentKind::Retransmission(Cause::LossProbe);
            self.rack_tlp_sent(conn, plan.len, packets, repeated && !probe);
            self.rack_sent(conn, plan.at, end, repeated, &retransmission);
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
    fn note_probe(&mut self, end: Offset, now: Instant) {
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
    fn begin_flight<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let last = conn.clock.tick(self.last.sent);
        self.cc.on_tx_start(conn.clock.tick(cx.now), last);
        self.restart_rates(conn, cx);
    }

    /// Records the first transmission of data at `at`: it is timed, unless other data is.
    #[inline]
    fn note_flight(&mut self, conn: &Connection, timers: &mut Timers, now: Instant, at: Offset) {
        if self.rtt.timing.is_none() {
            self.rtt.timing = Some((at, now));
        }
        self.watch_flight(conn, timers, now);
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

    /// Ensures that the timers for data in flight run.
    #[inline(always)]
    pub(super) fn watch_flight(&mut self, conn: &Connection, timers: &mut Timers, now: Instant) {
        if self.is_rack() {
            // Its timer is on the hpts wheel.
            return;
        }
        self.plan_probe_timer(conn, timers, now, false);
        // The retransmission timer is set when the reordering timer has expired.
        if !timers.runs(Purpose::Retransmit) && !timers.runs(Purpose::Reorder) {
            self.arm_retransmit(conn, timers, now);
        }
    }
}

impl Connection {
    /// Is it a keepalive probe of FreeBSD, sent by tcp_respond (tcp_timer_keep)?
    fn is_tcp_respond(&self, plan: &SegmentPlan) -> bool {
        let responds = self.cfg.profile.rules.closing.keepalive_by_respond;
        plan.kind == SentKind::Probe && plan.len == 0 && responds
    }
}
