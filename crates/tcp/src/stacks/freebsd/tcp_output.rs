//! tcp_output of FreeBSD's base stack (tcp_output.c; 13.0, 14.3 and main of October 2024).
//!
//! One pass is the code from `repeated:` to the segment sent. Whatever makes the kernel send (a
//! pending ACK, a window update, a FIN), the segment carries the data that the windows allow, even
//! if it would be too little to send on its own.

use cc::Controller;
use machine::Cx;
use packet::{Flags, Segment};
use record::{Cause, Event, Purpose, Recorder, SendLimit, SentKind};
use recovery::sendmap::RetransmitResult;
use units::{Instant, Offset, unlikely};

use super::FreeBsd;
use crate::connection::Connection;
use crate::output::ack_fields::SenderFields;
use crate::receive_side::ReceiveSide;
use crate::sender::FlightEstimate;
use crate::sent;
use crate::timers::Timers;

/// The segment that a pass of the base stack sends.
#[derive(Debug, Clone, Copy)]
struct BasePlan {
    at: Offset,
    len: u64,
    fin: bool,
    /// From a hole of the scoreboard (`sack_rxmit`).
    hole: bool,
    /// Forced into a zero window by the persist timer.
    probes: bool,
    /// The segment ends at the end of the send buffer (`TH_PUSH`).
    push: bool,
    /// Another pass follows (`sendalot`).
    more: bool,
}

/// A segment that could be sent.
#[derive(Debug, Clone, Copy)]
struct BaseOffer {
    plan: BasePlan,
    /// Its data need not wait for more.
    is_worth_sending: bool,
    fin_unsent: bool,
}

impl BaseOffer {
    /// Does it have a FIN that was not sent yet?
    const fn sends_fin(&self) -> bool {
        self.plan.fin && self.fin_unsent
    }
}

impl FreeBsd<'_> {
    /// One pass of tcp_output: writes a segment into `slot`, or returns why there is none.
    pub(crate) fn tcp_output<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &mut ReceiveSide,
        cx: &mut Cx<'_, R>,
        slot: &mut Segment,
    ) -> Result<(), SendLimit> {
        let offer = self.offer(conn, timers, cx);
        let sends = offer.is_worth_sending
            || rcv.window_update_due(conn, timers)
            || rcv.ack_now
            || offer.sends_fin();
        if !sends {
            let why = self.idle_reason(conn, timers, cx, &offer);
            self.snd.probe.segment = None;
            self.snd.end_output(conn, cx, why);
            self.end_call();
            return Err(why);
        }
        let plan = self.plan(conn, rcv, &offer, conn.largest_burst());
        self.snd.call.due = plan.more;
        let carries = plan.len > 0 || plan.fin;
        let (fields, kind) = match carries {
            true => self.begin_segment(&plan),
            false => (self.snd.ack_fields(self.pure_ack_at()), SentKind::Ack),
        };
        rcv.write_header_cold(conn, timers, cx.now, &fields, slot);
        if plan.len > conn.mss() {
            slot.gso_size = conn.negotiated.mss as u16;
        }
        if rcv.has_blocks(conn) {
            rcv.write_blocks(conn, plan.len, slot);
        }
        if carries {
            self.sent(conn, cx, &plan, fields.at, kind);
        } else {
            self.snd.note_ack(conn, cx, fields.at);
            self.note_retransmit_time(conn, cx.now);
        }
        self.end_pass(conn, timers, cx, &plan);
        Ok(())
    }

    /// The sequence number of a pure ACK: `snd_max`, but `snd_nxt` while a zero window is probed.
    pub(crate) fn pure_ack_at(&self) -> Offset {
        if unlikely(self.snd.probe.persisting) { self.snd.nxt } else { self.snd.max }
    }

    /// Records the transmission of a segment at `at`.
    fn sent<R: Recorder>(
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
            self.sent_data(conn, cx, plan, at);
        }
        cx.emit_with_state(&self.snd.with(conn), || {
            let at = conn.payload_offset(at);
            Event::Sent { at, len: plan.len as u32, kind }
        });
    }

    /// Ends a pass that has sent a segment.
    fn end_pass<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &BasePlan,
    ) {
        self.watch(conn, timers, cx, plan);
        let correction = self.state.flight_correction();
        debug_assert_eq!(self.snd.flight, FlightEstimate::Corrected(correction));
        if plan.more {
            return;
        }
        self.snd.probe.segment = None;
        self.snd.validate_bytes(conn, None);
        let why = self.waiting_reason();
        if why != self.snd.call.waiting {
            cx.emit(|| Event::SendLimited(why));
        }
        self.snd.call.waiting = why;
        self.end_call();
    }

    /// Wakes a writer whose write made the call.
    fn end_call(&mut self) {
        if core::mem::take(&mut self.snd.call.check_space) {
            self.wake_writer();
        }
    }

    /// What could be sent: from a hole, or what the windows allow from `snd_nxt` on, and a FIN.
    fn offer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> BaseOffer {
        let enlarged = self.sack_adjust(conn);
        let (una, nxt, max) = (self.snd.una, self.snd.nxt, self.snd.max);
        let (avail, wnd, cwnd) = (self.snd.buffer.used(), self.snd.peer.wnd, self.snd.cwnd());
        let mut sendwin = wnd.min(cwnd + enlarged);
        let recovering = self.snd.in_fast_recovery();
        let holes_after_timeout = self.state.rule().holes_after_timeout && nxt < max;
        let scans = conn.negotiated.sack && (recovering || holes_after_timeout);
        let retransmission = if scans { self.state.sack_bytes_rexmit() } else { 0 };
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
        let unsent = avail.saturating_sub(self.snd.nxt.since(una).get());
        if let Some(size) = self.snd.buffer.autoscale(wnd, sendwin, unsent) {
            cx.emit(|| Event::SendBuffer { size: size as u32 });
        }
        let hole = hole.is_some();
        BaseOffer {
            is_worth_sending: len > 0 && (forced || self.is_worth_sending(conn, len, off, hole)),
            fin_unsent: max <= self.snd.data_end() || nxt == una,
            plan: BasePlan {
                at,
                len,
                // A probe that carries the last byte omits the FIN.
                fin: conn.fin_wanted() && off + len >= avail && !(probes && off < avail),
                hole,
                probes: forced && self.snd.probe.persisting,
                push: false,
                more: hole,
            },
        }
    }

    /// Advances the sequence variables and updates the counters.
    fn sent_data<R: Recorder>(
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
            self.snd.totals.data_packets += packets;
        }
        if at < self.snd.max {
            if plan.len > 0 {
                self.snd.totals.retransmitted_packets += packets;
            }
            let _: RetransmitResult =
                self.snd.scoreboard.retransmit(at, end.min(self.snd.max), now, false);
        }
        let pushed_from = at.max(self.snd.max);
        if end > self.snd.max {
            sent::push(&mut self.snd.scoreboard, pushed_from, end, plan.fin, mss, now);
        }
        if !plan.hole {
            self.snd.nxt = end;
        } else if plan.fin {
            self.snd.nxt += 1;
        }
        self.note_retransmit_time(conn, now);
        if end > self.snd.max {
            self.snd.max = end;
            self.snd.last.sent = now;
            if self.snd.rtt.timing.is_none() {
                self.snd.rtt.timing = Some((at, now));
            }
        }
        self.snd.nxt = self.snd.nxt.min(self.snd.max);
        self.sack_sent(plan.len, plan.hole);
    }

    /// The fields of the header, and the kind of the segment.
    #[inline(always)]
    fn begin_segment(&mut self, plan: &BasePlan) -> (SenderFields, SentKind) {
        let mut flags = Flags::ACK;
        if plan.push {
            flags |= Flags::PSH;
        }
        // Every ACK after an unacknowledged FIN carries it again (tcp_outflags of FIN_WAIT_1).
        let carries_fin =
            plan.fin && self.snd.max > self.snd.data_end() && self.snd.nxt == self.snd.max;
        if plan.fin {
            flags |= Flags::FIN;
            if carries_fin {
                // The FIN already has a sequence number.
                self.snd.nxt = Offset(self.snd.nxt.0 - 1);
            }
        }
        let at = if plan.hole { plan.at } else { self.snd.nxt };
        let repeated = at < self.snd.max && plan.len > 0;
        let kind = match (plan.len, plan.hole, repeated) {
            _ if plan.probes => SentKind::Probe,
            (0, ..) if carries_fin => SentKind::Ack,
            (0, ..) if at < self.snd.max => SentKind::Retransmission(self.snd.rexmt.cause),
            (0, ..) => SentKind::Control,
            (_, true, _) if self.snd.in_fast_recovery() => {
                SentKind::Retransmission(Cause::FastRetransmit)
            }
            // After a timeout holes are retransmitted outside of recovery (`snd_nxt < snd_max`).
            (_, true, _) => SentKind::Retransmission(self.snd.rexmt.cause),
            (_, false, true) => SentKind::Retransmission(self.snd.rexmt.cause),
            (_, false, false) => SentKind::New,
        };
        (self.snd.fields(at, plan.len, flags), kind)
    }

    /// Cuts what is offered: to a burst for the segmentation offload below `burst_max`, or to a segment.
    #[inline(always)]
    fn plan(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        offer: &BaseOffer,
        burst_max: u64,
    ) -> BasePlan {
        let plan = offer.plan;
        if plan.len <= conn.mss() {
            return self.pushes(plan);
        }
        let tso = conn.cfg.tso && !plan.hole && !rcv.has_blocks(conn);
        let off = plan.at.since(self.snd.una).get();
        let (most, len) = if tso {
            let most = self.tso_len(conn, plan.len, off, burst_max);
            (most, self.snd.buffer.one_packet(off, most))
        } else {
            (conn.mss(), conn.mss())
        };
        // What the device does not take waits for the next call (tcp_m_copym cuts `len` only).
        let more = plan.more || most < plan.len || !tso;
        self.pushes(BasePlan { len, fin: false, more, ..plan })
    }

    /// Sets PSH at the end of the send buffer.
    fn pushes(&self, plan: BasePlan) -> BasePlan {
        let end = plan.at.since(self.snd.una).get() + plan.len;
        BasePlan { push: plan.len > 0 && end == self.snd.buffer.used(), ..plan }
    }

    /// The limit that prevents further output.
    fn waiting_reason(&self) -> SendLimit {
        let unsent = self.snd.data_end().since(self.snd.nxt).get();
        self.snd.waiting_reason(unsent, self.snd.cwnd())
    }

    /// Bytes from `snd_nxt` on that the windows allow; in a recovery with retransmissions, the PRR
    /// allowance less the bytes sent since.
    fn room_for_new(&self, sendwin: u64, retransmitted: u64) -> u64 {
        let (avail, off) = (self.snd.buffer.used(), self.snd.nxt - self.snd.una);
        if retransmitted == 0 || self.snd.nxt < self.snd.max {
            return avail.min(sendwin).saturating_sub(off);
        }
        let len = avail.min(self.snd.peer.wnd).saturating_sub(off);
        let since = self.snd.nxt.since(self.snd.cc.recovery_point()).get();
        len.min(self.snd.cwnd().saturating_sub(since + retransmitted))
    }

    /// The sender's side of silly-window avoidance.
    fn is_worth_sending(&self, conn: &Connection, len: u64, off: u64, hole: bool) -> bool {
        len >= conn.mss()
            || ((self.snd.call.idle || conn.cfg.nodelay) && len + off >= self.snd.buffer.used())
            || (self.snd.peer.max_wnd > 0 && len >= self.snd.peer.max_wnd / 2)
            || self.snd.nxt < self.snd.max
            || hole
    }

    /// Length of a burst for the segmentation offload: below the limit of the interface, whole
    /// segments unless it empties the send buffer, and at least one segment.
    fn tso_len(&self, conn: &Connection, len: u64, off: u64, burst_max: u64) -> u64 {
        let mss = conn.mss();
        // t_maxseg counts the option bytes, which are the difference to mss.
        let headers = u64::from(conn.cfg.ip.header_len()) + 20 + (conn.maxseg() - mss);
        let len = len.min(burst_max.saturating_sub(headers));
        let whole = off + len < self.snd.buffer.used();
        let len = if whole { len - len % mss } else { len };
        len.max(mss)
    }

    /// Returns why nothing is sent, and ensures that a timer runs if data is waiting.
    fn idle_reason<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        offer: &BaseOffer,
    ) -> SendLimit {
        let BasePlan { at, len, .. } = offer.plan;
        let off = at.since(self.snd.una).get();
        let outstanding = self.snd.max > self.snd.una;
        let retransmits = timers.runs(Purpose::Retransmit);
        let probes = timers.runs(Purpose::Persist);
        let avail = self.snd.buffer.used();
        if conn.negotiated.sack && outstanding && !retransmits && !probes {
            self.snd.arm_retransmit(conn, timers, cx.now);
        } else if avail > 0 && !retransmits && !probes {
            self.snd.rexmt.shift = 0;
            self.setpersist(conn, timers, cx.now);
        }
        if len > 0 && len + off >= avail { SendLimit::SmallSegment } else { self.waiting_reason() }
    }

    /// Records a window probe: it advances `snd_max`, not `snd_nxt`.
    fn note_probe_sent(&mut self, conn: &Connection, now: Instant, at: Offset, plan: &BasePlan) {
        let end = at + plan.len + u64::from(plan.fin);
        if end > self.snd.max {
            let mss = conn.mss();
            sent::push(&mut self.snd.scoreboard, at.max(self.snd.max), end, plan.fin, mss, now);
            self.snd.max = end;
        }
    }

    /// Updates `t_badrxtwin` for segments sent between the first timeout and the next round-trip
    /// sample.
    fn note_retransmit_time(&mut self, conn: &Connection, now: Instant) {
        if self.snd.rexmt.shift == 1 && self.snd.rexmt.timeout_stamp.is_some() {
            self.snd.rexmt.timeout_stamp = Some(conn.clock.timestamp(now));
        }
    }

    /// Sets the retransmission timer if it does not run and data is outstanding, else the persist
    /// timer if data is waiting.
    fn watch<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        plan: &BasePlan,
    ) {
        if plan.probes || timers.runs(Purpose::Retransmit) {
            return;
        }
        if self.snd.nxt != self.snd.una || (plan.hole && self.snd.nxt != self.snd.max) {
            if timers.runs(Purpose::Persist) {
                self.end_persist(timers);
            }
            self.snd.arm_retransmit(conn, timers, cx.now);
        } else if plan.len == 0 && self.snd.buffer.used() > 0 && !timers.runs(Purpose::Persist) {
            self.snd.rexmt.shift = 0;
            self.setpersist(conn, timers, cx.now);
        }
    }
}
