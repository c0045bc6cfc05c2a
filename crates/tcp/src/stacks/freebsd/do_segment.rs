//! FreeBSD's base stack: the acknowledgment part of tcp_do_segment in the order of its steps, with
//! tcp_do_prr_ack, tcp_sack_partialack, tcp_newreno_partial_ack and tcp_sack_lost_retransmission
//! (tcp_input.c, tcp_sack.c; 13.0, 14.3 and main of October 2024, which differ by [`SackRule`]).
//!
//! After `goto drop` the kernel does nothing more: such an ACK does not update the window. Where it
//! calls tcp_output before `snd_una` advances, the steps return [`AckNextStep::Output`], and go on
//! after the call with [`FreeBsd::resume`]; `process_ack` has the steps of an acknowledgment
//! that advances `snd_una`.

use cc::{CongestionSignal as Sign, Controller, WindowChange, WindowController};
use machine::Cx;
use packet::{Flags, Options, Segment};
use record::{Cause, Event, Purpose, Recorder};
use recovery::holes::{SackChange, SackUpdate};
use recovery::prr::freebsd::PrrRule;
use units::{Bytes, Offset};

use super::FreeBsd;
use crate::connection::Connection;
use crate::loss::DUP_THRESHOLD;
use crate::profile::{DuplicateRule, LimitedTransmitRule, SackRule};
use crate::receive_side::ReceiveSide;
use crate::received_ack::ReceivedAck;
use crate::tcp_state::TcpState;
use crate::timers::Timers;

/// An acknowledgment and the resulting update of the scoreboard.
#[derive(Debug)]
pub(crate) struct ProcessedAck {
    pub(crate) received: ReceivedAck,
    pub(super) update: SackUpdate,
    /// SACK was negotiated, and the ACK has blocks or there are holes (tcp_is_sack_recovery).
    pub(super) sack_recovery: bool,
    pub(super) rule: SackRule,
}

/// How an acknowledgment goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckNextStep {
    /// Step 6: it may update the window.
    Window,
    /// `goto drop`.
    Drop,
    /// tcp_output is called, then [`FreeBsd::resume`].
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

impl FreeBsd<'_> {
    /// Processes an acceptable segment that acknowledges up to `ack`, until it is done or tcp_output
    /// is to be called.
    pub(crate) fn do_segment<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        (seq, ack): (Offset, Offset),
    ) -> Option<(ProcessedAck, AfterOutput)> {
        let ack = self.begin_ack(conn, timers, rcv, cx, segment, (seq, ack))?;
        let next = self.acknowledge(conn, timers, rcv, cx, segment, &ack);
        self.end_unless_output(&ack, next).map(|after| (ack, after))
    }

    /// Goes on after an output call, until the next one.
    pub(crate) fn resume<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck,
        after: AfterOutput,
    ) -> Option<AfterOutput> {
        let next = self.next_step(conn, timers, cx, segment, ack, after);
        self.end_unless_output(ack, next)
    }

    /// Takes the last step of an acknowledgment unless an output call is next.
    fn end_unless_output(&mut self, ack: &ProcessedAck, next: AckNextStep) -> Option<AfterOutput> {
        match next {
            AckNextStep::Output(after) => return Some(after),
            AckNextStep::Window => self.end_ack(&ack.received),
            AckNextStep::Drop => {}
        }
        None
    }

    /// Begins with an acceptable segment that acknowledges up to `ack`: ECN, header prediction, the
    /// scoreboard. Returns `None` if that is all.
    fn begin_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        (seq, ack): (Offset, Offset),
    ) -> Option<ProcessedAck> {
        let rule = *self.state.rule();
        if self.snd.ecn.echoed(segment.flags) {
            self.snd.on_ecn_echo(conn, cx, ack);
        }
        if rule.undoes_on_any_ack {
            self.undo_bad_timeout(conn, cx, segment, &rule);
        }
        let wnd = conn.scaled_window(segment);
        let predicted = self.predicts_ack(conn, rcv, segment, seq, ack, wnd);
        let received = ReceivedAck::parse(conn, self.snd.una, segment, (seq, ack), wnd);
        if predicted {
            self.advance_una(conn, timers, cx, segment, &received);
            self.snd.rexmt.dup_acks = 0;
            self.snd.peer.wl2 = ack;
            self.snd.call_output();
            self.wake_writer_after();
            return None;
        }
        let sack_recovery =
            conn.negotiated.sack && (received.sacks || !self.state.holes.is_empty());
        let update = if sack_recovery {
            let update = self.sack_doack(conn, &received);
            if update.changed != SackChange::None {
                self.sack_lost_retransmission(conn, cx);
            }
            update
        } else {
            self.state.holes.forget_sacked();
            self.settle_flight();
            SackUpdate::default()
        };
        Some(ProcessedAck { received, update, sack_recovery, rule })
    }

    /// The steps after the scoreboard update, up to the first output call.
    fn acknowledge<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck,
    ) -> AckNextStep {
        if ack.received.th_ack <= self.snd.una {
            return self.no_new_ack(conn, timers, rcv, cx, segment, ack);
        }
        self.snd.rexmt.dup_acks = 0;
        if self.counts_as_duplicate(ack) {
            self.snd.rexmt.dup_acks = 1;
            cx.emit(|| Event::DupAck { count: 1 });
            if ack.rule.newsack
                && !self.snd.in_fast_recovery()
                && self.sacked_beyond_threshold(conn.mss())
            {
                return self.enter_recovery(conn, timers, cx, ack);
            }
        }
        self.take_new_ack(conn, timers, cx, segment, ack)
    }

    fn next_step<R: Recorder>(
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
        if ack.received.th_ack <= self.snd.una {
            AckNextStep::Drop
        } else if began {
            self.take_new_ack(conn, timers, cx, segment, ack)
        } else {
            self.advance_una(conn, timers, cx, segment, &ack.received);
            AckNextStep::Window
        }
    }

    /// Step 6 and the end of the acknowledgment.
    fn end_ack(&mut self, received: &ReceivedAck) {
        self.take_window(received.seq, received.th_ack, received.wnd);
        self.wake_writer_after();
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
        if received.data || !(received.wnd == self.snd.peer.wnd || conn.negotiated.sack) {
            return AckNextStep::Window;
        }
        if segment.flags.has(Flags::FIN) && rcv.fin.is_none() {
            // The peer closes: not a duplicate.
            self.snd.rexmt.dup_acks = 0;
            return AckNextStep::Window;
        }
        let must_change = match ack.rule.duplicates {
            DuplicateRule::ChangesScoreboard => conn.negotiated.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        if received.th_ack != self.snd.una
            || (must_change && ack.update.changed == SackChange::None)
        {
            return AckNextStep::Window;
        }
        if !timers.runs(Purpose::Retransmit) {
            self.snd.rexmt.dup_acks = 0;
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
        self.snd.rexmt.dup_acks += 1;
        let count = self.snd.rexmt.dup_acks;
        cx.emit(|| Event::DupAck { count });
        let maxseg = conn.mss();
        if count > DUP_THRESHOLD || self.snd.in_fast_recovery() {
            self.count_duplicate(conn, cx, &ack.received);
            if conn.negotiated.sack && self.snd.in_fast_recovery() {
                self.do_prr_ack(conn, cx, ack);
            } else {
                // No PRR without SACK (`V_tcp_do_prr && TF_SACK_PERMIT`).
                self.snd.cc.override_window(Bytes(self.snd.cwnd() + maxseg));
                self.snd.emit_window(conn, cx, Cause::Recovering);
            }
            self.snd.call_output();
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
        let (una, nxt, max) = (self.snd.una, self.snd.nxt, self.snd.max);
        let cause = self.snd.rexmt.cause;
        self.snd.totals.fast_recoveries += 1;
        self.snd.rexmt.dup_acks = DUP_THRESHOLD;
        self.snd.abandon_cwr();
        let by_holes = match rule.duplicates {
            DuplicateRule::ChangesScoreboard => conn.negotiated.sack,
            DuplicateRule::AnyWhileEmpty => ack.sack_recovery,
        };
        let mut congested = self.snd.congested(conn, cx.now, Sign::Loss);
        if by_holes && rule.recovers_to_nxt {
            congested.snd_max = nxt;
        }
        let change = self.snd.cc.on_congested(&congested);
        self.count_duplicate(conn, cx, &ack.received);
        timers.stop(Purpose::Retransmit);
        self.snd.rtt.timing = None;
        self.state.holes.clamp_fack(una, max);
        let delivered = match rule.prr {
            PrrRule::Rfc6937 => self.state.holes.sacked_bytes(),
            PrrRule::Rfc6937bis if ack.sack_recovery => maxseg,
            PrrRule::Rfc6937bis => (max - una).min(u64::from(DUP_THRESHOLD) * maxseg),
        };
        self.state.prr.begin(nxt.since(una).get().max(1), delivered);
        if by_holes {
            self.snd.cc.set_window(Bytes(maxseg));
            self.snd.note(conn, cx, change, Cause::FastRetransmit);
            return AckNextStep::Output(AfterOutput::HoleRecovery);
        }
        self.snd.nxt = ack.received.th_ack;
        self.snd.rexmt.cause = Cause::FastRetransmit;
        self.snd.cc.override_window(Bytes(maxseg));
        self.snd.emit_window(conn, cx, Cause::FastRetransmit);
        AckNextStep::Output(AfterOutput::SegmentRecovery { nxt, cause, change })
    }

    /// A blocked writer runs after the segment is processed: it sees the buffer as tcp_output has
    /// left it.
    fn wake_writer_after(&mut self) {
        if self.snd.call.due {
            self.snd.call.check_space = true;
        } else {
            self.wake_writer();
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
        segment.payload == 0
            && ack > self.snd.una
            && wnd != 0
            && wnd == self.snd.peer.wnd
            && self.snd.nxt == self.snd.max
            && conn.state == TcpState::Established
            && seq == rcv.nxt
            && segment.flags.without(Flags::PSH) == Flags::ACK
            && matches!(segment.options, Options::None)
            && self.state.holes.is_empty()
            && !self.snd.cc.in_recovery()
            && self.snd.rexmt.cwr_end.is_none()
            && rcv.reassembly.is_empty()
    }

    /// Are more than two segments SACKed, which begins a recovery without a third duplicate?
    fn sacked_beyond_threshold(&self, maxseg: u64) -> bool {
        self.state.sacked_beyond_threshold(maxseg)
    }

    /// Looks for a lost retransmission (tcp_sack_lost_retransmission).
    fn sack_lost_retransmission<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        if !self.snd.in_fast_recovery() {
            return;
        }
        let snd = self.sack_sequence(conn);
        let event = self.snd.congested(conn, cx.now, Sign::Loss);
        let found = self.state.on_lost_retransmission(&snd, event, &mut self.snd.cc);
        self.settle_flight();
        let Some(change) = found else { return };
        self.snd.totals.fast_recoveries += 1;
        self.snd.note(conn, cx, change, Cause::LostRetransmission);
    }

    /// Sets the window of a recovery without holes, once its first segment is sent: the threshold and the
    /// duplicates; `nxt` and `cause` are those before it.
    fn inflate_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        (nxt, cause): (Offset, Cause),
        change: WindowChange,
    ) {
        let ssthresh = self.snd.cc.control().ssthresh.map_or(0, Bytes::get);
        let left = self.snd.rexmt.dup_acks - self.snd.rexmt.limited.min(DUP_THRESHOLD);
        self.snd.cc.override_window(Bytes(ssthresh + conn.mss() * u64::from(left)));
        // If the flight of a timeout is still being retransmitted, that continues.
        self.snd.nxt = self.snd.nxt.max(nxt);
        self.snd.rexmt.cause = cause;
        self.snd.note(conn, cx, change, Cause::FastRetransmit);
    }

    /// Limited transmit: the first and the second duplicate each release a segment (RFC 3042).
    fn limited_transmit<R: Recorder>(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        rule: &SackRule,
    ) -> AckNextStep {
        let (max, cwnd) = (self.snd.max, self.snd.cwnd());
        if self.snd.rexmt.dup_acks == 1 {
            self.snd.rexmt.limited = 0;
        }
        let flight = self.snd.nxt.since(self.snd.una).get();
        let retransmitting = self.snd.nxt < self.snd.max || self.snd.rexmt.shift > 0;
        let from_window =
            rule.limited == LimitedTransmitRule::WindowWhileRetransmitting && retransmitting;
        let base = if from_window { cwnd } else { flight };
        let more =
            u64::from(self.snd.rexmt.dup_acks.saturating_sub(self.snd.rexmt.limited)) * conn.mss();
        self.snd.cc.override_window(Bytes(base + more));
        let owes_ack =
            rule.limited == LimitedTransmitRule::WindowWhileRetransmitting && rcv.ack_now;
        if self.snd.buffer.used() + u64::from(rule.limited_without_data) > flight || owes_ack {
            self.snd.emit_window(conn, cx, Cause::Recovering);
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
        let sent = self.snd.max.since(max).get();
        if sent > conn.mss() {
            self.snd.rexmt.limited = 2;
        } else if sent > 0 {
            self.snd.rexmt.limited += 1;
        }
        self.snd.cc.override_window(Bytes(cwnd));
        self.snd.emit_window(conn, cx, Cause::Recovering);
    }

    /// Does an ACK that advances `snd_una` count as a duplicate because of its blocks (RFC 6675)?
    fn counts_as_duplicate(&self, ack: &ProcessedAck) -> bool {
        let changed = ack.update.changed;
        match ack.rule.duplicates {
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

    /// cc_ack_received with CC_DUPACK: FreeBSD's CUBIC samples the smoothed round trip.
    fn count_duplicate<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
    ) {
        let acked = self.acked(conn, cx, received);
        self.snd.cc.on_duplicate(&acked);
    }

    /// Step 6: updates the window unless the segment is older than the last that did.
    fn take_window(&mut self, seq: Offset, ack: Offset, wnd: u64) {
        let newer = self.snd.peer.wl1 < seq
            || (self.snd.peer.wl1 == seq
                && (self.snd.peer.wl2 < ack
                    || (self.snd.peer.wl2 == ack && wnd > self.snd.peer.wnd)));
        if !newer {
            return;
        }
        self.snd.peer.wnd = wnd;
        self.snd.peer.max_wnd = self.snd.peer.max_wnd.max(wnd);
        (self.snd.peer.wl1, self.snd.peer.wl2) = (seq, ack);
        self.snd.call_output();
    }
}
