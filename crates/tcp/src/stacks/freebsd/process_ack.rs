//! An acknowledgment that advances `snd_una` on FreeBSD's base stack: a partial one in recovery, and
//! `process_ACK` of tcp_do_segment.

use cc::{AckEvent, CongestionSignal as Sign, Controller};
use machine::Cx;
use packet::Segment;
use record::{Cause, Purpose, Recorder};
use recovery::prr::freebsd::PrrRule;
use units::{Bytes, Offset};

use super::FreeBsd;
use super::do_segment::{AckNextStep, AfterOutput, ProcessedAck};
use crate::connection::Connection;
use crate::profile::{SackRule, SettleRule};
use crate::received_ack::ReceivedAck;
use crate::sent::DeliveredPackets;
use crate::timers::Timers;

impl FreeBsd<'_> {
    /// Advances `snd_una`; in recovery, a partial acknowledgment calls tcp_output before that.
    pub(super) fn take_new_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck,
    ) -> AckNextStep {
        if ack.received.th_ack < self.snd.cc.recovery_point() && self.snd.in_fast_recovery() {
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
        self.snd.rtt.timing = None;
        let th_ack = ack.received.th_ack;
        if !conn.negotiated.sack {
            return self.newreno_partial_ack(conn, cx, th_ack);
        }
        if ack.received.sacks || ack.rule.prr == PrrRule::Rfc6937 {
            self.do_prr_ack(conn, cx, ack);
        } else {
            self.sack_partialack(conn, cx, th_ack);
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
        let rule = *self.state.rule();
        let ack = received.th_ack;
        let bytes = ack - self.snd.una;
        let recovering = self.snd.in_fast_recovery();
        let early = rule.settle == SettleRule::BeforeCounting;
        if recovering && early && ack >= self.snd.cc.recovery_point() {
            self.post_recovery(conn, cx, ack, (self.snd.max - ack) as i64);
        }
        self.undo_bad_timeout(conn, cx, segment, &rule);
        let mut delivered = DeliveredPackets::default();
        self.snd.scoreboard.acknowledge(ack, |sent_segment| delivered.add(sent_segment));
        let samples = self.snd.rtt.samples;
        self.snd.take_rtt(conn, cx, segment, ack, &delivered);
        if self.snd.rtt.samples != samples {
            self.snd.rexmt.shift = 0;
        }
        if ack == self.snd.max {
            timers.stop(Purpose::Retransmit);
            self.snd.call_output();
        } else if !timers.runs(Purpose::Persist) {
            self.snd.arm_retransmit(conn, timers, cx.now);
        }
        let acked = AckEvent {
            una: ack,
            bytes,
            packets: delivered.packets as u32,
            ends_recovery: recovering && !self.snd.in_fast_recovery(),
            ..self.acked(conn, cx, received)
        };
        let change = self.snd.cc.on_acked(&acked);
        // Step 6 takes the window of a segment that is not old; else the window shrinks by the
        // bytes acknowledged.
        let wnd = if self.snd.peer.wl1 <= received.seq {
            received.wnd
        } else {
            self.snd.peer.wnd.saturating_sub(bytes.min(self.snd.buffer.used()))
        };
        self.snd.advance(conn, cx, ack, wnd, received.nsegs, change);
        if let Some(end) = self.snd.rexmt.cwr_end {
            if ack > end {
                self.snd.end_cwr(conn, cx, ack, true);
            }
        } else if self.snd.in_fast_recovery() && ack >= self.snd.cc.recovery_point() {
            // Undoing a timeout may have restored a recovery that is over.
            if early {
                self.snd.cc.leave_recovery();
            } else {
                self.post_recovery(conn, cx, ack, self.compute_pipe());
            }
        }
    }

    /// cc_post_recovery.
    fn post_recovery<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        th_ack: Offset,
        pipe: i64,
    ) {
        let change = self.state.on_recovered(th_ack, self.snd.max, pipe, &mut self.snd.cc);
        self.snd.note(conn, cx, change, Cause::Recovered);
    }

    /// tcp_newreno_partial_ack: retransmits the next segment, then deflates the window by the bytes
    /// acknowledged.
    fn newreno_partial_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        th_ack: Offset,
    ) -> AfterOutput {
        let (nxt, cwnd) = (self.snd.nxt, self.snd.cwnd());
        let acked = th_ack - self.snd.una;
        let cause = core::mem::replace(&mut self.snd.rexmt.cause, Cause::PartialAck);
        self.snd.nxt = th_ack;
        self.snd.cc.override_window(Bytes(conn.mss() + acked));
        self.snd.emit_window(conn, cx, Cause::Recovering);
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
        let acked = th_ack - self.snd.una;
        self.snd.nxt = self.snd.nxt.max(nxt);
        self.snd.rexmt.cause = cause;
        self.snd.cc.override_window(Bytes(cwnd.saturating_sub(acked) + conn.mss()));
        self.snd.emit_window(conn, cx, Cause::Recovering);
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
        let Some(retransmission) = self.snd.rexmt.timeout_stamp else { return };
        let echo = segment.timestamps.map_or(0, |stamps| stamps.ecr);
        let tsecr_before = echo != 0 && (echo.wrapping_sub(retransmission) as i32) < 0;
        if self.snd.rexmt.shift != 1 || !tsecr_before {
            return;
        }
        self.snd.rexmt.timeout_stamp = None;
        let change =
            self.snd.cc.on_congested(&self.snd.congested(conn, cx.now, Sign::SpuriousTimeout));
        self.snd.totals.spurious += 1;
        self.snd.nxt = self.snd.max;
        if rule.undo_ends_backoff {
            self.snd.rexmt.shift = 0;
        }
        self.snd.note(conn, cx, change, Cause::Undone);
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
            rtt: self.snd.rtt.sample.take(),
            srtt: self.snd.smoothed(conn),
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
}
