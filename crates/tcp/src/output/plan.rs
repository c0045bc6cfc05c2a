//! The sending side's choice of the next segment: the one at `snd_una`, a probe, a lost one, or new data.

use core::hint::cold_path;

use cc::{Controller, IdleEvent};
use machine::Cx;
use record::{Cause, Recorder, SendLimit, SentKind};
use units::{Offset, unlikely};

use super::bytes::ByteLimits;
use crate::connection::Connection;
use crate::profile::{BurstRule, IdleCheck};
use crate::receive_side::ReceiveSide;
use crate::segment_plan::SegmentPlan;
use crate::send_side::SendSide;
use crate::sender::{ProbeSegment, Sender};
use crate::stacks::Stack;
use crate::timers::Timers;

/// Maximum IP bytes of a burst (RFC 791: the length field).
const LARGEST_BURST: u64 = 65_535;

impl SendSide {
    /// Plans the next segment, or returns why nothing is sent; the stacks of FreeBSD have plans of their own.
    #[inline(always)]
    pub(super) fn plan_segment<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
    ) -> Result<SegmentPlan, SendLimit> {
        if let Some(cause) = self.rexmt.head.take() {
            cold_path();
            Ok(self.plan_head_retransmission(conn, cause))
        } else if let Some(probe) = self.probe.segment.take() {
            cold_path();
            Ok(self.plan_probe(conn, probe))
        } else if self.is_rate_based()
            && self.pacing_blocks(conn, timers, cx.now)
            && !self.probe_is_due()
        {
            // tcp_write_xmit: what was sent before counts.
            let limited = self.packets_in_flight() * conn.mss() >= self.cwnd();
            self.validate_window(limited);
            Err(SendLimit::Pacing)
        } else if let Some(plan) = self.plan_retransmission(conn) {
            Ok(plan)
        } else if self.buffer.used() == 0 && !conn.fin_wanted() {
            Err(if self.buffer.fin { SendLimit::Done } else { SendLimit::Application })
        } else {
            match conn.cfg.profile.burst {
                BurstRule::FreeBsd { max } => self.plan_within(conn, rcv, cx, max.get()),
                BurstRule::Rfc => self.plan_within(conn, rcv, cx, self.quantum(conn)),
                BurstRule::Linux(rule) => self.plan_packets(conn, timers, rule, cx.now),
            }
        }
    }

    fn plan_within<R: Recorder>(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        burst: u64,
    ) -> Result<SegmentPlan, SendLimit> {
        let (window, room) = (self.send_window(conn), self.rack_tlp_room());
        self.plan_bytes(conn, rcv, cx, ByteLimits { burst, window, room })
    }

    /// Is a tail loss probe due? Pacing does not hold it back (tcp_send_loss_probe).
    fn probe_is_due(&self) -> bool {
        matches!(&self.stack, Stack::RackTlp(loss) if loss.probe_is_due())
    }

    /// Plans a tail loss probe or a retransmission.
    #[inline(always)]
    fn plan_retransmission(&mut self, conn: &Connection) -> Option<SegmentPlan> {
        let any = self.cc.in_recovery()
            || match &self.stack {
                Stack::RackTlp(loss) => loss.probe_is_due() || self.scoreboard.any_lost(),
                Stack::FreeBsd(_) | Stack::NewReno | Stack::FreeBsdRack(_) => false,
            };
        if any { self.plan_due_retransmission(conn) } else { None }
    }

    fn plan_due_retransmission(&mut self, conn: &Connection) -> Option<SegmentPlan> {
        let plan = |snd: &Self, (at, len, fin, kind), more| {
            let push = snd.pushes(conn, at, len, &kind);
            SegmentPlan { at, len, fin, push, kind, more }
        };
        if let Some(probe) = self.next_probe(conn) {
            // tcp_send_loss_probe sends nothing besides.
            return Some(plan(self, probe, !conn.queues_packets()));
        }
        self.next_lost(conn).map(|lost| plan(self, lost, true))
    }

    /// Plans a retransmission of the segment at `snd_una`, whatever the windows allow.
    fn plan_head_retransmission(&self, conn: &Connection, cause: Cause) -> SegmentPlan {
        let data_end = self.data_end();
        let end = match &self.stack {
            Stack::RackTlp(_) if conn.cfg.profile.rules.sending.collapses_retransmissions => {
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
    pub(super) fn send_window(&self, conn: &Connection) -> u64 {
        if unlikely(self.rexmt.limited > 0) {
            return self.limited_window(conn);
        }
        self.cwnd()
    }

    fn limited_window(&self, conn: &Connection) -> u64 {
        let cwnd = self.cwnd();
        if self.stack.counts_limited()
            || !conn.cfg.profile.limited_transmit
            || self.cc.in_recovery()
        {
            return cwnd;
        }
        cwnd + u64::from(self.rexmt.limited) * conn.mss()
    }
}

impl Sender {
    /// Bytes of a burst by the RFCs: what a rate-based controller sets (`C.send_quantum` of the draft of BBR).
    fn quantum(&self, conn: &Connection) -> u64 {
        let segments = self.cc.rate_based().and_then(|cc| cc.burst(LARGEST_BURST));
        segments.map_or(LARGEST_BURST, |segments| u64::from(segments) * conn.mss())
    }

    /// First pass of a call: checks whether the connection is idle, and for how long.
    #[inline]
    pub(crate) fn begin_output<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
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

    #[cold]
    fn begin_after_idle<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let rto = self.rtt.estimator.rto();
        let (idle, rto, long) = self.idle_for(conn, cx.now, rto);
        if long {
            self.show_controller(conn, cx.now, self.una);
            let change = self.cc.on_idle(&IdleEvent { ticks: conn.clock.tick(cx.now), idle, rto });
            self.note(conn, cx, change, Cause::Idle);
        }
    }

    pub(crate) fn plan_probe(&self, conn: &Connection, probe: ProbeSegment) -> SegmentPlan {
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
