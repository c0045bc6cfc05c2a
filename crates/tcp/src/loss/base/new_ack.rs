//! An acknowledgment that advances `snd_una` on FreeBSD's base stack: a partial one in recovery, and
//! `process_ACK` of tcp_do_segment.

use cc::{AckEvent, CongestionSignal as Sign, Controller};
use machine::Cx;
use packet::Segment;
use record::{Cause, Purpose, Recorder};
use recovery::prr::freebsd::PrrRule;
use units::{Bytes, Offset};

use super::{AckNextStep, AfterOutput, ProcessedAck};
use crate::connection::Connection;
use crate::profile::{SackRule, SettleRule};
use crate::received_ack::ReceivedAck;
use crate::sender::Sender;
use crate::sent::DeliveredPackets;
use crate::state::SendSide;
use crate::timers::Timers;

impl SendSide {
    /// Advances `snd_una`; in recovery, a partial acknowledgment calls tcp_output before that.
    pub(super) fn take_new_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck,
    ) -> AckNextStep {
        if ack.received.th_ack < self.cc.recovery_point() && self.in_fast_recovery() {
            return AckNextStep::Output(self.on_partial_ack(conn, timers, cx, ack));
        }
        self.advance_una(conn, timers, cx, segment, &ack.received);
        AckNextStep::Window
    }

    /// Processes a partial acknowledgment in recovery; `snd_una` and `snd_wnd` still have their old
    /// values when the kernel calls tcp_output.
    fn on_partial_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        ack: &ProcessedAck,
    ) -> AfterOutput {
        timers.stop(Purpose::Retransmit);
        self.rtt.timing = None;
        let th_ack = ack.received.th_ack;
        if !conn.negotiated.sack {
            return self.newreno_partial_ack(conn, cx, th_ack);
        }
        if ack.received.sacks || ack.rule.prr == PrrRule::Rfc6937 {
            self.sack_prr(conn, cx, ack);
        } else {
            self.sack_partial_ack(conn, cx, th_ack);
        }
        AfterOutput::PartialAck
    }

    /// `process_ACK`: round trip, timer, controller, `snd_una`, the end of a recovery.
    pub(super) fn advance_una<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
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
        let wnd = if self.peer.wl1 <= received.seq {
            received.wnd
        } else {
            self.peer.wnd.saturating_sub(bytes.min(self.buffer.used()))
        };
        self.advance(conn, cx, ack, wnd, received.nsegs, change);
        if let Some(end) = self.rexmt.cwr_end {
            if ack > end {
                self.end_cwr(conn, cx, ack, true);
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

    /// cc_post_recovery.
    fn settle<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        th_ack: Offset,
        pipe: i64,
    ) {
        let Some(loss) = self.loss_detector.sack() else { return };
        let change = loss.on_recovered(th_ack, self.sender.max, pipe, &mut self.sender.cc);
        self.note(conn, cx, change, Cause::Recovered);
    }
}

impl Sender {
    /// tcp_newreno_partial_ack: retransmits the next segment, then deflates the window by the bytes
    /// acknowledged.
    fn newreno_partial_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        th_ack: Offset,
    ) -> AfterOutput {
        let (nxt, cwnd) = (self.nxt, self.cwnd());
        let acked = th_ack - self.una;
        let cause = core::mem::replace(&mut self.rexmt.cause, Cause::PartialAck);
        self.nxt = th_ack;
        self.cc.override_window(Bytes(conn.mss() + acked));
        self.emit_window(conn, cx, Cause::Recovering);
        AfterOutput::NewRenoPartialAck { nxt, cause, cwnd }
    }

    /// Deflates the window after that segment; `nxt`, `cause` and `cwnd` are those before it.
    pub(super) fn deflate_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        (nxt, cause): (Offset, Cause),
        cwnd: u64,
        th_ack: Offset,
    ) {
        let acked = th_ack - self.una;
        self.nxt = self.nxt.max(nxt);
        self.rexmt.cause = cause;
        self.cc.override_window(Bytes(cwnd.saturating_sub(acked) + conn.mss()));
        self.emit_window(conn, cx, Cause::Recovering);
    }

    /// Undoes the first of consecutive timeouts if an acknowledgment echoes a timestamp older than
    /// the last segment sent since (`t_badrxtwin`).
    pub(super) fn undo_bad_timeout<R: Recorder>(
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

    /// The acknowledgment as controllers get it, without bytes.
    pub(super) fn acked<R: Recorder>(
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
}
