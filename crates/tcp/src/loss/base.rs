//! FreeBSD's base stack: the acknowledgment part of tcp_do_segment in the order of its steps, with
//! tcp_do_prr_ack, tcp_sack_partialack, tcp_newreno_partial_ack and tcp_sack_lost_retransmission
//! (tcp_input.c, tcp_sack.c; 13.0, 14.3 and main of October 2024, which differ by [`SackRule`]).
//!
//! After `goto drop` the kernel does nothing more: such an ACK does not update the window. Where it
//! calls tcp_output before `snd_una` advances, the steps return [`AckNextStep::Output`], and go on
//! after the call with [`SendSide::resume_base_ack`]; `new_ack` has the steps of an acknowledgment
//! that advances `snd_una`.

mod new_ack;

use cc::{CongestionSignal as Sign, Controller, WindowChange, WindowController};
use machine::Cx;
use packet::{Flags, Options, Segment};
use record::{Cause, Event, Purpose, Recorder};
use recovery::holes::{SackChange, SackUpdate};
use recovery::prr::freebsd::PrrRule;
use units::{Bytes, Offset};

use super::DUP_THRESHOLD;
use super::LossDetector;
use crate::connection::Connection;
use crate::profile::{DuplicateRule, LimitedTransmitRule, SackRule};
use crate::received_ack::ReceivedAck;
use crate::sender::Sender;
use crate::state::{ReceiveSide, SendSide};
use crate::tcp_state::TcpState;
use crate::timers::Timers;

/// An acknowledgment and the resulting update of the scoreboard.
#[derive(Debug)]
pub(crate) struct ProcessedAck {
    pub(crate) received: ReceivedAck,
    pub(super) update: SackUpdate,
    /// SACK was negotiated, and the ACK has blocks or there are holes (tcp_is_sack_recovery).
    pub(super) sack_recovery: bool,
    rule: SackRule,
}

/// How an acknowledgment goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AckNextStep {
    /// Step 6: it may update the window.
    Window,
    /// `goto drop`.
    Drop,
    /// tcp_output is called, then [`SendSide::resume_base_ack`].
    Output(AfterOutput),
}

/// The step after the output call within an acknowledgment, with what that step restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterOutput {
    /// A recovery that retransmits holes has begun.
    HoleRecovery,
    /// A recovery that retransmits the segment at `snd_una` has begun.
    SegmentRecovery { nxt: Offset, cause: Cause, change: WindowChange },
    /// Limited transmit: `snd_max` and the window before the call.
    LimitedTransmit { max: Offset, cwnd: u64 },
    /// A partial acknowledgment with SACK.
    PartialAck,
    /// A partial acknowledgment without SACK.
    NewRenoPartialAck { nxt: Offset, cause: Cause, cwnd: u64 },
}

impl AfterOutput {
    /// Does the call send at least an ACK (`TF_ACKNOW`)?
    pub(crate) const fn acks_now(self) -> bool {
        matches!(self, Self::PartialAck | Self::NewRenoPartialAck { .. })
    }
}

impl SendSide {
    /// Begins with an acceptable segment that acknowledges up to `ack`: ECN, header prediction, the
    /// scoreboard. Returns `None` if that is all.
    pub(crate) fn begin_base_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        (seq, ack): (Offset, Offset),
    ) -> Option<ProcessedAck> {
        let rule = *self.loss_detector.sack()?.rule();
        if self.ecn.echoed(segment.flags) {
            self.on_ecn_echo(conn, cx, ack);
        }
        if rule.undoes_on_any_ack {
            self.undo_bad_timeout(conn, cx, segment, &rule);
        }
        let wnd = conn.scaled_window(segment);
        let predicted = self.predicts_ack(conn, rcv, segment, seq, ack, wnd);
        let received = ReceivedAck::parse(conn, self.una, segment, (seq, ack), wnd);
        if predicted {
            self.advance_una(conn, timers, cx, segment, &received);
            self.rexmt.dup_acks = 0;
            self.peer.wl2 = ack;
            self.call_output();
            self.wake_writer_after(conn, cx);
            return None;
        }
        let loss = self.loss_detector.sack()?;
        let sack_recovery = conn.negotiated.sack && (received.sacks || !loss.holes.is_empty());
        let update = if sack_recovery {
            let update = self.sack_update(conn, &received);
            if update.changed != SackChange::None {
                self.detect_lost_retransmission(conn, cx);
            }
            update
        } else {
            loss.holes.forget_sacked();
            self.settle_flight();
            SackUpdate::default()
        };
        Some(ProcessedAck { received, update, sack_recovery, rule })
    }

    /// The steps after the scoreboard update, up to the first output call.
    pub(crate) fn acknowledge<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck,
    ) -> AckNextStep {
        if ack.received.th_ack <= self.una {
            return self.no_new_ack(conn, timers, rcv, cx, segment, ack);
        }
        self.rexmt.dup_acks = 0;
        if self.counts_as_duplicate(ack) {
            self.rexmt.dup_acks = 1;
            cx.emit(|| Event::DupAck { count: 1 });
            if ack.rule.newsack
                && !self.in_fast_recovery()
                && self.sacked_beyond_threshold(conn.mss())
            {
                return self.enter_recovery(conn, timers, cx, ack);
            }
        }
        self.take_new_ack(conn, timers, cx, segment, ack)
    }

    /// Goes on after an output call.
    pub(crate) fn resume_base_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck,
        after: AfterOutput,
    ) -> AckNextStep {
        let mut began = false;
        match after {
            AfterOutput::HoleRecovery => began = true,
            AfterOutput::SegmentRecovery { nxt, cause, change } => {
                self.inflate_window(conn, cx, (nxt, cause), change);
                began = true;
            }
            AfterOutput::LimitedTransmit { max, cwnd } => {
                self.end_limited_call(conn, cx, max, cwnd);
            }
            AfterOutput::PartialAck => {}
            AfterOutput::NewRenoPartialAck { nxt, cause, cwnd } => {
                self.deflate_window(conn, cx, (nxt, cause), cwnd, ack.received.th_ack);
            }
        }
        if ack.received.th_ack <= self.una {
            AckNextStep::Drop
        } else if began {
            self.take_new_ack(conn, timers, cx, segment, ack)
        } else {
            self.advance_una(conn, timers, cx, segment, &ack.received);
            AckNextStep::Window
        }
    }

    /// Step 6 and the end of the acknowledgment.
    pub(crate) fn end_base_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
    ) {
        self.take_window(received.seq, received.th_ack, received.wnd);
        self.wake_writer_after(conn, cx);
    }

    /// `th_ack <= snd_una`.
    fn no_new_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck,
    ) -> AckNextStep {
        let received = &ack.received;
        if received.data || !(received.wnd == self.peer.wnd || conn.negotiated.sack) {
            return AckNextStep::Window;
        }
        if segment.flags.has(Flags::FIN) && rcv.fin.is_none() {
            // The peer closes: not a duplicate.
            self.rexmt.dup_acks = 0;
            return AckNextStep::Window;
        }
        let must_change = match ack.rule.duplicates {
            DuplicateRule::ChangesScoreboard => conn.negotiated.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        if received.th_ack != self.una || (must_change && ack.update.changed == SackChange::None) {
            return AckNextStep::Window;
        }
        if !timers.runs(Purpose::Retransmit) {
            self.rexmt.dup_acks = 0;
            return AckNextStep::Window;
        }
        self.on_duplicate_ack(conn, timers, rcv, cx, ack)
    }

    fn on_duplicate_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck,
    ) -> AckNextStep {
        self.rexmt.dup_acks += 1;
        let count = self.rexmt.dup_acks;
        cx.emit(|| Event::DupAck { count });
        let maxseg = conn.mss();
        if count > DUP_THRESHOLD || self.in_fast_recovery() {
            self.count_duplicate(conn, cx, &ack.received);
            if conn.negotiated.sack && self.in_fast_recovery() {
                self.sack_prr(conn, cx, ack);
            } else {
                // No PRR without SACK (`V_tcp_do_prr && TF_SACK_PERMIT`).
                self.sender.cc.override_window(Bytes(self.sender.cwnd() + maxseg));
                self.emit_window(conn, cx, Cause::Recovering);
            }
            self.call_output();
            return AckNextStep::Drop;
        }
        let much = conn.negotiated.sack && self.sacked_beyond_threshold(maxseg);
        if count == DUP_THRESHOLD || much {
            return self.enter_recovery(conn, timers, cx, ack);
        }
        if conn.cfg.profile.limited_transmit {
            self.count_duplicate(conn, cx, &ack.received);
            return self.limited_transmit(conn, rcv, cx, &ack.rule);
        }
        AckNextStep::Window
    }

    /// Enters recovery: retransmits the first hole or segment at once, the rest as PRR or
    /// duplicates allow.
    fn enter_recovery<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck,
    ) -> AckNextStep {
        let rule = &ack.rule;
        let maxseg = conn.mss();
        let (una, nxt, max) = (self.una, self.nxt, self.max);
        let cause = self.rexmt.cause;
        self.totals.fast_recoveries += 1;
        self.rexmt.dup_acks = DUP_THRESHOLD;
        self.abandon_cwr();
        let by_holes = match rule.duplicates {
            DuplicateRule::ChangesScoreboard => conn.negotiated.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        let mut congested = self.congested(conn, cx.now, Sign::Loss);
        if by_holes && rule.recovers_to_nxt {
            congested.snd_max = nxt;
        }
        let change = self.cc.on_congested(&congested);
        self.count_duplicate(conn, cx, &ack.received);
        timers.stop(Purpose::Retransmit);
        self.rtt.timing = None;
        if let Some(loss) = self.loss_detector.sack() {
            loss.holes.clamp_fack(una, max);
            let delivered = match rule.prr {
                PrrRule::Rfc6937 => loss.holes.sacked_bytes(),
                PrrRule::Rfc6937bis if ack.sack_recovery => maxseg,
                PrrRule::Rfc6937bis => (max - una).min(u64::from(DUP_THRESHOLD) * maxseg),
            };
            loss.prr.begin(nxt.since(una).get().max(1), delivered);
        }
        if by_holes {
            self.cc.set_window(Bytes(maxseg));
            self.note(conn, cx, change, Cause::FastRetransmit);
            return AckNextStep::Output(AfterOutput::HoleRecovery);
        }
        self.nxt = ack.received.th_ack;
        self.rexmt.cause = Cause::FastRetransmit;
        self.cc.override_window(Bytes(maxseg));
        self.emit_window(conn, cx, Cause::FastRetransmit);
        AckNextStep::Output(AfterOutput::SegmentRecovery { nxt, cause, change })
    }

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

    /// Are more than two segments SACKed, which begins a recovery without a third duplicate?
    fn sacked_beyond_threshold(&self, maxseg: u64) -> bool {
        matches!(&self.loss_detector, LossDetector::Sack(loss) if loss.sacked_beyond_threshold(maxseg))
    }

    /// Looks for a lost retransmission (tcp_sack_lost_retransmission).
    fn detect_lost_retransmission<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        if !self.in_fast_recovery() {
            return;
        }
        let snd = self.sack_sequence(conn);
        let event = self.congested(conn, cx.now, Sign::Loss);
        let Some(loss) = self.loss_detector.sack() else { return };
        let found = loss.on_lost_retransmission(&snd, event, &mut self.sender.cc);
        self.settle_flight();
        let Some(change) = found else { return };
        self.totals.fast_recoveries += 1;
        self.note(conn, cx, change, Cause::LostRetransmission);
    }
}

impl Sender {
    /// Sets the window of a recovery without holes, once its first segment is sent: the threshold and the
    /// duplicates; `nxt` and `cause` are those before it.
    fn inflate_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        (nxt, cause): (Offset, Cause),
        change: WindowChange,
    ) {
        let ssthresh = self.cc.control().ssthresh.map_or(0, Bytes::get);
        let left = self.rexmt.dup_acks - self.rexmt.limited.min(DUP_THRESHOLD);
        self.cc.override_window(Bytes(ssthresh + conn.mss() * u64::from(left)));
        // If the flight of a timeout is still being retransmitted, that continues.
        self.nxt = self.nxt.max(nxt);
        self.rexmt.cause = cause;
        self.note(conn, cx, change, Cause::FastRetransmit);
    }

    /// Limited transmit: the first and the second duplicate each release a segment (RFC 3042).
    fn limited_transmit<R: Recorder>(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        rule: &SackRule,
    ) -> AckNextStep {
        let (max, cwnd) = (self.max, self.cwnd());
        if self.rexmt.dup_acks == 1 {
            self.rexmt.limited = 0;
        }
        let flight = self.nxt.since(self.una).get();
        let retransmitting = self.nxt < self.max || self.rexmt.shift > 0;
        let from_window =
            rule.limited == LimitedTransmitRule::WindowWhileRetransmitting && retransmitting;
        let base = if from_window { cwnd } else { flight };
        let more = u64::from(self.rexmt.dup_acks.saturating_sub(self.rexmt.limited)) * conn.mss();
        self.cc.override_window(Bytes(base + more));
        let owes_ack =
            rule.limited == LimitedTransmitRule::WindowWhileRetransmitting && rcv.ack_now;
        if self.buffer.used() + u64::from(rule.limited_without_data) > flight || owes_ack {
            self.emit_window(conn, cx, Cause::Recovering);
            return AckNextStep::Output(AfterOutput::LimitedTransmit { max, cwnd });
        }
        self.end_limited_call(conn, cx, max, cwnd);
        AckNextStep::Drop
    }

    /// Counts the segments that limited transmit has sent beyond `max`, and restores the window.
    fn end_limited_call<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        max: Offset,
        cwnd: u64,
    ) {
        let sent = self.max.since(max).get();
        if sent > conn.mss() {
            self.rexmt.limited = 2;
        } else if sent > 0 {
            self.rexmt.limited += 1;
        }
        self.cc.override_window(Bytes(cwnd));
        self.emit_window(conn, cx, Cause::Recovering);
    }

    /// Does an ACK that advances `snd_una` count as a duplicate because of its blocks (RFC 6675)?
    fn counts_as_duplicate(&self, ack: &ProcessedAck) -> bool {
        let changed = ack.update.changed;
        match ack.rule.duplicates {
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
