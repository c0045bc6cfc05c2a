//! What is sent next, and why nothing more is.
//!
//! [`Endpoint::output`] is one pass of the kernel's output routine; a pass that wants another
//! leaves itself due. What new data may go is each system's own matter: `base` (FreeBSD's base stack),
//! `bytes` (FreeBSD's RACK and the textbook, whose windows count bytes too), `packets` (Linux).

mod base;
mod build;
mod bytes;
pub(crate) mod packets;
mod push;
mod rest;
mod train;

use core::hint::cold_path;

use cc::{Controller, Idle};
use machine::Cx;
use packet::{Flags, Segment};
use record::{Cause, Event, Purpose, Recorder, SentKind, Waiting};
use units::{Offset, SeqNum, unlikely};

use crate::endpoint::{Endpoint, State};
use crate::loss::Repair;
use crate::probes::Probe;
use crate::profile::{AckRule, BurstRule, IdleRule};

pub(crate) use train::Train;

/// IP bytes of a burst at most (RFC 791: the length field).
const LARGEST_BURST: u64 = 65_535;

/// What a pass decided to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) at: Offset,
    pub(crate) len: u64,
    pub(crate) fin: bool,
    pub(crate) push: bool,
    pub(crate) kind: SentKind,
    /// Another pass follows.
    pub(crate) more: bool,
}

impl Endpoint {
    /// One pass, asked for by [`Endpoint::call_output`] or by the pass before.
    #[inline(always)]
    pub(crate) fn output<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), Waiting> {
        if self.snd.train.packets() > 0 {
            self.snd.train.take_one();
            self.build_next(cx, slot);
            return Ok(());
        }
        if self.snd.train.fills_window() {
            self.snd.train = Train::NONE;
            return self.end_full(cx, slot);
        }
        if self.rests() { self.rest(cx, slot) } else { self.pass(cx, slot) }
    }

    #[inline(never)]
    fn pass<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, slot: &mut Segment) -> Result<(), Waiting> {
        if let Some((seq, ack)) = self.reset.take() {
            cold_path();
            *slot = self.reset_segment(seq, ack);
            let at = self.payload_offset(self.snd.nxt);
            cx.emit(|| Event::Sent { at, len: 0, kind: SentKind::Reset });
            return Ok(());
        }
        match self.state {
            State::SynSent | State::SynReceived => {
                cold_path();
                self.snd.due = false;
                self.snd.waiting = Waiting::Handshake;
                self.send_syn(cx, slot);
                return Ok(());
            }
            State::Closed | State::Listen => {
                cold_path();
                self.snd.due = false;
                return Err(Waiting::Done);
            }
            _ => {}
        }
        if self.is_rack() {
            return self.rack_pass(cx, slot);
        }
        if core::mem::take(&mut self.snd.fresh) {
            self.begin_output(cx);
        }
        if let (Repair::Holes(_), BurstRule::FreeBsd { max }, None | Some(Probe::Byte)) =
            (&self.snd.repair, self.cfg.profile.burst, &self.snd.probe)
        {
            return self.base_pass(cx, slot, max.get());
        }
        let planned = if let Some(cause) = self.snd.again.take() {
            cold_path();
            Ok(self.plan_again(cause))
        } else if let Some(probe) = self.snd.probe.take() {
            cold_path();
            Ok(self.plan_probe(probe))
        } else if self.is_whole() && self.holds_back(cx.now) {
            Err(Waiting::Pacing)
        } else if let Some(plan) = self.plan_repair() {
            Ok(plan)
        } else if self.snd.buffer.used() == 0 && !self.fin_wanted() {
            Err(if self.snd.fin { Waiting::Done } else { Waiting::Application })
        } else {
            match self.cfg.profile.burst {
                BurstRule::FreeBsd { max } => self.plan_bytes(cx, max.get()),
                BurstRule::Rfc => self.plan_bytes(cx, LARGEST_BURST),
                BurstRule::Linux { min_segments, rtt_log, win_divisor } => {
                    self.plan_packets(min_segments, rtt_log, win_divisor, cx.now)
                }
            }
        };
        match planned {
            Ok(plan) => {
                self.snd.due = plan.more;
                let plain = plan.kind == SentKind::New && plan.more && !plan.push;
                if plain && plan.len == self.mss() && !self.is_whole() {
                    self.build_new(cx, slot);
                    return Ok(());
                }
                self.build(cx, &plan, slot);
                if !plan.more {
                    self.validate_bytes(None);
                }
                Ok(())
            }
            Err(why) => {
                self.end_pass(cx, why);
                if unlikely(matches!(why, Waiting::PeerWindow | Waiting::SmallSegment)) {
                    self.watch_window(cx);
                }
                if self.rcv.ack_now || self.window_update_due() {
                    self.build_ack_apart(cx, slot);
                    return Ok(());
                }
                Err(why)
            }
        }
    }

    /// One pass of rack_output.
    #[inline(never)]
    fn rack_pass<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), Waiting> {
        if let Some(probe) = self.snd.probe.take() {
            let plan = self.plan_probe(probe);
            self.build(cx, &plan, slot);
            return Ok(());
        }
        if core::mem::take(&mut self.snd.fresh) {
            if let Some(why) = self.begin_rack_call(cx) {
                if self.reset.is_some() {
                    return self.pass(cx, slot);
                }
                self.end_pass(cx, why);
                return Err(why);
            }
            self.begin_output(cx);
        }
        match self.plan_rack(cx) {
            Ok((plan, left)) => {
                self.snd.due = true;
                self.build(cx, &plan, slot);
                self.end_rack_segment(cx.now, plan.kind, left, plan.more);
                if !self.snd.due {
                    self.validate_bytes(None);
                }
                Ok(())
            }
            Err(why) => {
                self.end_pass(cx, why);
                let shut = self.snd.wnd == 0 && self.snd.buffer.used() > 0;
                if unlikely(shut || matches!(why, Waiting::PeerWindow | Waiting::SmallSegment)) {
                    self.watch_window(cx);
                }
                self.end_rack_call(cx.now, why);
                if self.rcv.ack_now || self.window_update_due() {
                    self.build_ack_apart(cx, slot);
                    return Ok(());
                }
                Err(why)
            }
        }
    }

    /// First pass after a call: is the connection idle, and has it been so for long?
    fn begin_output<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.snd.idle = self.snd.max == self.snd.una;
        self.snd.asked_at = self.snd.nxt;
        // FreeBSD does not ask whether there is anything to send.
        let freebsd = self.cfg.profile.idle == IdleRule::HeardOrSent;
        let sends = freebsd || self.data_end() > self.snd.nxt;
        if self.snd.idle && self.cfg.profile.after_idle && sends {
            self.begin_after_idle(cx);
        }
    }

    #[inline(never)]
    fn begin_after_idle<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let rto = self.rtt.rto();
        let (idle, long) = self.idle_for(cx.now, rto);
        if long {
            let change = self.cc.on_idle(&Idle { ticks: self.clock.tick(cx.now), idle, rto });
            self.note(cx, change, Cause::Idle);
        }
    }

    /// A probe, or something lost that may go again now.
    #[inline(always)]
    fn plan_repair(&mut self) -> Option<Plan> {
        let any = self.cc.in_recovery()
            || match &self.snd.repair {
                Repair::Timed(loss) => loss.probe_is_due() || self.snd.map.any_lost(),
                Repair::Holes(_) | Repair::Duplicates | Repair::Rack(_) => false,
            };
        if any { self.plan_due_repair() } else { None }
    }

    fn plan_due_repair(&mut self) -> Option<Plan> {
        if let Some((at, len, fin, kind)) = self.next_probe().or_else(|| self.next_lost()) {
            let push = self.pushes(at, len, &kind);
            return Some(Plan { at, len, fin, push, kind, more: true });
        }
        None
    }

    /// One segment from `snd_una` on, whatever the windows say.
    fn plan_again(&self, cause: Cause) -> Plan {
        let sent_end = self.snd.max.min(self.data_end());
        let len = self.mss().min(sent_end.since(self.snd.una).get());
        Plan {
            at: self.snd.una,
            len,
            fin: len == 0 && self.fin_wanted(),
            push: self.pushes(self.snd.una, len, &SentKind::Again(cause)),
            kind: SentKind::Again(cause),
            more: true,
        }
    }

    /// What may be under way: the congestion window, and in limited transmit (RFC 3042) one
    /// segment more for each of the first two duplicates.
    #[inline(always)]
    fn send_window(&self) -> u64 {
        if unlikely(self.snd.limited > 0) {
            return self.limited_window();
        }
        self.cwnd()
    }

    #[inline(never)]
    fn limited_window(&self) -> u64 {
        let cwnd = self.cwnd();
        // FreeBSD's base stack counts here what it released, and sets the window itself.
        let counts = matches!(self.snd.repair, Repair::Holes(_));
        if counts || !self.cfg.profile.limited_transmit || self.cc.in_recovery() {
            return cwnd;
        }
        cwnd + u64::from(self.snd.limited) * self.mss()
    }

    fn plan_probe(&self, probe: Probe) -> Plan {
        let kind = SentKind::Probe;
        let plan = |at, len| Plan { at, len, fin: false, push: false, kind, more: true };
        match probe {
            Probe::Byte => plan(self.snd.una, 1),
            Probe::Empty => plan(Offset(self.snd.una.0 - 1), 0),
            Probe::Part => {
                let room = (self.snd.una + self.snd.wnd).since(self.snd.nxt).get();
                let unsent = self.data_end().since(self.snd.nxt).get();
                let part = plan(self.snd.nxt, room.min(unsent).min(self.mss()));
                let again = part.at < self.snd.max;
                let kind =
                    if again { SentKind::Again(self.snd.resend_cause) } else { SentKind::New };
                Plan { push: true, kind, ..part }
            }
        }
    }

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

    /// Calls the output routine in the midst of an acknowledgment, as tcp_do_segment does before
    /// `snd_una` moves: what it sends is kept until it is polled.
    #[inline(never)]
    pub(crate) fn output_now<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.call_output();
        let mut slot = Segment::default();
        while self.snd.due && self.output(cx, &mut slot).is_ok() {
            self.outbox.get_or_insert_default().push_back(slot);
        }
        self.snd.due = false;
    }

    /// Is there enough more room to tell the peer of (RFC 9293 section 3.8.6.2.2; tcp_output of
    /// FreeBSD, tcp_cleanup_rbuf of Linux)? Only asked when nothing else is sent.
    #[inline(always)]
    pub(crate) fn window_update_due(&mut self) -> bool {
        // FreeBSD holds it back only until the timer of a delayed ACK has been set (check_delack).
        let delays = match self.cfg.profile.acks {
            AckRule::FreeBsd { .. } => core::mem::take(&mut self.rcv.delays_ack),
            AckRule::Linux { .. } | AckRule::Rfc { .. } => self.timers.runs(Purpose::DelayedAck),
        };
        let closed = self.rcv.fin.is_some_and(|fin| self.rcv.nxt > fin);
        if closed || delays {
            return false;
        }
        let promised = self.rcv.adv.since(self.rcv.nxt).get();
        let size = self.rcv.window.size();
        let linux = matches!(self.cfg.profile.burst, BurstRule::Linux { .. });
        // Less to ask than for the window itself, and mostly enough.
        let most = self.rcv.window.most_growth(promised);
        if !linux && most < 2 * self.maxseg() && 2 * most < size {
            return false;
        }
        let window = self.rcv.window.window(promised, self.rcv.reassembly.bytes());
        let grown = window.saturating_sub(promised);
        match self.cfg.profile.burst {
            BurstRule::FreeBsd { .. } | BurstRule::Rfc => {
                let worth = grown >= 2 * self.maxseg()
                    && (grown >= size / 4 || window <= size / 8 || size <= 8 * self.maxseg());
                self.rcv.window.field(window) > self.rcv.window.field(promised)
                    && (worth || 2 * grown >= size)
            }
            BurstRule::Linux { .. } => window >= 2 * promised.max(1),
        }
    }
}
