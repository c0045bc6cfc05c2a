//! tcp_output of FreeBSD's base stack (tcp_output.c; 13.0, 14.3 and main of October 2024).
//!
//! One pass is the code from `repeated:` to the segment sent. Whatever makes the kernel send (a
//! pending ACK, a window update, a FIN), the segment carries the data that the windows allow, even
//! if it would be too little to send on its own.

use cc::Controller;
use machine::Cx;
use packet::Flags;
use record::{Cause, Event, Purpose, Recorder, SendLimit, SentKind};
use recovery::sendmap::RetransmitResult;
use units::{Instant, Offset};

use super::ack_fields::SenderFields;
use crate::connection::Connection;
use crate::loss::LossDetector;
use crate::sender::Sender;
use crate::sent;
use crate::state::{ReceiveSide, SendSide};
use crate::timers::Timers;

/// The segment that a pass of the base stack sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct BasePlan {
    at: Offset,
    pub(super) len: u64,
    pub(super) fin: bool,
    /// From a hole of the scoreboard (`sack_rxmit`).
    hole: bool,
    /// Forced into a zero window by the persist timer.
    probes: bool,
    /// The segment ends at the end of the send buffer (`TH_PUSH`).
    push: bool,
    /// Another pass follows (`sendalot`).
    pub(super) more: bool,
}

/// A segment that could be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct BaseOffer {
    plan: BasePlan,
    /// Its data need not wait for more.
    pub(super) is_worth_sending: bool,
    fin_unsent: bool,
}

impl BaseOffer {
    /// Does it have a FIN that was not sent yet?
    pub(super) const fn sends_fin(&self) -> bool {
        self.plan.fin && self.fin_unsent
    }
}

impl SendSide {
    /// Ends a pass that has sent a segment.
    pub(super) fn end_base_pass<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &BasePlan,
    ) {
        if plan.len == 0 && !plan.fin {
            self.note_retransmit_time(conn, cx.now);
        }
        self.watch_base(conn, timers, cx, plan);
        debug_assert_eq!(self.flight, self.loss_detector.flight());
        if !plan.more {
            self.probe.segment = None;
            self.validate_bytes(conn, None);
            self.end_call(conn, cx);
        }
    }

    /// Records the transmission of a segment at `at`.
    pub(super) fn note_base_segment<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        plan: &BasePlan,
        at: Offset,
        kind: SentKind,
    ) {
        if plan.probes {
            self.note_probe_sent(conn, cx.now, at, plan);
        } else {
            self.note_base_sent(conn, cx, plan, at);
        }
        cx.emit_with_state(&self.with(conn), || {
            let at = conn.payload_offset(at);
            Event::Sent { at, len: plan.len as u32, kind }
        });
    }

    /// What could be sent: from a hole, or what the windows allow from `snd_nxt` on, and a FIN.
    pub(super) fn offer_base<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> BaseOffer {
        let enlarged = self.skip_sacked(conn);
        let (una, nxt, max) = (self.una, self.nxt, self.max);
        let (avail, wnd, cwnd) = (self.buffer.used(), self.peer.wnd, self.cwnd());
        let mut sendwin = wnd.min(cwnd + enlarged);
        let recovering = self.in_fast_recovery();
        let (scans, retransmission) = match &self.loss_detector {
            LossDetector::Sack(loss) if conn.negotiated.sack => {
                let scans = recovering || (loss.rule().holes_after_timeout && nxt < max);
                (scans, if scans { loss.sack_bytes_rexmit() } else { 0 })
            }
            _ => (false, 0),
        };
        let hole = if scans { self.next_hole() } else { None };
        let forced = self.forces_data();
        let probes = forced && sendwin == 0;
        if probes {
            sendwin = 1;
        } else if forced {
            self.end_persist(timers);
        }
        let (at, len) = match hole {
            Some(hole) => hole,
            None => (nxt, self.room_for_new(sendwin, retransmission)),
        };
        let off = at.since(una).get();
        if len == 0 && sendwin == 0 && off < avail {
            self.shut_window(conn, timers, cx);
        }
        let unsent = avail.saturating_sub(self.nxt.since(una).get());
        if let Some(size) = self.buffer.autoscale(wnd, sendwin, unsent) {
            cx.emit(|| Event::SendBuffer { size: size as u32 });
        }
        let hole = hole.is_some();
        BaseOffer {
            is_worth_sending: len > 0 && (forced || self.is_worth_sending(conn, len, off, hole)),
            fin_unsent: max <= self.data_end() || nxt == una,
            plan: BasePlan {
                at,
                len,
                // A probe that carries the last byte omits the FIN.
                fin: conn.fin_wanted() && off + len >= avail && !(probes && off < avail),
                hole,
                probes: forced && self.probe.persisting,
                push: false,
                more: hole,
            },
        }
    }

    /// Ends a call that has sent a segment.
    fn end_call<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let why = self.base_waiting_reason();
        if why != self.call.waiting {
            cx.emit(|| Event::SendLimited(why));
        }
        self.call.waiting = why;
        if core::mem::take(&mut self.call.check_space) {
            self.wake_writer(conn, cx);
        }
    }

    /// Advances the sequence variables and updates the counters.
    fn note_base_sent<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        plan: &BasePlan,
        at: Offset,
    ) {
        let (mss, now) = (conn.mss(), cx.now);
        let end = at + plan.len + u64::from(plan.fin);
        let packets = if plan.len <= mss { 1 } else { plan.len.div_ceil(mss) };
        if plan.len > 0 {
            self.totals.data_packets += packets;
        }
        if at < self.max {
            if plan.len > 0 {
                self.totals.retransmitted_packets += packets;
            }
            let _: RetransmitResult =
                self.sender.scoreboard.retransmit(at, end.min(self.sender.max), now, false);
        }
        let pushed_from = at.max(self.max);
        if end > self.max {
            sent::push(&mut self.scoreboard, pushed_from, end, plan.fin, mss, now);
        }
        if !plan.hole {
            self.nxt = end;
        } else if plan.fin {
            self.nxt += 1;
        }
        self.note_retransmit_time(conn, now);
        if end > self.max {
            self.max = end;
            self.last.sent = now;
            if self.rtt.timing.is_none() {
                self.rtt.timing = Some((at, now));
            }
        }
        self.nxt = self.nxt.min(self.max);
        self.sack_sent(plan.len, plan.hole);
    }
}

impl Sender {
    /// The fields of the header, and the kind of the segment.
    #[inline(always)]
    pub(super) fn begin_base_segment(&mut self, plan: &BasePlan) -> (SenderFields, SentKind) {
        let mut flags = Flags::ACK;
        if plan.push {
            flags |= Flags::PSH;
        }
        // Every ACK after an unacknowledged FIN carries it again (tcp_outflags of FIN_WAIT_1).
        let carries_fin = plan.fin && self.max > self.data_end() && self.nxt == self.max;
        if plan.fin {
            flags |= Flags::FIN;
            if carries_fin {
                // The FIN already has a sequence number.
                self.nxt = Offset(self.nxt.0 - 1);
            }
        }
        let at = if plan.hole { plan.at } else { self.nxt };
        let repeated = at < self.max && plan.len > 0;
        let kind = match (plan.len, plan.hole, repeated) {
            _ if plan.probes => SentKind::Probe,
            (0, ..) if carries_fin => SentKind::Ack,
            (0, ..) if at < self.max => SentKind::Retransmission(self.rexmt.cause),
            (0, ..) => SentKind::Control,
            (_, true, _) if self.in_fast_recovery() => {
                SentKind::Retransmission(Cause::FastRetransmit)
            }
            // After a timeout holes are retransmitted outside of recovery (`snd_nxt < snd_max`).
            (_, true, _) => SentKind::Retransmission(self.rexmt.cause),
            (_, false, true) => SentKind::Retransmission(self.rexmt.cause),
            (_, false, false) => SentKind::New,
        };
        (self.fields(at, plan.len, flags), kind)
    }

    /// Cuts what is offered: to a burst for the segmentation offload below `burst_max`, or to a segment.
    #[inline(always)]
    pub(super) fn plan_base(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        offer: &BaseOffer,
        burst_max: u64,
    ) -> BasePlan {
        let plan = offer.plan;
        if plan.len <= conn.mss() {
            return self.pushes_base(plan);
        }
        let tso = conn.cfg.tso && !plan.hole && !rcv.has_blocks(conn);
        let off = plan.at.since(self.una).get();
        let (most, len) = if tso {
            let most = self.tso_len(conn, plan.len, off, burst_max);
            (most, self.buffer.one_packet(off, most))
        } else {
            (conn.mss(), conn.mss())
        };
        // What the device does not take waits for the next call (tcp_m_copym cuts `len` only).
        let more = plan.more || most < plan.len || !tso;
        self.pushes_base(BasePlan { len, fin: false, more, ..plan })
    }

    /// Sets PSH at the end of the send buffer.
    fn pushes_base(&self, plan: BasePlan) -> BasePlan {
        let end = plan.at.since(self.una).get() + plan.len;
        BasePlan { push: plan.len > 0 && end == self.buffer.used(), ..plan }
    }

    /// The limit that prevents further output.
    fn base_waiting_reason(&self) -> SendLimit {
        let unsent = self.data_end().since(self.nxt).get();
        self.waiting_reason(unsent, self.cwnd())
    }

    /// Bytes from `snd_nxt` on that the windows allow; in a recovery with retransmissions, the PRR
    /// allowance less the bytes sent since.
    fn room_for_new(&self, sendwin: u64, retransmitted: u64) -> u64 {
        let (avail, off) = (self.buffer.used(), self.nxt - self.una);
        if retransmitted == 0 || self.nxt < self.max {
            return avail.min(sendwin).saturating_sub(off);
        }
        let len = avail.min(self.peer.wnd).saturating_sub(off);
        let since = self.nxt.since(self.cc.recovery_point()).get();
        len.min(self.cwnd().saturating_sub(since + retransmitted))
    }

    /// The sender's side of silly-window avoidance.
    fn is_worth_sending(&self, conn: &Connection, len: u64, off: u64, hole: bool) -> bool {
        len >= conn.mss()
            || ((self.call.idle || conn.cfg.nodelay) && len + off >= self.buffer.used())
            || (self.peer.max_wnd > 0 && len >= self.peer.max_wnd / 2)
            || self.nxt < self.max
            || hole
    }

    /// Length of a burst for the segmentation offload: below the limit of the interface, whole
    /// segments unless it empties the send buffer, and at least one segment.
    fn tso_len(&self, conn: &Connection, len: u64, off: u64, burst_max: u64) -> u64 {
        let mss = conn.mss();
        // t_maxseg counts the option bytes, which are the difference to mss.
        let headers = u64::from(conn.cfg.ip.header_len()) + 20 + (conn.maxseg() - mss);
        let len = len.min(burst_max.saturating_sub(headers));
        let whole = off + len < self.buffer.used();
        let len = if whole { len - len % mss } else { len };
        len.max(mss)
    }

    /// Returns why nothing is sent, and ensures that a timer runs if data is waiting.
    pub(super) fn base_idle_reason<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        offer: &BaseOffer,
    ) -> SendLimit {
        let BasePlan { at, len, .. } = offer.plan;
        let off = at.since(self.una).get();
        let outstanding = self.max > self.una;
        let retransmits = timers.runs(Purpose::Retransmit);
        let probes = timers.runs(Purpose::Persist);
        let avail = self.buffer.used();
        if conn.negotiated.sack && outstanding && !retransmits && !probes {
            self.arm_retransmit(conn, timers, cx.now);
        } else if avail > 0 && !retransmits && !probes {
            self.rexmt.shift = 0;
            self.set_persist(conn, timers, cx.now);
        }
        if len > 0 && len + off >= avail {
            SendLimit::SmallSegment
        } else {
            self.base_waiting_reason()
        }
    }

    /// Records a window probe: it advances `snd_max`, not `snd_nxt`.
    fn note_probe_sent(&mut self, conn: &Connection, now: Instant, at: Offset, plan: &BasePlan) {
        let end = at + plan.len + u64::from(plan.fin);
        if end > self.max {
            let mss = conn.mss();
            sent::push(&mut self.scoreboard, at.max(self.max), end, plan.fin, mss, now);
            self.max = end;
        }
    }

    /// Updates `t_badrxtwin` for segments sent between the first timeout and the next round-trip
    /// sample.
    fn note_retransmit_time(&mut self, conn: &Connection, now: Instant) {
        if self.rexmt.shift == 1 && self.rexmt.timeout_stamp.is_some() {
            self.rexmt.timeout_stamp = Some(conn.clock.timestamp(now));
        }
    }

    /// Sets the retransmission timer if it does not run and data is outstanding, else the persist
    /// timer if data is waiting.
    fn watch_base<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &BasePlan,
    ) {
        if plan.probes || timers.runs(Purpose::Retransmit) {
            return;
        }
        if self.nxt != self.una || (plan.hole && self.nxt != self.max) {
            if timers.runs(Purpose::Persist) {
                self.end_persist(timers);
            }
            self.arm_retransmit(conn, timers, cx.now);
        } else if plan.len == 0 && self.buffer.used() > 0 && !timers.runs(Purpose::Persist) {
            self.rexmt.shift = 0;
            self.set_persist(conn, timers, cx.now);
        }
    }
}
