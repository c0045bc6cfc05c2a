//! Output: the next segment, or the reason why nothing is sent.
//!
//! [`TcpEndpoint::output`] is one pass of the kernel's output routine; a pass that needs another
//! leaves the output call pending. Each system has its own rules for new data: `base` (FreeBSD's
//! base stack), `bytes` (FreeBSD's RACK and the RFCs, whose windows count bytes too), `packets`
//! (Linux).

mod base;
mod batch;
mod build;
mod bytes;
pub(crate) mod call;
mod idle;
mod packets;
mod push;

use core::hint::cold_path;

use cc::{Controller, IdleEvent};
use machine::Cx;
use packet::{Flags, Segment};
use record::{Cause, Event, Purpose, Recorder, SendLimit, SentKind, Shortcuts};
use units::{Offset, SeqNum, unlikely};

use crate::connection::Connection;
use crate::endpoint::{TcpEndpoint, TcpState};
use crate::loss::LossDetector;
use crate::loss::rack::call::RackCallStart;
use crate::profile::{BurstRule, IdleCheck, UpdateWaits};
use crate::state::{ProbeSegment, ReceiveSide, SendSide};
use crate::timers::Timers;
use call::PacketBatch;

/// Maximum IP bytes of a burst (RFC 791: the length field).
const LARGEST_BURST: u64 = 65_535;

/// The segment that a pass decided to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentPlan {
    pub(crate) at: Offset,
    pub(crate) len: u64,
    pub(crate) fin: bool,
    pub(crate) push: bool,
    pub(crate) kind: SentKind,
    /// Another pass follows.
    pub(crate) more: bool,
}

impl TcpEndpoint {
    /// One output pass, requested by [`SendSide::call_output`] or by the previous pass.
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
        let idle = R::SHORTCUTS.has(Shortcuts::IDLE_PASS) && self.nothing_to_send();
        if idle { self.rest(cx, slot) } else { self.pass(cx, slot) }
    }

    fn pass<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        if let Some((seq, ack)) = self.reset.take() {
            cold_path();
            if self.snd.rare.active_reset {
                self.snd.rare.active_reset = false;
                let at = self.snd.nxt;
                self.write_header_cold(cx.now, at, 0, Flags::RST | Flags::ACK, slot);
                if self.rcv.has_blocks(&self.conn) {
                    self.rcv.write_blocks(&self.conn, 0, slot);
                }
            } else {
                *slot = self.conn.reset_segment(seq, ack);
            }
            let at = self.conn.payload_offset(self.snd.nxt);
            cx.emit(|| Event::Sent { at, len: 0, kind: SentKind::Reset });
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
        if self.snd.is_rack() {
            return self.rack_pass(cx, slot);
        }
        if core::mem::take(&mut self.snd.call.first_pass) {
            self.snd.begin_output(&self.conn, cx);
        }
        if let (
            LossDetector::Sack(_),
            BurstRule::FreeBsd { max },
            None | Some(ProbeSegment::Byte),
        ) = (&self.snd.loss_detector, self.conn.cfg.profile.burst, &self.snd.probe.segment)
        {
            return self.base_pass(cx, slot, max.get());
        }
        let planned = if let Some(cause) = self.snd.rexmt.head.take() {
            cold_path();
            Ok(self.snd.plan_head_retransmission(&self.conn, cause))
        } else if let Some(probe) = self.snd.probe.segment.take() {
            cold_path();
            Ok(self.snd.plan_probe(&self.conn, probe))
        } else if self.snd.is_rate_based()
            && self.snd.pacing_blocks(&self.conn, &mut self.timers, cx.now)
            && !self.snd.probe_is_due()
        {
            Err(SendLimit::Pacing)
        } else if let Some(plan) = self.snd.plan_retransmission(&self.conn) {
            Ok(plan)
        } else if self.snd.buffer.used() == 0 && !self.conn.fin_wanted() {
            Err(if self.snd.buffer.fin { SendLimit::Done } else { SendLimit::Application })
        } else {
            match self.conn.cfg.profile.burst {
                BurstRule::FreeBsd { max } => {
                    self.snd.plan_bytes(&self.conn, &self.rcv, cx, max.get())
                }
                BurstRule::Rfc => self.snd.plan_bytes(&self.conn, &self.rcv, cx, LARGEST_BURST),
                BurstRule::Linux(rule) => {
                    self.snd.plan_packets(&self.conn, &mut self.timers, rule, cx.now)
                }
            }
        };
        match planned {
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
                }
                Ok(())
            }
            Err(why) => {
                self.snd.end_pass(&self.conn, cx, why);
                if unlikely(matches!(why, SendLimit::PeerWindow | SendLimit::SmallSegment)) {
                    self.snd.watch_window(&self.conn, &mut self.timers, cx);
                }
                if self.rcv.ack_now || self.rcv.window_update_due(&self.conn, &self.timers) {
                    self.build_ack_cold(cx, slot);
                    return Ok(());
                }
                Err(why)
            }
        }
    }

    /// One pass of rack_output.
    fn rack_pass<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        if let Some(probe) = self.snd.probe.segment.take() {
            let plan = self.snd.plan_probe(&self.conn, probe);
            self.build(cx, &plan, slot);
            return Ok(());
        }
        if core::mem::take(&mut self.snd.call.first_pass) {
            let why = match self.snd.begin_rack_call(&self.conn, &mut self.timers, cx) {
                RackCallStart::Output => None,
                RackCallStart::OutputAck => {
                    self.rcv.ack_now = true;
                    None
                }
                RackCallStart::Ended(why) => Some(why),
                RackCallStart::GiveUp => {
                    self.give_up(cx);
                    self.snd.sync_wheel(&mut self.timers);
                    Some(SendLimit::Done)
                }
            };
            if let Some(why) = why {
                if self.reset.is_some() {
                    return self.pass(cx, slot);
                }
                self.snd.end_pass(&self.conn, cx, why);
                self.snd.end_hystart_round(&self.conn, cx);
                return Err(why);
            }
            self.snd.begin_output(&self.conn, cx);
        }
        match self.snd.plan_rack(&self.conn, &self.rcv, cx) {
            Ok((plan, left)) => {
                self.snd.call.due = true;
                self.build(cx, &plan, slot);
                self.snd.end_rack_segment(
                    &self.conn,
                    &mut self.timers,
                    cx.now,
                    plan.kind,
                    left,
                    plan.more,
                );
                if !self.snd.call.due {
                    self.snd.validate_bytes(&self.conn, None);
                    self.snd.end_hystart_round(&self.conn, cx);
                }
                Ok(())
            }
            Err(why) => {
                self.snd.end_pass(&self.conn, cx, why);
                let shut = self.snd.peer.wnd == 0 && self.snd.buffer.used() > 0;
                if unlikely(shut || matches!(why, SendLimit::PeerWindow | SendLimit::SmallSegment))
                {
                    self.snd.watch_window(&self.conn, &mut self.timers, cx);
                }
                self.snd.end_rack_call(&self.conn, &mut self.timers, cx.now, why);
                self.snd.end_hystart_round(&self.conn, cx);
                if self.rcv.ack_now || self.rcv.window_update_due(&self.conn, &self.timers) {
                    self.build_ack_cold(cx, slot);
                    return Ok(());
                }
                Err(why)
            }
        }
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
}

impl SendSide {
    /// First pass of a call: checks whether the connection is idle, and for how long.
    fn begin_output<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        self.call.idle = self.max == self.una;
        self.call.nxt_at_call = self.nxt;
        // FreeBSD does not check whether there is anything to send; Linux checks with a write and
        // with a new window of the peer.
        let checks = match conn.cfg.profile.rules.sending.idle_check {
            IdleCheck::Always => true,
            IdleCheck::OnNewWindow => core::mem::take(&mut self.peer.opened_while_idle),
            IdleCheck::WithData => self.data_end() > self.nxt,
        };
        if self.call.idle && conn.cfg.profile.after_idle && checks {
            self.begin_after_idle(conn, cx);
        }
    }

    /// tcp_slow_start_after_idle_check at a write.
    #[inline]
    pub(crate) fn restart_if_idle<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let empty = self.max == self.una && self.data_end() == self.nxt;
        if empty && conn.cfg.profile.after_idle {
            self.begin_after_idle(conn, cx);
        }
    }

    fn begin_after_idle<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let rto = self.rtt.estimator.rto();
        let (idle, rto, long) = self.idle_for(conn, cx.now, rto);
        if long {
            let change = self.cc.on_idle(&IdleEvent { ticks: conn.clock.tick(cx.now), idle, rto });
            self.note(conn, cx, change, Cause::Idle);
        }
    }

    /// Is a tail loss probe due? Pacing does not hold it back (tcp_send_loss_probe).
    fn probe_is_due(&self) -> bool {
        matches!(&self.loss_detector, LossDetector::RackTlp(loss) if loss.probe_is_due())
    }

    /// Plans a tail loss probe or a retransmission.
    #[inline(always)]
    fn plan_retransmission(&mut self, conn: &Connection) -> Option<SegmentPlan> {
        let any = self.cc.in_recovery()
            || match &self.loss_detector {
                LossDetector::RackTlp(loss) => loss.probe_is_due() || self.scoreboard.any_lost(),
                LossDetector::Sack(_) | LossDetector::NewReno | LossDetector::FreeBsdRack(_) => {
                    false
                }
            };
        if any { self.plan_due_retransmission(conn) } else { None }
    }

    fn plan_due_retransmission(&mut self, conn: &Connection) -> Option<SegmentPlan> {
        if let Some((at, len, fin, kind)) = self.next_probe(conn).or_else(|| self.next_lost(conn)) {
            let push = self.pushes(conn, at, len, &kind);
            return Some(SegmentPlan { at, len, fin, push, kind, more: true });
        }
        None
    }

    /// Plans a retransmission of the segment at `snd_una`, whatever the windows allow.
    fn plan_head_retransmission(&self, conn: &Connection, cause: Cause) -> SegmentPlan {
        let data_end = self.data_end();
        let end = match &self.loss_detector {
            LossDetector::RackTlp(_)
                if conn.cfg.profile.rules.sending.collapses_retransmissions =>
            {
                self.collapsed_end(conn, self.una)
            }
            _ => (self.una + conn.mss()).min(data_end),
        };
        let len = end.min(self.max).min(data_end).since(self.una).get();
        SegmentPlan {
            at: self.una,
            len,
            fin: (len == 0 || end.min(self.max) > data_end) && conn.fin_wanted(),
            push: self.pushes(conn, self.una, len, &SentKind::Retransmission(cause)),
            kind: SentKind::Retransmission(cause),
            more: true,
        }
    }

    /// The limit of data in flight: the congestion window, and with limited transmit (RFC 3042) one
    /// more segment for each of the first two duplicates.
    #[inline(always)]
    fn send_window(&self, conn: &Connection) -> u64 {
        if unlikely(self.rexmt.limited > 0) {
            return self.limited_window(conn);
        }
        self.cwnd()
    }

    fn limited_window(&self, conn: &Connection) -> u64 {
        let cwnd = self.cwnd();
        // FreeBSD's base stack counts the segments released in `limited`, and sets the window
        // itself.
        let counts = matches!(self.loss_detector, LossDetector::Sack(_));
        if counts || !conn.cfg.profile.limited_transmit || self.cc.in_recovery() {
            return cwnd;
        }
        cwnd + u64::from(self.rexmt.limited) * conn.mss()
    }

    fn plan_probe(&self, conn: &Connection, probe: ProbeSegment) -> SegmentPlan {
        let kind = SentKind::Probe;
        let plan = |at, len| SegmentPlan { at, len, fin: false, push: false, kind, more: true };
        match probe {
            ProbeSegment::Byte => plan(self.una, 1),
            ProbeSegment::Empty => plan(Offset(self.una.0 - 1), 0),
            ProbeSegment::Part => {
                let room = (self.una + self.peer.wnd).since(self.nxt).get();
                let unsent = self.data_end().since(self.nxt).get();
                let part = plan(self.nxt, room.min(unsent).min(conn.mss()));
                let repeated = part.at < self.max;
                let kind = if repeated {
                    SentKind::Retransmission(self.rexmt.cause)
                } else {
                    SentKind::New
                };
                SegmentPlan { push: true, kind, ..part }
            }
        }
    }
}

impl ReceiveSide {
    /// Window that the next segment advertises.
    pub(crate) fn next_window(&mut self) -> u64 {
        let promised = self.adv.since(self.nxt).get();
        self.window.window(promised, self.reassembly.bytes())
    }

    /// Is a window update worth sending (RFC 9293 section 3.8.6.2.2; tcp_output of FreeBSD,
    /// tcp_cleanup_rbuf of Linux)? Called only if nothing else is sent.
    #[inline(always)]
    pub(crate) fn window_update_due(&mut self, conn: &Connection, timers: &Timers) -> bool {
        let delays = match conn.cfg.profile.rules.receiving.update_waits {
            UpdateWaits::ForTimerOfAck => core::mem::take(&mut self.delays_ack),
            UpdateWaits::ForRead => true,
            UpdateWaits::WhileAckWaits => timers.runs(Purpose::DelayedAck),
        };
        let closed = self.fin.is_some_and(|fin| self.nxt > fin);
        if closed || delays {
            return false;
        }
        let promised = self.adv.since(self.nxt).get();
        let size = self.window.size();
        // Cheaper than computing the window, and usually sufficient.
        let most = self.window.most_growth(promised);
        if most < 2 * conn.maxseg() && 2 * most < size {
            return false;
        }
        let window = self.window.window(promised, self.reassembly.bytes());
        let grown = window.saturating_sub(promised);
        let is_significant = grown >= 2 * conn.maxseg()
            && (grown >= size / 4 || window <= size / 8 || size <= 8 * conn.maxseg());
        self.window.field(window) > self.window.field(promised)
            && (is_significant || 2 * grown >= size)
    }

    /// Linux: has a read at least doubled the window that can be advertised (__tcp_cleanup_rbuf)?
    pub(crate) fn read_doubles_window(&mut self) -> bool {
        if self.fin.is_some_and(|fin| self.nxt > fin) {
            return false;
        }
        let promised = self.adv.since(self.nxt).get();
        if 2 * promised > self.window.clamp() {
            return false;
        }
        let waiting = self.reassembly.bytes();
        let tight = self.window.is_tight(waiting);
        self.policy.on_window_selected(tight);
        let window = self.window.selected(waiting);
        window > 0 && window >= 2 * promised
    }
}

impl Connection {
    fn reset_segment(&self, seq: SeqNum, ack: Option<SeqNum>) -> Segment {
        Segment {
            flow: self.cfg.flow,
            dir: self.dir(),
            ip: self.cfg.ip,
            flags: if ack.is_some() { Flags::RST | Flags::ACK } else { Flags::RST },
            seq,
            ack: ack.unwrap_or_default(),
            ..Segment::default()
        }
    }
}
