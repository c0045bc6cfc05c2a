//! FreeBSD's base stack: the acknowledgment part of tcp_do_segment in the order of its steps, with
//! tcp_do_prr_ack, tcp_sack_partialack, tcp_newreno_partial_ack and tcp_sack_lost_retransmission
//! (tcp_input.c, tcp_sack.c; 13.0, 14.3 and main of October 2024, which differ by [`SackRule`]).
//!
//! After `goto drop` the kernel does nothing more: such an ACK does not update the window. Where it
//! calls tcp_output before `snd_una` advances, so does this code ([`TcpEndpoint::output_now`]).

use cc::{AckEvent, CongestionSignal as Sign, Controller, RecoveryEnd, WindowController};
use machine::Cx;
use packet::{Flags, Options, Segment};
use record::{Cause, Event, Purpose, Recorder};
use recovery::holes::{SackChange, SackUpdate};
use recovery::prr::freebsd::PrrRule;
use units::{Bytes, Offset};

use super::DUP_THRESHOLD;
use super::{LossDetector, ReceivedAck};
use crate::endpoint::{TcpEndpoint, TcpState};
use crate::profile::{DuplicateRule, LimitedTransmitRule, SackRule, SettleRule};
use crate::sent::DeliveredPackets;

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
        if self.ecn.echoed(segment.flags) {
            self.on_ecn_echo(cx, ack);
        }
        if rule.undoes_on_any_ack {
            self.undo_bad_timeout(cx, segment, &rule);
        }
        let wnd = self.scaled_window(segment);
        if self.predicts_ack(segment, seq, ack, wnd) {
            let received = self.parse_ack(segment, (seq, ack), wnd);
            self.advance_una(cx, segment, seq, &received, &rule);
            self.snd.rexmt.dup_acks = 0;
            self.snd.peer.wl2 = ack;
            self.call_output();
            self.wake_writer_after(cx);
            return;
        }
        let received = self.parse_ack(segment, (seq, ack), wnd);
        if self.acknowledge(cx, segment, seq, &received, &rule) == AckNextStep::Window {
            self.take_window(seq, ack, wnd);
            self.wake_writer_after(cx);
        }
    }

    /// A blocked writer runs after the segment is processed: it sees the buffer as tcp_output has
    /// left it.
    fn wake_writer_after<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.snd.call.due {
            self.snd.call.check_space = true;
        } else {
            self.wake_writer(cx);
        }
    }

    /// Header prediction: a pure ACK for new data, outside of recovery and without holes.
    fn predicts_ack(&self, segment: &Segment, seq: Offset, ack: Offset, wnd: u64) -> bool {
        let LossDetector::Sack(loss) = &self.snd.loss_detector else { return false };
        segment.payload == 0
            && ack > self.snd.una
            && wnd != 0
            && wnd == self.snd.peer.wnd
            && self.snd.nxt == self.snd.max
            && self.state == TcpState::Established
            && seq == self.rcv.nxt
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && matches!(segment.options, Options::None)
            && loss.holes.is_empty()
            && !self.cc.in_recovery()
            && self.snd.rexmt.cwr_end.is_none()
            && self.rcv.reassembly.is_empty()
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
        let sack_recovery = self.negotiated.sack && (received.sacks || !loss.holes.is_empty());
        let update = if sack_recovery {
            let update = self.sack_update(received);
            if update.changed != SackChange::None {
                self.detect_lost_retransmission(cx);
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
        if self.counts_as_duplicate(&ack, rule) {
            self.snd.rexmt.dup_acks = 1;
            cx.emit(|| Event::DupAck { count: 1 });
            let maxseg = self.mss();
            if rule.newsack
                && !self.in_fast_recovery()
                && matches!(&self.snd.loss_detector, LossDetector::Sack(loss) if loss.sacked_beyond_threshold(maxseg))
            {
                self.enter_recovery(cx, &ack, rule);
            }
        }
        if received.th_ack < self.cc.recovery_point() && self.in_fast_recovery() {
            self.on_partial_ack(cx, &ack, rule);
        }
        self.advance_una(cx, segment, seq, received, rule);
        AckNextStep::Window
    }

    /// tcp_sack_lost_retransmission: a retransmission sent before data beyond the recovery point,
    /// and still missing when such data is SACKed, is lost again. That is a new congestion signal.
    fn detect_lost_retransmission<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let point = self.cc.recovery_point();
        let outstanding = self.snd.max - self.snd.una;
        let in_recovery = self.in_fast_recovery();
        let Some(loss) = self.snd.loss_detector.sack() else { return };
        if !in_recovery || !loss.holes.lost_retransmission(point) {
            return;
        }
        loss.prr.restart(outstanding);
        let ssthresh = self.cc.control().ssthresh.unwrap_or(self.cc.control().window);
        self.cc.set_window(ssthresh);
        self.cc.leave_recovery();
        self.totals.fast_recoveries += 1;
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Loss));
        self.cc.set_window(Bytes(self.mss()));
        self.note(cx, change, Cause::LostRetransmission);
    }

    /// Does an ACK that advances `snd_una` count as a duplicate because of its blocks (RFC 6675)?
    fn counts_as_duplicate(&self, ack: &ProcessedAck<'_>, rule: &SackRule) -> bool {
        let changed = ack.update.changed;
        match rule.duplicates {
            DuplicateRule::ChangesScoreboard => ack.received.sacks && changed != SackChange::None,
            DuplicateRule::AnyWhileEmpty => {
                // After a timeout only a newly detected loss does, and nothing while the flight is
                // being retransmitted.
                let news = match self.snd.rexmt.shift {
                    0 => changed != SackChange::None,
                    _ => changed == SackChange::NewLoss,
                };
                ack.sack_recovery && news && self.snd.nxt == self.snd.max
            }
        }
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
        if received.data || !(received.wnd == self.snd.peer.wnd || self.negotiated.sack) {
            return AckNextStep::Window;
        }
        if segment.flags.has(Flags::FIN) && self.rcv.fin.is_none() {
            // The peer closes: not a duplicate.
            self.snd.rexmt.dup_acks = 0;
            return AckNextStep::Window;
        }
        let must_change = match rule.duplicates {
            DuplicateRule::ChangesScoreboard => self.negotiated.sack,
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
        let maxseg = self.mss();
        if count > DUP_THRESHOLD || self.in_fast_recovery() {
            self.count_duplicate(cx, ack.received);
            if self.negotiated.sack && self.in_fast_recovery() {
                self.sack_prr(cx, ack);
            } else {
                // No PRR without SACK (`V_tcp_do_prr && TF_SACK_PERMIT`).
                self.cc.override_window(Bytes(self.cwnd() + maxseg));
                self.emit_window(cx, Cause::Recovering);
            }
            self.call_output();
            return AckNextStep::Drop;
        }
        let much = self.negotiated.sack
            && matches!(&self.snd.loss_detector, LossDetector::Sack(loss) if loss.sacked_beyond_threshold(maxseg));
        if count == DUP_THRESHOLD || much {
            self.enter_recovery(cx, ack, rule);
            return AckNextStep::Drop;
        }
        if self.cfg.profile.limited_transmit {
            self.count_duplicate(cx, ack.received);
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
        let maxseg = self.mss();
        let (una, nxt, max) = (self.snd.una, self.snd.nxt, self.snd.max);
        let cause = self.snd.rexmt.cause;
        self.totals.fast_recoveries += 1;
        self.snd.rexmt.dup_acks = DUP_THRESHOLD;
        self.abandon_cwr();
        let by_holes = match rule.duplicates {
            DuplicateRule::ChangesScoreboard => self.negotiated.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        let mut congested = self.congested(cx.now, Sign::Loss);
        if by_holes && rule.recovers_to_nxt {
            congested.snd_max = nxt;
        }
        let change = self.cc.on_congested(&congested);
        self.count_duplicate(cx, ack.received);
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
            self.cc.set_window(Bytes(maxseg));
            self.note(cx, change, Cause::FastRetransmit);
            self.output_now(cx);
            return;
        }
        self.snd.nxt = ack.received.th_ack;
        self.snd.rexmt.cause = Cause::FastRetransmit;
        self.cc.override_window(Bytes(maxseg));
        self.emit_window(cx, Cause::FastRetransmit);
        self.output_now(cx);
        let ssthresh = self.cc.control().ssthresh.map_or(0, Bytes::get);
        let left = self.snd.rexmt.dup_acks - self.snd.rexmt.limited.min(DUP_THRESHOLD);
        self.cc.override_window(Bytes(ssthresh + maxseg * u64::from(left)));
        // If the flight of a timeout is still being retransmitted, that continues.
        self.snd.nxt = self.snd.nxt.max(nxt);
        self.snd.rexmt.cause = cause;
        self.note(cx, change, Cause::FastRetransmit);
    }

    /// Limited transmit: the first and the second duplicate each release a segment (RFC 3042).
    fn limited_transmit<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, rule: &SackRule) {
        let (maxseg, before, cwnd) = (self.mss(), self.snd.max, self.cwnd());
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
        self.cc.override_window(Bytes(base + more));
        let owes_ack =
            rule.limited == LimitedTransmitRule::WindowWhileRetransmitting && self.rcv.ack_now;
        if self.snd.buffer.used() + u64::from(rule.limited_without_data) > flight || owes_ack {
            self.emit_window(cx, Cause::Recovering);
            self.output_now(cx);
        }
        let sent = self.snd.max.since(before).get();
        if sent > maxseg {
            self.snd.rexmt.limited = 2;
        } else if sent > 0 {
            self.snd.rexmt.limited += 1;
        }
        self.cc.override_window(Bytes(cwnd));
        self.emit_window(cx, Cause::Recovering);
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
        if !self.negotiated.sack {
            self.newreno_partial_ack(cx, th_ack);
            return;
        }
        if ack.received.sacks || rule.prr == PrrRule::Rfc6937 {
            self.sack_prr(cx, ack);
        } else {
            self.sack_partial_ack(cx, th_ack);
        }
        self.rcv.ack_now = true;
        self.output_now(cx);
    }

    /// tcp_newreno_partial_ack: retransmits the next segment, then deflates the window by the bytes
    /// acknowledged.
    fn newreno_partial_ack<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, th_ack: Offset) {
        let (nxt, cwnd, maxseg) = (self.snd.nxt, self.cwnd(), self.mss());
        let acked = th_ack - self.snd.una;
        let cause = core::mem::replace(&mut self.snd.rexmt.cause, Cause::PartialAck);
        self.snd.nxt = th_ack;
        self.cc.override_window(Bytes(maxseg + acked));
        self.rcv.ack_now = true;
        self.emit_window(cx, Cause::Recovering);
        self.output_now(cx);
        self.snd.nxt = self.snd.nxt.max(nxt);
        self.snd.rexmt.cause = cause;
        self.cc.override_window(Bytes(cwnd.saturating_sub(acked) + maxseg));
        self.emit_window(cx, Cause::Recovering);
    }

    /// `process_ACK`: round trip, timer, controller, `snd_una`, the end of a recovery.
    fn advance_una<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        received: &ReceivedAck,
        rule: &SackRule,
    ) {
        let ack = received.th_ack;
        let bytes = ack - self.snd.una;
        let recovering = self.in_fast_recovery();
        let early = rule.settle == SettleRule::BeforeCounting;
        if recovering && early && ack >= self.cc.recovery_point() {
            self.settle(cx, ack, (self.snd.max - ack) as i64);
        }
        self.undo_bad_timeout(cx, segment, rule);
        let mut delivered = DeliveredPackets::default();
        self.snd.scoreboard.acknowledge(ack, |sent_segment| delivered.add(sent_segment));
        let samples = self.snd.rtt.samples;
        self.take_rtt(cx, segment, ack, &delivered);
        if self.snd.rtt.samples != samples {
            self.snd.rexmt.shift = 0;
        }
        if ack == self.snd.max {
            self.timers.stop(Purpose::Retransmit);
            self.call_output();
        } else if !self.timers.runs(Purpose::Persist) {
            self.arm_retransmit(cx.now);
        }
        let acked = AckEvent {
            una: ack,
            bytes,
            packets: delivered.packets as u32,
            ends_recovery: recovering && !self.in_fast_recovery(),
            ..self.acked(cx, received)
        };
        let change = self.cc.on_acked(&acked);
        // Step 6 takes the window of a segment that is not old; else the window shrinks by the
        // bytes acknowledged.
        let wnd = if self.snd.peer.wl1 <= seq {
            received.wnd
        } else {
            self.snd.peer.wnd.saturating_sub(bytes.min(self.snd.buffer.used()))
        };
        self.advance(cx, ack, wnd, received.nsegs, change);
        if let Some(end) = self.snd.rexmt.cwr_end {
            if ack > end {
                self.end_cwr(cx, ack);
            }
        } else if self.in_fast_recovery() && ack >= self.cc.recovery_point() {
            // Undoing a timeout may have restored a recovery that is over.
            if early {
                self.cc.leave_recovery();
            } else {
                self.settle(cx, ack, self.computed_pipe());
            }
        }
    }

    /// Undoes the first of consecutive timeouts if an acknowledgment echoes a timestamp older than
    /// the last segment sent since (`t_badrxtwin`).
    fn undo_bad_timeout<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        rule: &SackRule,
    ) {
        let Some(retransmission) = self.snd.rexmt.timeout_stamp else { return };
        let echo = segment.timestamps.map_or(0, |stamps| stamps.ecr);
        let tsecr_before = echo != 0 && (echo.wrapping_sub(retransmission) as i32) < 0;
        if self.snd.rexmt.shift != 1 || !tsecr_before {
            return;
        }
        self.snd.rexmt.timeout_stamp = None;
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::SpuriousTimeout));
        self.totals.spurious += 1;
        self.snd.nxt = self.snd.max;
        if rule.undo_ends_backoff {
            self.snd.rexmt.shift = 0;
        }
        self.note(cx, change, Cause::Undone);
    }

    /// cc_post_recovery.
    fn settle<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, th_ack: Offset, pipe: i64) {
        let max = self.snd.max;
        let Some(loss) = self.snd.loss_detector.sack() else { return };
        loss.holes.clamp_fack(th_ack, max);
        // The kernel compares an `int` with a `uint32_t`: a negative pipe becomes large.
        let pipe = u64::from(pipe as u32);
        let change = self.cc.on_recovered(&RecoveryEnd { th_ack, pipe });
        let Some(loss) = self.snd.loss_detector.sack() else { return };
        loss.prr.prr_out = 0;
        if loss.rule.settle == SettleRule::AfterAdvancing {
            loss.prr.prr_delivered = 0;
            loss.holes.forget_delivered();
        }
        self.note(cx, change, Cause::Recovered);
    }

    /// cc_ack_received with CC_DUPACK: FreeBSD's CUBIC samples the smoothed round trip.
    fn count_duplicate<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, received: &ReceivedAck) {
        let acked = self.acked(cx, received);
        self.cc.on_duplicate(&acked);
    }

    fn acked<R: Recorder>(&mut self, cx: &Cx<'_, R>, received: &ReceivedAck) -> AckEvent {
        AckEvent {
            now: cx.now,
            ticks: self.clock.tick(cx.now),
            rtt: self.snd.rtt.sample.take(),
            srtt: self.smoothed(),
            snd_nxt: self.snd.nxt,
            una: self.snd.una,
            bytes: 0,
            packets: 0,
            nsegs: received.nsegs,
            ends_recovery: false,
            retransmitting: self.snd.nxt != self.snd.max,
            snd_wnd: self.snd.peer.wnd,
            window_limited: self.snd.usage.limited,
            max_packets_out: self.snd.usage.max_packets_out as u32,
        }
    }

    /// Step 6: updates the window unless the segment is older than the last that did.
    fn take_window(&mut self, seq: Offset, ack: Offset, wnd: u64) {
        let snd = &mut self.snd;
        let newer = snd.peer.wl1 < seq
            || (snd.peer.wl1 == seq
                && (snd.peer.wl2 < ack || (snd.peer.wl2 == ack && wnd > snd.peer.wnd)));
        if !newer {
            return;
        }
        snd.peer.wnd = wnd;
        snd.peer.max_wnd = snd.peer.max_wnd.max(wnd);
        (snd.peer.wl1, snd.peer.wl2) = (seq, ack);
        self.call_output();
    }
}
