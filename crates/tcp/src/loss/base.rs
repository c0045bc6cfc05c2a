//! FreeBSD's base stack: the acknowledgment part of tcp_do_segment in the order of its steps, with
//! tcp_do_prr_ack, tcp_sack_partialack, tcp_newreno_partial_ack and tcp_sack_lost_retransmission
//! (tcp_input.c, tcp_sack.c; 13.0, 14.3 and main of October 2024, which differ by [`SackRule`]).
//!
//! After `goto drop` the kernel does nothing more: such an ACK does not update the window. Where it
//! calls tcp_output before `snd_una` advances, so does this code ([`TcpEndpoint::output_now`]).

use cc::{AckEvent, CongestionSignal as Sign, Controller, WindowController};
use machine::Cx;
use packet::{Flags, Options, Segment};
use record::{Cause, Event, Purpose, Recorder};
use recovery::holes::{SackChange, SackUpdate};
use recovery::prr::freebsd::PrrRule;
use units::{Bytes, Offset};

use super::DUP_THRESHOLD;
use super::{LossDetector, ReceivedAck};
use crate::connection::Connection;
use crate::endpoint::{TcpEndpoint, TcpState};
use crate::profile::{DuplicateRule, LimitedTransmitRule, SackRule, SettleRule};
use crate::sent::DeliveredPackets;
use crate::state::{ReceiveSide, SendSide};
use crate::timers::Timers;

/// An acknowledgment and the resulting update of the scoreboard.
pub(super) struct ProcessedAck<'a> {
    pub(super) received: &'a ReceivedAck,
    pub(super) update: SackUpdate,
    /// SACK was negotiated, and the ACK has blocks or there are holes (tcp_is_sack_recovery).
    pub(super) sack_recovery: bool,
}

/// The step after an acknowledgment that does not advance `snd_una`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckNextStep {
    /// Step 6: it may update the window.
    Window,
    /// `goto drop`.
    Drop,
}

impl TcpEndpoint {
    /// Processes an acceptable segment that acknowledges up to `ack`.
    pub(crate) fn base_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        ack: Offset,
    ) {
        let Some(loss) = self.snd.loss_detector.sack() else { return };
        let rule = *loss.rule();
        if self.snd.ecn.echoed(segment.flags) {
            self.snd.on_ecn_echo(&self.conn, cx, ack);
        }
        if rule.undoes_on_any_ack {
            self.snd.undo_bad_timeout(&self.conn, cx, segment, &rule);
        }
        let wnd = self.conn.scaled_window(segment);
        if self.snd.predicts_ack(&self.conn, &self.rcv, segment, seq, ack, wnd) {
            let received = self.snd.parse_ack(&self.conn, segment, (seq, ack), wnd);
            self.snd.advance_una(&self.conn, &mut self.timers, cx, segment, seq, &received);
            self.snd.rexmt.dup_acks = 0;
            self.snd.peer.wl2 = ack;
            self.snd.call_output();
            self.snd.wake_writer_after(&self.conn, cx);
            return;
        }
        let received = self.snd.parse_ack(&self.conn, segment, (seq, ack), wnd);
        if self.acknowledge(cx, segment, seq, &received, &rule) == AckNextStep::Window {
            self.snd.take_window(seq, ack, wnd);
            self.snd.wake_writer_after(&self.conn, cx);
        }
    }

    /// The steps from the scoreboard update on.
    fn acknowledge<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        received: &ReceivedAck,
        rule: &SackRule,
    ) -> AckNextStep {
        let loss = match &mut self.snd.loss_detector {
            LossDetector::Sack(loss) => loss,
            _ => return AckNextStep::Window,
        };
        let sack_recovery = self.conn.negotiated.sack && (received.sacks || !loss.holes.is_empty());
        let update = if sack_recovery {
            let update = self.snd.sack_update(&self.conn, received);
            if update.changed != SackChange::None {
                self.snd.detect_lost_retransmission(&self.conn, cx);
            }
            update
        } else {
            loss.holes.forget_sacked();
            SackUpdate::default()
        };
        let ack = ProcessedAck { received, update, sack_recovery };
        if received.th_ack <= self.snd.una {
            return self.no_new_ack(cx, segment, &ack, rule);
        }
        self.snd.rexmt.dup_acks = 0;
        if self.snd.counts_as_duplicate(&ack, rule) {
            self.snd.rexmt.dup_acks = 1;
            cx.emit(|| Event::DupAck { count: 1 });
            let maxseg = self.conn.mss();
            if rule.newsack
                && !self.snd.in_fast_recovery()
                && matches!(&self.snd.loss_detector, LossDetector::Sack(loss) if loss.sacked_beyond_threshold(maxseg))
            {
                self.enter_recovery(cx, &ack, rule);
            }
        }
        if received.th_ack < self.snd.cc.recovery_point() && self.snd.in_fast_recovery() {
            self.on_partial_ack(cx, &ack, rule);
        }
        self.snd.advance_una(&self.conn, &mut self.timers, cx, segment, seq, received);
        AckNextStep::Window
    }

    /// `th_ack <= snd_una`.
    fn no_new_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck<'_>,
        rule: &SackRule,
    ) -> AckNextStep {
        let received = ack.received;
        if received.data || !(received.wnd == self.snd.peer.wnd || self.conn.negotiated.sack) {
            return AckNextStep::Window;
        }
        if segment.flags.has(Flags::FIN) && self.rcv.fin.is_none() {
            // The peer closes: not a duplicate.
            self.snd.rexmt.dup_acks = 0;
            return AckNextStep::Window;
        }
        let must_change = match rule.duplicates {
            DuplicateRule::ChangesScoreboard => self.conn.negotiated.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        if received.th_ack != self.snd.una
            || (must_change && ack.update.changed == SackChange::None)
        {
            return AckNextStep::Window;
        }
        if !self.timers.runs(Purpose::Retransmit) {
            self.snd.rexmt.dup_acks = 0;
            return AckNextStep::Window;
        }
        self.on_duplicate_ack(cx, ack, rule)
    }

    fn on_duplicate_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck<'_>,
        rule: &SackRule,
    ) -> AckNextStep {
        self.snd.rexmt.dup_acks += 1;
        let count = self.snd.rexmt.dup_acks;
        cx.emit(|| Event::DupAck { count });
        let maxseg = self.conn.mss();
        if count > DUP_THRESHOLD || self.snd.in_fast_recovery() {
            self.snd.count_duplicate(&self.conn, cx, ack.received);
            if self.conn.negotiated.sack && self.snd.in_fast_recovery() {
                self.snd.sack_prr(&self.conn, cx, ack);
            } else {
                // No PRR without SACK (`V_tcp_do_prr && TF_SACK_PERMIT`).
                self.snd.cc.override_window(Bytes(self.snd.cwnd() + maxseg));
                self.snd.emit_window(&self.conn, cx, Cause::Recovering);
            }
            self.snd.call_output();
            return AckNextStep::Drop;
        }
        let much = self.conn.negotiated.sack
            && matches!(&self.snd.loss_detector, LossDetector::Sack(loss) if loss.sacked_beyond_threshold(maxseg));
        if count == DUP_THRESHOLD || much {
            self.enter_recovery(cx, ack, rule);
            return AckNextStep::Drop;
        }
        if self.conn.cfg.profile.limited_transmit {
            self.snd.count_duplicate(&self.conn, cx, ack.received);
            self.limited_transmit(cx, rule);
            return AckNextStep::Drop;
        }
        AckNextStep::Window
    }

    /// Enters recovery: retransmits the first hole or segment at once, the rest as PRR or
    /// duplicates allow.
    fn enter_recovery<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck<'_>,
        rule: &SackRule,
    ) {
        let maxseg = self.conn.mss();
        let (una, nxt, max) = (self.snd.una, self.snd.nxt, self.snd.max);
        let cause = self.snd.rexmt.cause;
        self.snd.totals.fast_recoveries += 1;
        self.snd.rexmt.dup_acks = DUP_THRESHOLD;
        self.snd.abandon_cwr();
        let by_holes = match rule.duplicates {
            DuplicateRule::ChangesScoreboard => self.conn.negotiated.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        let mut congested = self.snd.congested(&self.conn, cx.now, Sign::Loss);
        if by_holes && rule.recovers_to_nxt {
            congested.snd_max = nxt;
        }
        let change = self.snd.cc.on_congested(&congested);
        self.snd.count_duplicate(&self.conn, cx, ack.received);
        self.timers.stop(Purpose::Retransmit);
        self.snd.rtt.timing = None;
        let loss = match &mut self.snd.loss_detector {
            LossDetector::Sack(loss) => loss,
            _ => return,
        };
        loss.holes.clamp_fack(una, max);
        let delivered = match rule.prr {
            PrrRule::Rfc6937 => loss.holes.sacked_bytes(),
            PrrRule::Rfc6937bis if ack.sack_recovery => maxseg,
            PrrRule::Rfc6937bis => (max - una).min(u64::from(DUP_THRESHOLD) * maxseg),
        };
        loss.prr.begin(nxt.since(una).get().max(1), delivered);
        if by_holes {
            self.snd.cc.set_window(Bytes(maxseg));
            self.snd.note(&self.conn, cx, change, Cause::FastRetransmit);
            self.output_now(cx);
            return;
        }
        self.snd.nxt = ack.received.th_ack;
        self.snd.rexmt.cause = Cause::FastRetransmit;
        self.snd.cc.override_window(Bytes(maxseg));
        self.snd.emit_window(&self.conn, cx, Cause::FastRetransmit);
        self.output_now(cx);
        let ssthresh = self.snd.cc.control().ssthresh.map_or(0, Bytes::get);
        let left = self.snd.rexmt.dup_acks - self.snd.rexmt.limited.min(DUP_THRESHOLD);
        self.snd.cc.override_window(Bytes(ssthresh + maxseg * u64::from(left)));
        // If the flight of a timeout is still being retransmitted, that continues.
        self.snd.nxt = self.snd.nxt.max(nxt);
        self.snd.rexmt.cause = cause;
        self.snd.note(&self.conn, cx, change, Cause::FastRetransmit);
    }

    /// Limited transmit: the first and the second duplicate each release a segment (RFC 3042).
    fn limited_transmit<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, rule: &SackRule) {
        let (maxseg, before, cwnd) = (self.conn.mss(), self.snd.max, self.snd.cwnd());
        if self.snd.rexmt.dup_acks == 1 {
            self.snd.rexmt.limited = 0;
        }
        let flight = self.snd.nxt.since(self.snd.una).get();
        let retransmitting = self.snd.nxt < self.snd.max || self.snd.rexmt.shift > 0;
        let from_window =
            rule.limited == LimitedTransmitRule::WindowWhileRetransmitting && retransmitting;
        let base = if from_window { cwnd } else { flight };
        let more =
            u64::from(self.snd.rexmt.dup_acks.saturating_sub(self.snd.rexmt.limited)) * maxseg;
        self.snd.cc.override_window(Bytes(base + more));
        let owes_ack =
            rule.limited == LimitedTransmitRule::WindowWhileRetransmitting && self.rcv.ack_now;
        if self.snd.buffer.used() + u64::from(rule.limited_without_data) > flight || owes_ack {
            self.snd.emit_window(&self.conn, cx, Cause::Recovering);
            self.output_now(cx);
        }
        let sent = self.snd.max.since(before).get();
        if sent > maxseg {
            self.snd.rexmt.limited = 2;
        } else if sent > 0 {
            self.snd.rexmt.limited += 1;
        }
        self.snd.cc.override_window(Bytes(cwnd));
        self.snd.emit_window(&self.conn, cx, Cause::Recovering);
    }

    /// Processes a partial acknowledgment in recovery; `snd_una` and `snd_wnd` still have their old
    /// values when the kernel calls tcp_output.
    fn on_partial_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck<'_>,
        rule: &SackRule,
    ) {
        self.timers.stop(Purpose::Retransmit);
        self.snd.rtt.timing = None;
        let th_ack = ack.received.th_ack;
        if !self.conn.negotiated.sack {
            self.newreno_partial_ack(cx, th_ack);
            return;
        }
        if ack.received.sacks || rule.prr == PrrRule::Rfc6937 {
            self.snd.sack_prr(&self.conn, cx, ack);
        } else {
            self.snd.sack_partial_ack(&self.conn, cx, th_ack);
        }
        self.rcv.ack_now = true;
        self.output_now(cx);
    }

    /// tcp_newreno_partial_ack: retransmits the next segment, then deflates the window by the bytes
    /// acknowledged.
    fn newreno_partial_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, th_ack: Offset) {
        let (nxt, cwnd, maxseg) = (self.snd.nxt, self.snd.cwnd(), self.conn.mss());
        let acked = th_ack - self.snd.una;
        let cause = core::mem::replace(&mut self.snd.rexmt.cause, Cause::PartialAck);
        self.snd.nxt = th_ack;
        self.snd.cc.override_window(Bytes(maxseg + acked));
        self.rcv.ack_now = true;
        self.snd.emit_window(&self.conn, cx, Cause::Recovering);
        self.output_now(cx);
        self.snd.nxt = self.snd.nxt.max(nxt);
        self.snd.rexmt.cause = cause;
        self.snd.cc.override_window(Bytes(cwnd.saturating_sub(acked) + maxseg));
        self.snd.emit_window(&self.conn, cx, Cause::Recovering);
    }
}

impl SendSide {
    /// A blocked writer runs after the segment is processed: it sees the buffer as tcp_output has
    /// left it.
    fn wake_writer_after<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        if self.call.due {
            self.call.check_space = true;
        } else {
            self.wake_writer(conn, cx);
        }
    }

    /// Header prediction: a pure ACK for new data, outside of recovery and without holes.
    fn predicts_ack(
        &self,
        conn: &Connection,
        rcv: &ReceiveSide,
        segment: &Segment,
        seq: Offset,
        ack: Offset,
        wnd: u64,
    ) -> bool {
        let LossDetector::Sack(loss) = &self.loss_detector else { return false };
        segment.payload == 0
            && ack > self.una
            && wnd != 0
            && wnd == self.peer.wnd
            && self.nxt == self.max
            && conn.state == TcpState::Established
            && seq == rcv.nxt
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && matches!(segment.options, Options::None)
            && loss.holes.is_empty()
            && !self.cc.in_recovery()
            && self.rexmt.cwr_end.is_none()
            && rcv.reassembly.is_empty()
    }

    /// `process_ACK`: round trip, timer, controller, `snd_una`, the end of a recovery.
    fn advance_una<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        received: &ReceivedAck,
    ) {
        let Some(loss) = self.loss_detector.sack() else { return };
        let rule = *loss.rule();
        let ack = received.th_ack;
        let bytes = ack - self.una;
        let recovering = self.in_fast_recovery();
        let early = rule.settle == SettleRule::BeforeCounting;
        if recovering && early && ack >= self.cc.recovery_point() {
            self.settle(conn, cx, ack, (self.max - ack) as i64);
        }
        self.undo_bad_timeout(conn, cx, segment, &rule);
        let mut delivered = DeliveredPackets::default();
        self.scoreboard.acknowledge(ack, |sent_segment| delivered.add(sent_segment));
        let samples = self.rtt.samples;
        self.take_rtt(conn, cx, segment, ack, &delivered);
        if self.rtt.samples != samples {
            self.rexmt.shift = 0;
        }
        if ack == self.max {
            timers.stop(Purpose::Retransmit);
            self.call_output();
        } else if !timers.runs(Purpose::Persist) {
            self.arm_retransmit(conn, timers, cx.now);
        }
        let acked = AckEvent {
            una: ack,
            bytes,
            packets: delivered.packets as u32,
            ends_recovery: recovering && !self.in_fast_recovery(),
            ..self.acked(conn, cx, received)
        };
        let change = self.cc.on_acked(&acked);
        // Step 6 takes the window of a segment that is not old; else the window shrinks by the
        // bytes acknowledged.
        let wnd = if self.peer.wl1 <= seq {
            received.wnd
        } else {
            self.peer.wnd.saturating_sub(bytes.min(self.buffer.used()))
        };
        self.advance(conn, cx, ack, wnd, received.nsegs, change);
        if let Some(end) = self.rexmt.cwr_end {
            if ack > end {
                self.end_cwr(conn, cx, ack);
            }
        } else if self.in_fast_recovery() && ack >= self.cc.recovery_point() {
            // Undoing a timeout may have restored a recovery that is over.
            if early {
                self.cc.leave_recovery();
            } else {
                self.settle(conn, cx, ack, self.computed_pipe());
            }
        }
    }

    /// Looks for a lost retransmission (tcp_sack_lost_retransmission).
    fn detect_lost_retransmission<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        if !self.in_fast_recovery() {
            return;
        }
        let snd = self.sack_sequence(conn);
        let event = self.congested(conn, cx.now, Sign::Loss);
        let Some(loss) = self.loss_detector.sack() else { return };
        let Some(change) = loss.on_lost_retransmission(&snd, event, &mut self.cc) else { return };
        self.totals.fast_recoveries += 1;
        self.note(conn, cx, change, Cause::LostRetransmission);
    }

    /// Does an ACK that advances `snd_una` count as a duplicate because of its blocks (RFC 6675)?
    fn counts_as_duplicate(&self, ack: &ProcessedAck<'_>, rule: &SackRule) -> bool {
        let changed = ack.update.changed;
        match rule.duplicates {
            DuplicateRule::ChangesScoreboard => ack.received.sacks && changed != SackChange::None,
            DuplicateRule::AnyWhileEmpty => {
                // After a timeout only a newly detected loss does, and nothing while the flight is
                // being retransmitted.
                let news = match self.rexmt.shift {
                    0 => changed != SackChange::None,
                    _ => changed == SackChange::NewLoss,
                };
                ack.sack_recovery && news && self.nxt == self.max
            }
        }
    }

    /// Undoes the first of consecutive timeouts if an acknowledgment echoes a timestamp older than
    /// the last segment sent since (`t_badrxtwin`).
    fn undo_bad_timeout<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        rule: &SackRule,
    ) {
        let Some(retransmission) = self.rexmt.timeout_stamp else { return };
        let echo = segment.timestamps.map_or(0, |stamps| stamps.ecr);
        let tsecr_before = echo != 0 && (echo.wrapping_sub(retransmission) as i32) < 0;
        if self.rexmt.shift != 1 || !tsecr_before {
            return;
        }
        self.rexmt.timeout_stamp = None;
        let change = self.cc.on_congested(&self.congested(conn, cx.now, Sign::SpuriousTimeout));
        self.totals.spurious += 1;
        self.nxt = self.max;
        if rule.undo_ends_backoff {
            self.rexmt.shift = 0;
        }
        self.note(conn, cx, change, Cause::Undone);
    }

    /// cc_post_recovery.
    fn settle<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        th_ack: Offset,
        pipe: i64,
    ) {
        let Some(loss) = self.loss_detector.sack() else { return };
        let change = loss.on_recovered(th_ack, self.max, pipe, &mut self.cc);
        self.note(conn, cx, change, Cause::Recovered);
    }

    /// cc_ack_received with CC_DUPACK: FreeBSD's CUBIC samples the smoothed round trip.
    fn count_duplicate<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
    ) {
        let acked = self.acked(conn, cx, received);
        self.cc.on_duplicate(&acked);
    }

    fn acked<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &Cx<'_, R>,
        received: &ReceivedAck,
    ) -> AckEvent {
        AckEvent {
            now: cx.now,
            ticks: conn.clock.tick(cx.now),
            rtt: self.rtt.sample.take(),
            srtt: self.smoothed(conn),
            snd_nxt: self.nxt,
            una: self.una,
            bytes: 0,
            packets: 0,
            nsegs: received.nsegs,
            ends_recovery: false,
            retransmitting: self.nxt != self.max,
            snd_wnd: self.peer.wnd,
            window_limited: self.usage.limited,
            max_packets_out: self.usage.max_packets_out as u32,
        }
    }

    /// Step 6: updates the window unless the segment is older than the last that did.
    fn take_window(&mut self, seq: Offset, ack: Offset, wnd: u64) {
        let newer = self.peer.wl1 < seq
            || (self.peer.wl1 == seq
                && (self.peer.wl2 < ack || (self.peer.wl2 == ack && wnd > self.peer.wnd)));
        if !newer {
            return;
        }
        self.peer.wnd = wnd;
        self.peer.max_wnd = self.peer.max_wnd.max(wnd);
        (self.peer.wl1, self.peer.wl2) = (seq, ack);
        self.call_output();
    }
}
