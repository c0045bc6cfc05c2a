//! The calls of a stack: an acknowledgment, the next segment, a segment sent, a timer.

use machine::Cx;
use packet::Segment;
use record::{Purpose, Recorder, SendLimit};
use units::{Instant, Offset, unlikely};

use super::Stack;
use super::freebsd::FreeBsd;
use super::freebsd::do_segment::{AfterOutput, ProcessedAck};
use super::freebsd_rack::FreeBsdRack;
use super::freebsd_rack::output::RackPass;
use super::freebsd_rack::syn::SynRtt;
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::segment_plan::SegmentPlan;
use crate::send_side::SendSide;
use crate::sender::ProbeSegment;
use crate::timer_outcome::TimerOutcome;
use crate::timers::Timers;

impl TcpEndpoint {
    /// Processes an acceptable segment that acknowledges up to `ack`.
    #[inline(always)]
    pub(crate) fn acknowledge<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        (seq, ack): (Offset, Offset),
    ) {
        let Self { conn, timers, snd, rcv, .. } = self;
        match &mut snd.stack {
            Stack::FreeBsd(state) => {
                let mut stack = FreeBsd::new(&mut snd.sender, state);
                let output = stack.do_segment(conn, timers, rcv, cx, segment, (seq, ack));
                if let Some((ack, after)) = output {
                    self.output_within_ack(cx, segment, &ack, after);
                }
            }
            Stack::FreeBsdRack(state) => {
                // rack_process_ack: if there is room to receive.
                let reordered = unlikely(ack < snd.sender.una) && rcv.next_window() > conn.mss();
                let mut rack = FreeBsdRack::new(&mut snd.sender, state);
                rack.do_segment(conn, timers, cx, segment, (seq, ack), reordered);
            }
            Stack::RackTlp(_) | Stack::NewReno => {
                snd.detector_ack(conn, timers, cx, segment, seq, ack);
            }
        }
    }

    /// Calls tcp_output in the middle of an acknowledgment, where FreeBSD's base stack does.
    fn output_within_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: &ProcessedAck,
        first: AfterOutput,
    ) {
        let mut next = Some(first);
        while let Some(after) = next {
            self.rcv.ack_now |= after.acks_now();
            self.output_now(cx);
            let Self { conn, timers, snd, .. } = self;
            next = match &mut snd.stack {
                Stack::FreeBsd(state) => {
                    let mut stack = FreeBsd::new(&mut snd.sender, state);
                    stack.resume(conn, timers, cx, segment, ack, after)
                }
                Stack::NewReno | Stack::RackTlp(_) | Stack::FreeBsdRack(_) => None,
            };
        }
    }

    /// One pass of the output routine, after what a pending RST or SYN sends.
    #[inline(always)]
    pub(crate) fn stack_pass<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        let Self { conn, timers, snd, rcv, .. } = self;
        if let Stack::FreeBsdRack(state) = &mut snd.stack {
            let mut acks = rcv.ack_now;
            let mut rack = FreeBsdRack::new(&mut snd.sender, state);
            let pass = rack.pass(conn, timers, rcv, cx, &mut acks);
            rcv.ack_now = acks;
            return self.end_rack_pass(cx, slot, pass);
        }
        if core::mem::take(&mut snd.call.first_pass) {
            snd.begin_output(conn, cx);
        }
        match (&mut snd.stack, &snd.sender.probe.segment) {
            (Stack::FreeBsd(state), None | Some(ProbeSegment::Byte)) => {
                let mut stack = FreeBsd::new(&mut snd.sender, state);
                stack.tcp_output(conn, timers, rcv, cx, slot)
            }
            _ => self.planned_pass(cx, slot),
        }
    }

    /// Ends a pass of rack_output.
    fn end_rack_pass<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
        pass: RackPass,
    ) -> Result<(), SendLimit> {
        match pass {
            RackPass::Send(plan) => {
                self.build(cx, &plan, slot);
                Ok(())
            }
            RackPass::Nothing(why) => self.end_without_data(cx, slot, why),
            RackPass::Ended(why) => Err(why),
            RackPass::GiveUp => {
                self.give_up(cx);
                if self.reset.is_some() {
                    return self.pass(cx, slot);
                }
                self.snd.end_pass(&self.conn, cx, SendLimit::Done);
                Err(SendLimit::Done)
            }
        }
    }
}

impl SendSide {
    /// Passes the round trip of the SYN to the stack that measures it.
    pub(crate) fn take_syn(&mut self, syn: Option<SynRtt>) {
        match (&mut self.stack, syn) {
            (Stack::FreeBsdRack(state), Some(syn)) => {
                FreeBsdRack::new(&mut self.sender, state).established(syn);
            }
            (Stack::FreeBsd(_) | Stack::RackTlp(_) | Stack::NewReno, _)
            | (Stack::FreeBsdRack(_), None) => {}
        }
    }

    /// Records the transmission of a planned segment.
    #[inline(always)]
    pub(crate) fn note_built<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &SegmentPlan,
    ) {
        match &mut self.stack {
            Stack::FreeBsdRack(state) => {
                FreeBsdRack::new(&mut self.sender, state).sent(conn, timers, cx, plan);
            }
            Stack::FreeBsd(_) | Stack::RackTlp(_) | Stack::NewReno => {
                self.note_planned(conn, timers, cx, plan);
            }
        }
    }

    /// The sequence number of a pure ACK: that of the next new byte, but for one of FreeBSD's.
    #[inline(always)]
    pub(crate) fn pure_ack_at(&mut self) -> Offset {
        match &mut self.stack {
            Stack::FreeBsd(state) => FreeBsd::new(&mut self.sender, state).pure_ack_at(),
            Stack::NewReno | Stack::RackTlp(_) | Stack::FreeBsdRack(_) => self.max,
        }
    }

    /// Handles an entry of the wheel of FreeBSD's RACK stack; false if the timer is not one.
    pub(crate) fn on_wheel(&mut self, purpose: Purpose) -> bool {
        match &mut self.stack {
            Stack::FreeBsdRack(state) => {
                FreeBsdRack::new(&mut self.sender, state).on_wheel(purpose)
            }
            Stack::FreeBsd(_) | Stack::RackTlp(_) | Stack::NewReno => false,
        }
    }

    /// Handles the retransmission timer; before the handshake ends no stack has its own.
    pub(crate) fn on_retransmit_timer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> TimerOutcome {
        match &mut self.stack {
            Stack::FreeBsd(state) if conn.synchronised() => {
                FreeBsd::new(&mut self.sender, state).timer_rexmt(conn, timers, cx)
            }
            Stack::FreeBsd(_) | Stack::FreeBsdRack(_) | Stack::RackTlp(_) | Stack::NewReno => {
                self.retransmit_timer(conn, timers, cx)
            }
        }
    }

    /// Handles the persist timer.
    pub(crate) fn on_window_timer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> TimerOutcome {
        match &mut self.stack {
            Stack::FreeBsd(state) => {
                FreeBsd::new(&mut self.sender, state).timer_persist(conn, timers, cx.now)
            }
            Stack::FreeBsdRack(state) => {
                FreeBsdRack::new(&mut self.sender, state).timeout_persist(conn, timers, cx.now)
            }
            Stack::RackTlp(_) | Stack::NewReno => {
                self.sender.on_zero_window_timer(conn, timers, cx)
            }
        }
    }

    /// Handles the keepalive timer.
    pub(crate) fn on_keepalive_timer(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) -> TimerOutcome {
        match &mut self.stack {
            Stack::FreeBsdRack(state) => {
                FreeBsdRack::new(&mut self.sender, state).timeout_keepalive(conn, timers, now)
            }
            Stack::FreeBsd(_) | Stack::RackTlp(_) | Stack::NewReno => {
                self.sender.keep_alive(conn, timers, now)
            }
        }
    }
}
