//! Processing of arriving segments (RFC 9293 section 3.10.7; tcp_do_segment of FreeBSD,
//! tcp_rcv_established of Linux).

mod closing;
mod payload;
mod unexpected;

use core::hint::cold_path;

use machine::Cx;
use packet::{Flags, Options, Segment};
use record::{Recorder, Shortcuts};
use units::{Instant, Offset, unlikely};

use crate::endpoint::{TcpEndpoint, TcpState};
use crate::loss::LossDetector;
use crate::output::call::PacketBatch;
use crate::profile::{EchoRule, OldSegments};

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
        if R::SHORTCUTS.has(Shortcuts::ARRIVAL) && self.takes_fast_path(&segment()) {
            self.input_fast_path(cx, segment);
        } else {
            self.input_slow_path(cx, &segment());
        }
    }

    #[inline(never)]
    fn input_slow_path<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        if unlikely(segment.flags.has(Flags::SYN | Flags::FIN)) && self.cfg.profile.lax.drop_synfin
        {
            return;
        }
        match self.state {
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
            && self.takes_fast_path(segment)
            && self.predicts_data(segment);
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
        let Some(ack) = segment.ack.near(self.cfg.isn, self.snd.una) else { return };
        if unlikely(self.state == TcpState::TimeWait) && self.answers_fin_beyond(cx, segment, seq) {
            return;
        }
        if !flags.has(Flags::ACK) || self.has_stale_timestamp(cx, segment, seq, ack) {
            return;
        }
        // RFC 5961 section 5: the ACK is for data never sent, or too old.
        if ack > self.snd.max || ack + self.oldest_ack() < self.snd.una {
            cold_path();
            let never_sent = ack > self.snd.max && self.state == TcpState::Established;
            if self.state == TcpState::SynReceived {
                self.answer_with_reset(segment);
            } else if never_sent && self.cfg.profile.rules.receiving.drops_acks_of_unsent {
                // tcp_rcv_established drops it; tcp_rcv_state_process answers in other states.
            } else {
                self.challenge(cx);
            }
            return;
        }
        let established = self.state == TcpState::Established;
        if self.state == TcpState::SynReceived {
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
        self.snd.last_received = cx.now;
        self.rearm_keepalive(cx);
        let old = seq + u64::from(segment.payload) <= self.rcv.nxt;
        // tcp_data_queue: marks of old data do not count, only its CWR.
        let marked = !old || self.cfg.profile.rules.receiving.counts_marks_of_old_data;
        self.ecn.on_segment(flags, segment.ecn, if marked { segment.payload } else { 0 });
        let Some(mut payload) = self.trim(segment, seq) else {
            cold_path();
            // Nothing new, or nothing within the window: RFC 9293 3.10.7.4 requires an ACK.
            let queued = self.cfg.profile.rules.receiving.old_segments == OldSegments::Queued;
            if queued && self.state != TcpState::TimeWait {
                self.input_old(cx, segment, seq, ack);
                return;
            }
            let answers = self.may_answer(cx.now, segment);
            if self.state == TcpState::TimeWait && flags.has(Flags::FIN) {
                self.enter_time_wait(cx);
            }
            if self.cfg.profile.echo == EchoRule::CoversLastAck {
                // Trimming a segment that is entirely old leaves only its end.
                let end = seq + u64::from(segment.payload);
                self.take_timestamp(cx.now, segment, end, end);
            }
            self.note_duplicate(segment, seq);
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
        self.take_timestamp(cx.now, segment, seq.max(self.rcv.nxt), payload.right + fin);
        self.note_duplicate(segment, seq);
        self.on_ack(cx, segment, seq, ack);
        if established {
            // Not for the segment that establishes the connection (tcp_rcv_state_process).
            self.measure_echo(cx.now, segment);
        }
        if unlikely(!established) && self.refuses_data(cx, segment, seq) {
            return;
        }
        let had_gap = !self.rcv.reassembly.is_empty() || self.rcv.fin.is_some();
        let queues_fin = payload.fin && payload.left > self.rcv.nxt && self.queues_fin();
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

    /// How far behind `snd_una` an acknowledgment may be (RFC 5961 section 5.2): Linux counts no more than was
    /// acknowledged (`bytes_acked` in tcp_ack), of a server's stream without its SYN.
    fn oldest_ack(&self) -> u64 {
        let most = self.snd.peer.max_wnd.max(1);
        if !self.cfg.profile.rules.receiving.acks_within_acked {
            return most;
        }
        let passive = u64::from(self.cfg.side == crate::endpoint::TcpSide::Server);
        most.min(self.snd.una.0.saturating_sub(passive))
    }

    /// Does the segment qualify for the fast path: the next bytes or a pure acknowledgment, in
    /// order, with a valid timestamp, on a connection in a regular state (header prediction:
    /// tcp_do_segment of FreeBSD, tcp_rcv_established of Linux)?
    #[inline(always)]
    fn takes_fast_path(&self, segment: &Segment) -> bool {
        let ahead = segment.ack.0.wrapping_sub(self.snd.una.to_seq(self.cfg.isn).0);
        let fresh = match segment.timestamps {
            Some(stamps) => stamps.val.wrapping_sub(self.rcv.ts_recent) as i32 >= 0,
            None => !self.negotiated.timestamps,
        };
        self.state == TcpState::Established
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && segment.seq == self.rcv_nxt_seq()
            && u64::from(ahead) <= self.snd.max - self.snd.una
            && fresh
            && u64::from(segment.payload) <= self.rcv.adv.since(self.rcv.nxt).get()
            && self.rcv.fin.is_none()
            && self.cfg.keepalive.is_none()
            && !self.ecn.agreed()
    }

    /// The fast path: a shortened [`TcpEndpoint::input_synchronised`].
    #[inline(always)]
    fn input_fast_path<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, made: impl Fn() -> Segment) {
        let segment = &made();
        let predicted = segment.payload > 0 && self.predicts_data(segment);
        let seq = self.rcv.nxt;
        let ahead = segment.ack.0.wrapping_sub(self.snd.una.to_seq(self.cfg.isn).0);
        let ack = self.snd.una + u64::from(ahead);
        self.snd.last_received = cx.now;
        self.take_timestamp(cx.now, segment, seq, Offset(u64::MAX));
        // Data received while nothing is outstanding carries no news for the sender.
        let idle = segment.payload > 0
            && self.snd.max == self.snd.una
            && matches!(self.snd.loss_detector, LossDetector::RackTlp(_))
            && matches!(segment.options, Options::None)
            && !self.snd.buffer.starved();
        if idle {
            self.update_window(seq, ack, self.scaled_window(segment));
        } else {
            self.on_ack(cx, &made(), seq, ack);
        }
        self.measure_echo(cx.now, segment);
        if segment.payload > 0 {
            self.on_next_payload(
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

    /// Does header prediction of FreeBSD accept the next data: no new acknowledgment, the same
    /// window, no retransmission in progress, nothing out of order, and room in the buffer?
    #[inline(always)]
    fn predicts_data(&self, segment: &Segment) -> bool {
        let wnd = self.scaled_window(segment);
        self.rcv.window.measures_arrivals()
            && segment.ack == self.snd.una.to_seq(self.cfg.isn)
            && self.snd.nxt == self.snd.max
            && wnd != 0
            && wnd == self.snd.peer.wnd
            && self.rcv.reassembly.is_empty()
            && u64::from(segment.payload) <= self.rcv.window.space()
    }

    /// Trims data already received or beyond the window. `None` if nothing acceptable remains of a
    /// segment that occupied sequence space, or if it is outside the window.
    fn trim(&self, segment: &Segment, seq: Offset) -> Option<SegmentPayload> {
        let end = seq + u64::from(segment.payload);
        let fin = u64::from(segment.flags.has(Flags::FIN));
        let payload = SegmentPayload {
            left: seq.max(self.rcv.nxt),
            right: end.min(self.rcv.adv).max(self.rcv.nxt),
            fin: fin > 0,
            pushed: segment.flags.has(Flags::PSH),
            merged: segment.is_aggregate(),
            options: segment.options_len(),
            predicted: false,
        };
        if segment.payload == 0 && fin == 0 {
            let in_window = seq >= self.rcv.nxt && seq <= self.rcv.adv;
            return in_window.then_some(SegmentPayload { right: payload.left, ..payload });
        }
        let new = end + fin > self.rcv.nxt;
        let fits = seq < self.rcv.adv || (segment.payload == 0 && seq == self.rcv.adv);
        (new && fits).then_some(payload)
    }

    /// RFC 7323 section 4.3: records the timestamp to echo, that of the segment at the last ACK
    /// sent. `seq` and `end` delimit the part of the segment that is not old.
    #[inline(always)]
    fn take_timestamp(&mut self, now: Instant, segment: &Segment, seq: Offset, end: Offset) {
        let covers = self.cfg.profile.echo == EchoRule::UpToLastAck || end >= self.rcv.acked;
        if let Some(stamps) = segment.timestamps.filter(|_| self.negotiated.timestamps)
            && seq <= self.rcv.acked
            && covers
            && stamps.val.wrapping_sub(self.rcv.ts_recent) as i32 >= 0
        {
            self.rcv.ts_recent = stamps.val;
            self.rcv.ts_recent_at = now;
        }
    }

    pub(crate) fn ack_at_once(&mut self) {
        self.rcv.ack_now = true;
        self.call_output();
    }
}
