//! Processing of arriving segments (RFC 9293 section 3.10.7; tcp_do_segment of FreeBSD,
//! tcp_rcv_established of Linux).

mod closing;
mod payload;
mod unexpected;

use core::hint::cold_path;
use std::collections::VecDeque;

use machine::{Cx, Endpoint};
use packet::{Flags, Options, Segment};
use record::{Recorder, Shortcuts};
use units::{Instant, Offset, unlikely};

use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::output::call::PacketBatch;
use crate::profile::{EchoRule, OldSegments};
use crate::receive_side::ReceiveSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::tcp_state::TcpState;

/// The payload of a segment within the window, as offsets.
#[derive(Debug, Clone, Copy)]
struct SegmentPayload {
    left: Offset,
    right: Offset,
    /// A FIN follows it.
    fin: bool,
    pushed: bool,
    merged: bool,
    /// Bytes of TCP options.
    options: u32,
    /// Header prediction accepts it (tcp_do_segment of FreeBSD).
    predicted: bool,
}

impl TcpEndpoint {
    /// Handles an arriving segment like [`handle_segment`](machine::Endpoint::handle_segment).
    /// `segment` builds it where it is used, so that the compiler drops fields that are not read.
    #[inline(always)]
    pub fn handle_segment_with<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: impl Fn() -> Segment,
    ) {
        self.snd.call.batch = PacketBatch::NONE;
        let exact = cx.now;
        if unlikely(!self.conn.clock.is_exact()) {
            self.expire_before_arrival(cx);
            self.timers.begin_event(exact, true);
            self.snd.end_write_turn();
        }
        cx.now = self.conn.clock.read(exact);
        if R::SHORTCUTS.has(Shortcuts::ARRIVAL)
            && self.snd.takes_fast_path(&self.conn, &self.rcv, &segment())
        {
            self.input_fast_path(cx, segment);
        } else {
            self.input_slow_path(cx, &segment());
        }
        cx.now = exact;
    }

    /// Timers that a modelled device has ready expire before a packet that arrives at the same instant: the event of the
    /// device was queued first. What they send waits in the outbox.
    #[cold]
    fn expire_before_arrival<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.timers.next_at() > cx.now {
            return;
        }
        Endpoint::handle_timeout(self, cx);
        let mut sent = VecDeque::new();
        let mut slot = Segment::default();
        while Endpoint::poll_transmit(self, cx, &mut slot).is_ok() {
            sent.push_back(slot);
        }
        if !sent.is_empty() {
            self.outbox = Some(Box::new(sent));
        }
    }

    fn input_slow_path<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        if unlikely(segment.flags.has(Flags::SYN | Flags::FIN))
            && self.conn.cfg.profile.lax.drop_synfin
        {
            return;
        }
        match self.conn.state {
            TcpState::Closed | TcpState::Listen | TcpState::SynSent => {
                cold_path();
                self.input_unsynchronised(cx, segment);
            }
            _ => self.input_synchronised(cx, segment),
        }
    }

    /// RFC 9293 section 3.10.7.4, with RFC 5961 and RFC 7323.
    fn input_synchronised<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        let predicted = !R::SHORTCUTS.has(Shortcuts::ARRIVAL)
            && segment.payload > 0
            && self.snd.takes_fast_path(&self.conn, &self.rcv, segment)
            && self.snd.predicts_data(&self.conn, &self.rcv, segment);
        // Converts sequence numbers to offsets; numbers before the start of the stream are invalid.
        let seq = segment.seq.near(self.rcv.irs, self.rcv.nxt);
        if unlikely(flags.has(Flags::SYN)) && !flags.has(Flags::RST) {
            self.input_late_syn(cx, segment, seq);
            return;
        }
        let Some(seq) = seq else { return };
        if unlikely(flags.has(Flags::RST)) {
            self.input_reset(cx, seq);
            return;
        }
        let Some(ack) = segment.ack.near(self.conn.cfg.isn, self.snd.una) else { return };
        if unlikely(self.conn.state == TcpState::TimeWait)
            && self.answers_fin_beyond(cx, segment, seq)
        {
            return;
        }
        if !flags.has(Flags::ACK) || self.has_stale_timestamp(cx, segment, seq, ack) {
            return;
        }
        // RFC 5961 section 5: the ACK is for data never sent, or too old.
        if ack > self.snd.max || ack + self.snd.oldest_ack(&self.conn) < self.snd.una {
            cold_path();
            let never_sent = ack > self.snd.max && self.conn.state == TcpState::Established;
            if self.conn.state == TcpState::SynReceived {
                self.answer_with_reset(segment);
            } else if never_sent && self.conn.cfg.profile.rules.receiving.drops_acks_of_unsent {
                // tcp_rcv_established drops it; tcp_rcv_state_process answers in other states.
            } else {
                self.challenge(cx);
            }
            return;
        }
        let established = self.conn.state == TcpState::Established;
        if self.conn.state == TcpState::SynReceived {
            cold_path();
            if self.is_fast_open_child() {
                if ack < Offset(1) {
                    return;
                }
                self.on_fast_open_ack(cx, segment, ack);
            } else if ack < Offset(1) || seq < self.rcv.nxt || seq > self.rcv.adv {
                return;
            } else {
                self.on_handshake_ack(cx, segment);
            }
        }
        self.snd.last.received = cx.now;
        self.snd.rearm_keepalive(&self.conn, &mut self.timers, cx);
        let old = seq + u64::from(segment.payload) <= self.rcv.nxt;
        // tcp_data_queue: marks of old data do not count, only its CWR.
        let marked = !old || self.conn.cfg.profile.rules.receiving.counts_marks_of_old_data;
        if unlikely(self.snd.ecn.agreed()) {
            let counted = if marked { segment.payload } else { 0 };
            self.rcv.ecn.on_segment(flags, segment.ecn, counted);
        }
        let Some(mut payload) = self.rcv.trim(segment, seq) else {
            cold_path();
            // Nothing new, or nothing within the window: RFC 9293 3.10.7.4 requires an ACK.
            let queued = self.conn.cfg.profile.rules.receiving.old_segments == OldSegments::Queued;
            if queued && self.conn.state != TcpState::TimeWait {
                self.input_old(cx, segment, seq, ack);
                return;
            }
            let answers = self.may_answer(cx.now, segment);
            if self.conn.state == TcpState::TimeWait && flags.has(Flags::FIN) {
                self.enter_time_wait(cx);
            }
            if self.conn.cfg.profile.echo == EchoRule::CoversLastAck {
                // Trimming a segment that is entirely old leaves only its end.
                let end = seq + u64::from(segment.payload);
                self.rcv.take_timestamp(&self.conn, cx.now, segment, end, end);
            }
            if self.rcv.note_duplicate(&self.conn, segment, seq) {
                self.ack_at_once();
            }
            if answers {
                self.ack_at_once();
            }
            if seq <= self.rcv.nxt {
                // Old data, or any data while our window is closed, may carry a valid
                // acknowledgment.
                self.on_ack(cx, segment, seq, ack);
            }
            return;
        };
        payload.predicted = predicted;
        let fin = u64::from(flags.has(Flags::FIN));
        self.rcv.take_timestamp(
            &self.conn,
            cx.now,
            segment,
            seq.max(self.rcv.nxt),
            payload.right + fin,
        );
        if self.rcv.note_duplicate(&self.conn, segment, seq) {
            self.ack_at_once();
        }
        self.on_ack(cx, segment, seq, ack);
        if established {
            // Not for the segment that establishes the connection (tcp_rcv_state_process).
            self.rcv.measure_echo(&self.conn, cx.now, segment);
        }
        if unlikely(!established) && self.refuses_data(cx, segment, seq) {
            return;
        }
        let had_gap = !self.rcv.reassembly.is_empty() || self.rcv.fin.is_some();
        let queues_fin = payload.fin && payload.left > self.rcv.nxt && self.conn.queues_fin();
        if payload.right > payload.left || queues_fin {
            self.on_payload(cx, payload);
        }
        if unlikely(flags.has(Flags::FIN)) {
            let place = *self.rcv.fin.get_or_insert(seq + u64::from(segment.payload));
            if place > self.rcv.nxt && !queues_fin {
                // Out of order, even without data (RFC 5681 section 4.2).
                self.ack_at_once();
            }
        }
        self.take_fin(cx, had_gap);
    }

    /// The fast path: a shortened [`TcpEndpoint::input_synchronised`].
    #[inline(always)]
    fn input_fast_path<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, made: impl Fn() -> Segment) {
        let segment = &made();
        let predicted =
            segment.payload > 0 && self.snd.predicts_data(&self.conn, &self.rcv, segment);
        let seq = self.rcv.nxt;
        let ahead = segment.ack.0.wrapping_sub(self.snd.una.to_seq(self.conn.cfg.isn).0);
        let ack = self.snd.una + u64::from(ahead);
        self.snd.last.received = cx.now;
        self.rcv.take_timestamp(&self.conn, cx.now, segment, seq, Offset(u64::MAX));
        // Data received while nothing is outstanding carries no news for the sender.
        let idle = segment.payload > 0
            && self.snd.max == self.snd.una
            && matches!(self.snd.stack, Stack::RackTlp(_))
            && matches!(segment.options, Options::None)
            && !self.snd.buffer.starved();
        if idle {
            self.snd.update_window(
                &self.conn,
                &mut self.timers,
                seq,
                ack,
                self.conn.scaled_window(segment),
            );
        } else {
            self.on_ack(cx, &made(), seq, ack);
        }
        self.rcv.measure_echo(&self.conn, cx.now, segment);
        if segment.payload > 0 {
            self.take_next_payload(
                cx,
                SegmentPayload {
                    left: seq,
                    right: seq + u64::from(segment.payload),
                    fin: false,
                    pushed: segment.flags.has(Flags::PSH),
                    merged: segment.is_aggregate(),
                    options: segment.options_len(),
                    predicted,
                },
            );
        }
    }

    pub(crate) fn ack_at_once(&mut self) {
        self.rcv.ack_now = true;
        self.snd.call_output();
    }
}

impl Sender {
    /// Does the segment qualify for the fast path: the next bytes or a pure acknowledgment, in
    /// order, with a valid timestamp, on a connection in a regular state (header prediction:
    /// tcp_do_segment of FreeBSD, tcp_rcv_established of Linux)?
    #[inline(always)]
    fn takes_fast_path(&self, conn: &Connection, rcv: &ReceiveSide, segment: &Segment) -> bool {
        let ahead = segment.ack.0.wrapping_sub(self.una.to_seq(conn.cfg.isn).0);
        let fresh = match segment.timestamps {
            Some(stamps) => stamps.val.wrapping_sub(rcv.ts_recent) as i32 >= 0,
            None => !conn.negotiated.timestamps,
        };
        conn.state == TcpState::Established
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && segment.seq == rcv.rcv_nxt_seq()
            && u64::from(ahead) <= self.max - self.una
            && fresh
            && u64::from(segment.payload) <= rcv.adv.since(rcv.nxt).get()
            && rcv.fin.is_none()
            && conn.cfg.keepalive.is_none()
            && !self.ecn.agreed()
    }

    /// Does header prediction of FreeBSD accept the next data: no new acknowledgment, the same
    /// window, no retransmission in progress, nothing out of order, and room in the buffer?
    #[inline(always)]
    fn predicts_data(&self, conn: &Connection, rcv: &ReceiveSide, segment: &Segment) -> bool {
        let wnd = conn.scaled_window(segment);
        rcv.window.measures_arrivals()
            && segment.ack == self.una.to_seq(conn.cfg.isn)
            && self.nxt == self.max
            && wnd != 0
            && wnd == self.peer.wnd
            && rcv.reassembly.is_empty()
            && u64::from(segment.payload) <= rcv.window.space()
    }

    /// How far behind `snd_una` an acknowledgment may be (RFC 5961 section 5.2): Linux counts no more than was
    /// acknowledged (`bytes_acked` in tcp_ack), of a server's stream without its SYN.
    fn oldest_ack(&self, conn: &Connection) -> u64 {
        let most = self.peer.max_wnd.max(1);
        if !conn.cfg.profile.rules.receiving.acks_within_acked {
            return most;
        }
        let passive = u64::from(conn.cfg.side == crate::endpoint::TcpSide::Server);
        most.min(self.una.0.saturating_sub(passive))
    }
}

impl ReceiveSide {
    /// Trims data already received or beyond the window. `None` if nothing acceptable remains of a
    /// segment that occupied sequence space, or if it is outside the window.
    fn trim(&self, segment: &Segment, seq: Offset) -> Option<SegmentPayload> {
        let end = seq + u64::from(segment.payload);
        let fin = u64::from(segment.flags.has(Flags::FIN));
        let payload = SegmentPayload {
            left: seq.max(self.nxt),
            right: end.min(self.adv).max(self.nxt),
            fin: fin > 0,
            pushed: segment.flags.has(Flags::PSH),
            merged: segment.is_aggregate(),
            options: segment.options_len(),
            predicted: false,
        };
        if segment.payload == 0 && fin == 0 {
            let in_window = seq >= self.nxt && seq <= self.adv;
            return in_window.then_some(SegmentPayload { right: payload.left, ..payload });
        }
        let new = end + fin > self.nxt;
        let fits = seq < self.adv || (segment.payload == 0 && seq == self.adv);
        (new && fits).then_some(payload)
    }

    /// RFC 7323 section 4.3: records the timestamp to echo, that of the segment at the last ACK
    /// sent. `seq` and `end` delimit the part of the segment that is not old.
    #[inline(always)]
    fn take_timestamp(
        &mut self,
        conn: &Connection,
        now: Instant,
        segment: &Segment,
        seq: Offset,
        end: Offset,
    ) {
        let covers = conn.cfg.profile.echo == EchoRule::UpToLastAck || end >= self.acked;
        if let Some(stamps) = segment.timestamps.filter(|_| conn.negotiated.timestamps)
            && seq <= self.acked
            && covers
            && stamps.val.wrapping_sub(self.ts_recent) as i32 >= 0
        {
            self.ts_recent = stamps.val;
            self.ts_recent_at = now;
        }
    }
}
