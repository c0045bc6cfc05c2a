//! Segments that are not part of the stream: before a connection is synchronised, resets, late
//! SYNs, and segments answered with a challenge ACK or ignored (RFC 9293 section 3.10.7, RFC 5961,
//! RFC 7323).

use machine::{Cx, Signal};
use packet::{Flags, Segment};
use record::Recorder;
use units::ratio::scaled;
use units::{Duration, Instant, Offset, SeqNum, unlikely};

use super::SegmentPayload;
use crate::config::TcpSide;
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::profile::{OldSegments, TimeWaitRule};
use crate::receive_side::ReceiveSide;
use crate::sender::Sender;
use crate::tcp_state::TcpState;

/// Timestamps older than this are invalid (RFC 7323 section 5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3_600);

impl TcpEndpoint {
    pub(super) fn input_unsynchronised<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) {
        match self.conn.state {
            TcpState::Listen => self.input_listen(cx, segment),
            TcpState::SynSent => self.input_syn_sent(cx, segment),
            _ => self.answer_with_reset(segment),
        }
    }

    /// RFC 9293 section 3.10.7.1: a segment without a connection is answered with a RST.
    pub(super) fn answer_with_reset(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        self.reset = Some(if segment.flags.has(Flags::ACK) {
            (segment.ack, None)
        } else {
            let behind = segment.seq.0.wrapping_add(segment.seq_len());
            (SeqNum(0), Some(SeqNum(behind)))
        });
    }

    /// RFC 9293 section 3.10.7.2.
    pub(super) fn input_listen<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        if flags.has(Flags::ACK) {
            self.answer_with_reset(segment);
        } else if flags.has(Flags::SYN) && !flags.has(Flags::RST) {
            self.on_syn(cx, segment);
        }
    }

    /// RFC 9293 section 3.10.7.3.
    pub(super) fn input_syn_sent<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let flags = segment.flags;
        if flags.has(Flags::ACK) && !self.snd.acknowledges_syn(&self.conn, segment.ack) {
            self.snd.retry_syn_soon(&self.conn, &mut self.timers, cx.now);
            self.answer_with_reset(segment);
            return;
        }
        if flags.has(Flags::ACK) && !self.conn.echoes_any_syn(cx.now, segment) {
            self.answer_with_reset(segment);
            return;
        }
        match (flags.has(Flags::RST), flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            (true, _, true) => self.abort(cx),
            (false, true, true) => {
                self.on_syn_ack(cx, segment);
                if self.conn.cfg.profile.rules.opening.takes_syn_ack_data {
                    self.take_syn_payload(cx, segment);
                }
            }
            (false, true, false) => self.on_simultaneous_syn(cx, segment),
            _ => {}
        }
    }

    /// Takes the payload of a SYN with Fast Open, which counts neither for delayed ACKs nor for the
    /// growth of the window, and its `fin` (tcp_fastopen_add_skb).
    pub(crate) fn take_fast_open_payload<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        fin: bool,
    ) {
        let (left, right) = (Offset(1), Offset(1) + u64::from(segment.payload));
        if segment.payload > 0 {
            let pushed = segment.flags.has(Flags::PSH);
            let (merged, predicted, options) = (false, false, segment.options_len());
            let payload = SegmentPayload { left, right, fin, pushed, merged, options, predicted };
            self.rcv.nxt = self.rcv.reassembly.advance(right);
            let arrived = self.rcv.arrived(&self.conn, cx.now, &payload, right - left);
            self.rcv.window.on_syn_data(&arrived);
            self.signal(Signal::Readable);
        }
        if fin {
            self.rcv.fin = Some(right);
            self.take_fin(cx, false);
        }
    }

    /// Takes the payload of a SYN-ACK, and its FIN (tcp_do_segment). Linux drops them without Fast
    /// Open (tcp_rcv_state_process).
    fn take_syn_payload<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &Segment) {
        let fin = segment.flags.has(Flags::FIN);
        let (left, right) = (Offset(1), Offset(1) + u64::from(segment.payload));
        if segment.payload > 0 {
            let pushed = segment.flags.has(Flags::PSH);
            let (merged, predicted, options) = (false, false, segment.options_len());
            let payload = SegmentPayload { left, right, fin, pushed, merged, options, predicted };
            self.on_payload(cx, payload);
            self.ack_at_once();
        }
        if fin {
            self.rcv.fin = Some(right);
            self.take_fin(cx, false);
        }
    }

    /// RFC 5961 section 3.2: a RST is accepted only at exactly `rcv_nxt`; elsewhere in the window
    /// it gets a challenge ACK, outside it is ignored.
    pub(super) fn input_reset<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, seq: Offset) {
        let insecure =
            self.conn.cfg.profile.lax.insecure_rst && self.rcv.in_receive_window(&self.conn, seq);
        if seq == self.rcv.nxt || insecure || self.rcv.resets_beyond(&self.conn, seq) {
            match (self.conn.state, self.conn.cfg.side) {
                // A passive open returns to LISTEN.
                (TcpState::SynReceived, TcpSide::Server) if !self.is_fast_open_child() => {
                    self.begin_anew();
                }
                // tcp_twcheck drops it, after RFC 1337.
                (TcpState::TimeWait, _) if self.conn.checks_time_wait() => {}
                (TcpState::TimeWait, _) => {
                    self.conn.state = TcpState::Closed;
                    self.timers.stop_all();
                }
                _ => self.abort(cx),
            }
        } else if self.rcv.in_receive_window(&self.conn, seq) {
            // The syncache answers for a passive open (syncache_chkrst).
            self.challenge(cx);
        }
    }

    /// Handles a SYN on a connection that already has one: a retransmission or a simultaneous open
    /// of the handshake, or a stray one (RFC 5961 section 4). `seq` is `None` for a number before
    /// the stream.
    pub(super) fn input_late_syn<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Option<Offset>,
    ) {
        let acks = segment.flags.has(Flags::ACK);
        let same_syn = self.conn.state == TcpState::SynReceived && seq == Some(Offset(0));
        if same_syn && acks && segment.ack == self.snd.max.to_seq(self.conn.cfg.isn) {
            // The answer to our SYN-ACK after a simultaneous open.
            self.on_crossed_syn_ack(cx, segment);
        } else if same_syn && acks && self.conn.syn_data().is_some() {
            // tcp_validate_incoming: it does not acknowledge the data of our SYN.
            if self.challenge.allow(cx.now, self.conn.cfg.profile.challenge) {
                self.rcv.window.begin_scaling();
                self.respond(cx);
            }
        } else if same_syn {
            if self.may_answer(cx.now, segment) {
                self.snd.restart_syn_ack_timer(&self.conn, &mut self.timers, cx.now);
                self.snd.call_output();
            }
        } else if self.conn.state == TcpState::TimeWait && self.conn.checks_time_wait() && !acks {
            // tcp_twcheck drops an old SYN. A newer one ends the old connection and is passed to a
            // listener, of which there is none here.
            if seq.is_some_and(|seq| seq > self.rcv.nxt) {
                self.conn.state = TcpState::Closed;
                self.timers.stop_all();
                self.answer_with_reset(segment);
            }
        } else if self.conn.state == TcpState::TimeWait && self.conn.checks_time_wait() {
            // tcp_twcheck answers every segment with an ACK.
            self.respond(cx);
        } else if self.conn.cfg.profile.lax.insecure_syn
            && self.conn.state != TcpState::SynReceived
            && seq.is_some_and(|seq| self.rcv.in_receive_window(&self.conn, seq))
        {
            // tcp_drop
            self.reset(cx);
        } else {
            self.challenge(cx);
        }
    }

    /// Answers a FIN after the end of the peer's stream in TIME-WAIT, as tcp_twcheck of FreeBSD
    /// does: with an ACK.
    pub(super) fn answers_fin_beyond<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
    ) -> bool {
        let beyond = seq > self.rcv.nxt && segment.flags.has(Flags::FIN | Flags::ACK);
        let answers = beyond && self.conn.cfg.profile.rules.receiving.acks_fin_beyond_gap;
        if answers {
            self.respond(cx);
        }
        answers
    }

    /// Sends a challenge ACK: a peer with stale state resets, and an off-path attacker learns
    /// nothing.
    pub(super) fn challenge<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if !self.challenge.allow(cx.now, self.conn.cfg.profile.challenge) {
            return;
        }
        let handshake = self.conn.state == TcpState::SynReceived;
        if handshake && self.conn.cfg.profile.rules.opening.syncache {
            self.respond(cx);
            return;
        }
        match self.snd.stack.challenges_by_respond() {
            true => self.respond(cx),
            false => self.ack_at_once(),
        }
    }

    /// RFC 7323 section 5: a segment older than the last one received is answered and dropped;
    /// one without the negotiated timestamps is dropped on strict systems.
    pub(super) fn has_stale_timestamp<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        ack: Offset,
    ) -> bool {
        if !self.conn.negotiated.timestamps {
            return false;
        }
        let Some(stamps) = segment.timestamps else {
            return self.conn.cfg.profile.strict_timestamps;
        };
        let tolerant = self.conn.cfg.profile.rules.receiving.tolerant_paws;
        // One tick (TCP_PAWS_WINDOW), but not in TIME-WAIT (tcp_paws_reject).
        let tolerated = i32::from(tolerant && self.conn.state != TcpState::TimeWait);
        let older = (self.rcv.ts_recent.wrapping_sub(stamps.val) as i32) > tolerated;
        let stale = older && cx.now.since(self.rcv.ts_recent_at) < PAWS_IDLE;
        if !unlikely(stale) {
            return false;
        }
        if tolerant
            && self.snd.is_disordered_ack(&self.conn, &self.rcv, segment, stamps.val, seq, ack)
        {
            return false;
        }
        let queued = self.conn.cfg.profile.rules.receiving.old_segments == OldSegments::Queued;
        if queued && self.conn.state != TcpState::TimeWait {
            self.answer_old(cx.now, segment, seq);
        } else if self.may_answer(cx.now, segment) {
            self.ack_at_once();
        }
        true
    }

    /// Linux: a segment without new data, or beyond the window (tcp_sequence, tcp_data_queue).
    pub(super) fn input_old<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        ack: Offset,
    ) {
        let fin = u64::from(segment.flags.has(Flags::FIN));
        let end = seq + u64::from(segment.payload) + fin;
        if end < self.rcv.acked || seq > self.rcv.adv.max(self.rcv.nxt) {
            self.answer_old(cx.now, segment, seq);
            return;
        }
        self.rcv.take_timestamp(&self.conn, cx.now, segment, seq, end);
        self.on_ack(cx, segment, seq, ack);
        if is_bare(segment) {
            return;
        }
        // A retransmission, or data for a closed window.
        self.rcv.note_duplicate(&self.conn, segment, seq);
        self.rcv.policy.on_old_data(self.rcv.rcv_wnd(), self.rcv.rcv_mss(&self.conn), true);
        self.ack_at_once();
    }

    /// tcp_send_dupack of Linux: the ACK reports old data as duplicate.
    fn answer_old(&mut self, now: Instant, segment: &Segment, seq: Offset) {
        if !self.may_answer(now, segment) {
            return;
        }
        if !is_bare(segment) && seq < self.rcv.nxt {
            self.rcv.policy.on_old_data(self.rcv.rcv_wnd(), self.rcv.rcv_mss(&self.conn), false);
            self.rcv.note_old(&self.conn, segment, seq);
        }
        self.ack_at_once();
    }

    /// Linux limits its answers to unacceptable pure ACKs and to repeated SYNs to one in half a
    /// second, so that two endpoints in disagreement do not loop for ever (tcp_oow_rate_limited,
    /// `net.ipv4.tcp_invalid_ratelimit`). Data cannot cause such a loop.
    pub(super) fn may_answer(&mut self, now: Instant, segment: &Segment) -> bool {
        let limited = self.conn.cfg.profile.rules.receiving.limits_answers && is_bare(segment);
        !limited || self.challenge.allow(now, self.conn.cfg.profile.challenge)
    }
}

impl ReceiveSide {
    /// Linux: may a RST have this number, though it is not the next (tcp_validate_incoming, tcp_reset_check)? That of
    /// the peer's FIN, and the end of the last block that SACK reports.
    #[cold]
    fn resets_beyond(&self, conn: &Connection, seq: Offset) -> bool {
        let closed =
            matches!(conn.state, TcpState::CloseWait | TcpState::LastAck | TcpState::Closing);
        let last = self.reassembly.last_block_end().filter(|_| conn.negotiated.sack);
        conn.cfg.profile.rules.receiving.rst_at_fin_or_block
            && ((closed && seq + 1 == self.nxt) || last == Some(seq))
    }

    /// Is `seq` in the window for resets and SYNs? FreeBSD counts it from the last ACK sent and
    /// with all free space, whatever the field of the header could report (`rcv_wnd`); the syncache
    /// has only the field of the SYN-ACK.
    fn in_receive_window(&self, conn: &Connection, seq: Offset) -> bool {
        let passive = conn.state == TcpState::SynReceived && conn.cfg.side == TcpSide::Server;
        if !conn.cfg.profile.rules.receiving.resets_from_last_ack || passive {
            return seq >= self.nxt && seq < self.adv;
        }
        let window = self.window.space().max(self.adv.since(self.nxt).get());
        seq >= self.acked && seq < self.acked + window
    }
}

impl Connection {
    /// Does TIME-WAIT check segments as tcp_twcheck does?
    fn checks_time_wait(&self) -> bool {
        self.cfg.profile.rules.closing.time_wait == TimeWaitRule::Check
    }
}

/// Does a segment occupy no sequence number?
fn is_bare(segment: &Segment) -> bool {
    segment.payload == 0 && !segment.flags.has(Flags::FIN)
}

impl Sender {
    /// tcp_disordered_ack: a duplicate ACK that was overtaken by another is no error.
    fn is_disordered_ack(
        &self,
        conn: &Connection,
        rcv: &ReceiveSide,
        segment: &Segment,
        val: u32,
        seq: Offset,
        ack: Offset,
    ) -> bool {
        let wnd = conn.scaled_window(segment);
        let updates =
            seq > self.peer.wl1 || (seq == self.peer.wl1 && (wnd > self.peer.wnd || wnd == 0));
        let age = u64::from(rcv.ts_recent.wrapping_sub(val));
        // tcp_tsval_replay: the peer's clock may run at 1,200 Hz.
        let replay =
            scaled(self.rtt.estimator.rto().as_nanos(), 1_200, Duration::from_secs(1).as_nanos());
        is_bare(segment) && seq == rcv.nxt && ack == self.una && !updates && age <= replay
    }
}
