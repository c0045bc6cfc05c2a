//! Output: the next segment, or the reason why nothing is sent.
//!
//! [`TcpEndpoint::output`] is one pass of the kernel's output routine; a pass that needs another
//! leaves the output call pending. The sending side decides what is sent (`plan`); each system has its
//! own rules for new data: `bytes` (the RFCs, whose windows count bytes), `packets` (Linux), and the
//! stacks of FreeBSD in [`crate::stacks`]. The receiving side writes the ACK (`ack_fields`), and
//! `build` makes the segment of both.

pub(crate) mod ack_fields;
mod batch;
mod build;
pub(crate) mod bytes;
pub(crate) mod call;
mod idle;
mod packets;
mod plan;
mod push;

use core::hint::cold_path;

use machine::Cx;
use packet::Segment;
use record::{Recorder, SendLimit, SentKind, Shortcuts};
use units::{Instant, unlikely};

use crate::endpoint::TcpEndpoint;
use crate::tcp_state::TcpState;
use call::PacketBatch;

impl TcpEndpoint {
    /// One output pass, requested by `SendSide::call_output` or by the previous pass.
    #[inline(always)]
    pub(crate) fn output<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        if R::SHORTCUTS.has(Shortcuts::TRAIN) {
            if self.snd.call.batch.packets() > 0 {
                self.snd.call.batch.take_one();
                self.build_next(cx, slot);
                return Ok(());
            }
            if self.snd.call.batch.fills_window() {
                self.snd.call.batch = PacketBatch::NONE;
                return self.end_full_window(cx, slot);
            }
        }
        if !R::SHORTCUTS.has(Shortcuts::IDLE_PASS) || !self.nothing_to_send() {
            return self.pass(cx, slot);
        }
        let why = self.snd.end_idle_pass(&self.conn, cx);
        if self.rcv.ack_due(&self.conn, &self.timers) {
            self.build_ack(cx, slot);
            return Ok(());
        }
        Err(why)
    }

    pub(crate) fn pass<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        if let Some(reset) = self.reset.take() {
            cold_path();
            self.build_reset(cx, reset, slot);
            return Ok(());
        }
        match self.conn.state {
            TcpState::SynSent | TcpState::SynReceived => {
                cold_path();
                let child = self.is_fast_open_child();
                if !child || core::mem::take(&mut self.snd.rare.fast_open.syn_ack_due) {
                    self.snd.call.due = child;
                    self.snd.call.waiting = SendLimit::Handshake;
                    self.send_syn(cx, slot);
                    return Ok(());
                }
            }
            TcpState::Closed | TcpState::Listen => {
                cold_path();
                self.snd.call.due = false;
                return Err(SendLimit::Done);
            }
            _ => {}
        }
        self.stack_pass(cx, slot)
    }

    /// The rest of a pass that plans by [`SendSide::plan_segment`].
    #[inline(always)]
    pub(crate) fn planned_pass<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        match self.snd.plan_segment(&self.conn, &mut self.timers, &self.rcv, cx) {
            Ok(plan) => {
                self.snd.call.due = plan.more;
                let plain = plan.kind == SentKind::New && plan.more && !plan.push;
                let full = plan.len == self.conn.mss() && !self.snd.measures_rates();
                if R::SHORTCUTS.has(Shortcuts::FULL_PACKET) && plain && full {
                    self.build_new(cx, slot);
                    return Ok(());
                }
                self.build(cx, &plan, slot);
                if !plan.more {
                    self.snd.validate_bytes(&self.conn, None);
                    if self.conn.queues_packets() && plan.kind == SentKind::New {
                        // tcp_write_xmit for a probe of new data.
                        let flight = self.snd.packets_in_flight() * self.conn.mss();
                        self.snd.sender.validate_window(flight >= self.snd.sender.cwnd());
                    }
                }
                Ok(())
            }
            Err(why) => {
                self.snd.end_pass(&self.conn, cx, why);
                if unlikely(matches!(why, SendLimit::PeerWindow | SendLimit::SmallSegment)) {
                    self.snd.watch_window(&self.conn, &mut self.timers, cx);
                }
                self.end_without_data(cx, slot, why)
            }
        }
    }

    /// Ends a pass without data, for the reason `why`: an ACK or a window update may be due.
    #[inline(always)]
    pub(crate) fn end_without_data<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
        why: SendLimit,
    ) -> Result<(), SendLimit> {
        if self.rcv.ack_due(&self.conn, &self.timers) {
            self.build_ack_cold(cx, slot);
            return Ok(());
        }
        Err(why)
    }

    /// The pass after a packet that filled the congestion window: a shortened
    /// [`TcpEndpoint::pass`].
    fn end_full_window<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        self.snd.validate_window(true);
        self.snd.end_pass(&self.conn, cx, SendLimit::CongestionWindow);
        self.end_without_data(cx, slot, SendLimit::CongestionWindow)
    }

    /// Calls the output routine while an acknowledgment is processed, as tcp_do_segment does before
    /// `snd_una` advances; the segments wait in the outbox until polled.
    pub(crate) fn output_now<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.snd.call_output();
        let mut slot = Segment::default();
        while self.snd.call.due && self.output(cx, &mut slot).is_ok() {
            self.outbox.get_or_insert_default().push_back(slot);
        }
        self.snd.call.due = false;
    }

    /// Sends a pure ACK (tcp_respond).
    pub(crate) fn respond<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let mut slot = Segment::default();
        self.build_ack_cold(cx, &mut slot);
        self.outbox.get_or_insert_default().push_back(slot);
    }

    /// Full packets that may follow the last one without another decision.
    #[inline(always)]
    pub fn batch_packets(&self) -> u64 {
        self.snd.call.batch.packets()
    }

    /// Begins a batch of packets that differ from `model`, the last one sent, only in their
    /// sequence numbers; returns their number: the whole batch, or 0 if they would differ
    /// otherwise. The caller must send them at once, one call of [`TcpEndpoint::next_in_batch`] for
    /// each.
    #[inline]
    pub fn begin_batch(&mut self, now: Instant, model: &Segment) -> u64 {
        self.snd.begin_batch(&self.conn, &self.timers, &self.rcv, now, model)
    }

    /// Records the transmission of the batch's next packet, and sets the sequence number in a copy
    /// of the template.
    #[inline(always)]
    pub fn next_in_batch<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, segment: &mut Segment) {
        segment.seq = self.snd.next_in_batch(&self.conn, cx);
    }
}
