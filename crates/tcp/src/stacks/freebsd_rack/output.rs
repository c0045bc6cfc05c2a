//! rack_output: its beginning, with an expired timer or a pause; the plan of the next segment; its
//! end, which makes the entry on the wheel.

use machine::Cx;
use record::{Cause, Event, Recorder, SendLimit, SentKind};
use recovery::hpts_rack::HptsTimer;
use units::{Duration, Instant, unlikely};

use super::FreeBsdRack;
use super::hpts_timer::purpose_of;
use crate::connection::Connection;
use crate::output::bytes::ByteLimits;
use crate::receive_side::ReceiveSide;
use crate::segment_plan::SegmentPlan;
use crate::timers::Timers;

/// How a call of rack_output begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum RackCallStart {
    /// Segments may be sent.
    Output,
    /// The same after a timeout: the next segment acknowledges, whether or not an ACK was due.
    OutputAck,
    /// Nothing is sent now.
    Ended(SendLimit),
    /// The peer does not answer: the connection ends.
    GiveUp,
}

/// What a pass of rack_output does.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub(crate) enum RackPass {
    /// Sends this segment.
    Send(SegmentPlan),
    /// Has nothing to send: an ACK may be due.
    Nothing(SendLimit),
    /// Ends before it looks for anything to send.
    Ended(SendLimit),
    /// The peer does not answer: the connection ends.
    GiveUp,
}

impl FreeBsdRack<'_> {
    /// One pass: the next segment, or why there is none. `acks` is set if it acknowledges, whether
    /// or not an ACK was due.
    pub(crate) fn pass<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
        acks: &mut bool,
    ) -> RackPass {
        if let Some(probe) = self.snd.probe.segment.take() {
            return RackPass::Send(self.snd.plan_probe(conn, probe));
        }
        if core::mem::take(&mut self.snd.call.first_pass) {
            match self.begin_output(conn, timers, cx) {
                RackCallStart::Output => {}
                RackCallStart::OutputAck => *acks = true,
                RackCallStart::Ended(why) => {
                    self.end_pass(conn, cx, why);
                    self.end_hystart_round(conn, cx);
                    return RackPass::Ended(why);
                }
                RackCallStart::GiveUp => {
                    self.sync_wheel(timers);
                    return RackPass::GiveUp;
                }
            }
            self.snd.begin_output(conn, cx);
        }
        match self.plan(conn, rcv, cx) {
            Ok((plan, left)) => {
                self.snd.call.due = true;
                self.state.call.left = left;
                RackPass::Send(plan)
            }
            Err(why) => {
                self.end_pass(conn, cx, why);
                let shut = self.snd.peer.wnd == 0 && self.snd.buffer.used() > 0;
                if unlikely(shut || matches!(why, SendLimit::PeerWindow | SendLimit::SmallSegment))
                {
                    self.watch_window(conn, timers, cx);
                }
                self.just_return(conn, timers, cx.now, why);
                self.end_hystart_round(conn, cx);
                RackPass::Nothing(why)
            }
        }
    }

    /// Ends a call because nothing can be sent.
    fn end_pass<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>, why: SendLimit) {
        self.snd.end_output(conn, cx, why);
        if core::mem::take(&mut self.snd.call.check_space) {
            self.wake_writer();
        }
    }

    /// The beginning of rack_output: handles an expired timer and the pause that may defer the
    /// call.
    fn begin_output<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> RackCallStart {
        let idle = !self.outstanding();
        let mut start = RackCallStart::Output;
        let by_segment = core::mem::take(&mut self.state.call.by_segment);
        match self.state.hpts.begin(cx.now, idle) {
            HptsTimer::Nothing => {}
            HptsTimer::TooEarly => {
                self.sync_wheel(timers);
                return RackCallStart::Ended(SendLimit::Pacing);
            }
            HptsTimer::Timer(timer) => {
                cx.emit(|| Event::Timer(purpose_of(Some(timer))));
                start = self.on_timeout(conn, timers, cx, timer);
                match start {
                    RackCallStart::Output | RackCallStart::OutputAck => {}
                    RackCallStart::GiveUp => return start,
                    RackCallStart::Ended(_) => {
                        self.sync_wheel(timers);
                        return start;
                    }
                }
            }
        }
        // No pause follows a timeout.
        if !self.state.hpts.may_output(cx.now) {
            let stopped = self.state.hpts.timer().is_none() && !idle;
            if !(by_segment && stopped) {
                self.sync_wheel(timers);
                return RackCallStart::Ended(SendLimit::Pacing);
            }
            if self.state.hpts.reenter(cx.now) {
                self.start_hpts_timer(conn, timers, cx.now, Duration::ZERO);
                return RackCallStart::Ended(SendLimit::Pacing);
            }
        }
        self.state.call.sent = 0;
        start
    }

    /// Plans a pass: a lost segment or a probe, else new data, else a FIN; with it the bytes that
    /// the windows allow after it.
    fn plan<R: Recorder>(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
    ) -> Result<(SegmentPlan, u64), SendLimit> {
        if self.snd.probe.persisting {
            return Err(SendLimit::PeerWindow);
        }
        let window = self.snd.cwnd();
        self.state.burst.begin(window);
        if let Some(plan) = self.plan_retransmission(conn, cx) {
            return Ok((plan, 0));
        }
        if self.snd.nxt < self.snd.max {
            // After a closed window or a smaller path MTU: from snd_nxt on.
            let window = self.snd.cwnd();
            let limits = ByteLimits { burst: conn.largest_burst(), window, room: None };
            return self.snd.plan_bytes(conn, rcv, cx, limits).map(|plan| (plan, 0));
        }
        if self.snd.buffer.used() == 0 {
            return self.plan_fin(conn);
        }
        self.plan_data(conn, rcv, cx)
    }

    /// Plans new data: the bytes that the windows allow, or the PRR credit in a recovery, but no
    /// partial segment unless it is the last or nothing is outstanding.
    fn plan_data<R: Recorder>(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        cx: &mut Cx<'_, R>,
    ) -> Result<(SegmentPlan, u64), SendLimit> {
        let mss = conn.mss();
        let offset = self.snd.nxt - self.snd.una;
        let available = self.snd.buffer.used();
        let unsent = available.saturating_sub(offset);
        let in_recovery = self.snd.in_fast_recovery();
        let cwnd = self.snd.cwnd();
        let wnd = self.snd.peer.wnd;
        let fast = core::mem::take(&mut self.state.call.fast);
        let probe = core::mem::take(&mut self.state.call.probe_new);
        let is_probe = self.state.call.is_probe;
        let (credit, share) = (self.state.prr.prr_sndcnt, self.state.settings.send_buffer_share);
        let most = self.state.burst.most(mss);
        let sums = self.snd.scoreboard.sums();
        let flight = sums.all.bytes - sums.sacked.bytes;
        let room = wnd.saturating_sub(offset);
        let mut len = if fast > 0 && !is_probe {
            fast.min(unsent).min(room)
        } else if in_recovery {
            let len = unsent.min(room).min(credit);
            // PRR may send more than a segment; a partial one only if it is the last.
            if len < mss && len < unsent { 0 } else { len }
        } else if probe > 0 {
            probe.min(unsent).min(room)
        } else {
            cwnd.min(wnd).saturating_sub(flight).min(room).min(unsent)
        };
        // No partial segment, unless little is in flight.
        let least = mss.min(self.snd.peer.max_wnd / 2);
        let much = flight > 2 * mss;
        let partial = len < mss && (wnd < least || (cwnd >= 4 * mss && much));
        let shut = len < most && room < least && much;
        if !is_probe && len < unsent && (partial || shut) {
            len = 0;
        }
        let sendwin = cwnd.min(wnd);
        if let Some(size) = self.snd.buffer.autoscale_by(share, wnd, sendwin, unsent) {
            cx.emit(|| Event::SendBuffer { size: size as u32 });
        }
        if len == 0 {
            return Err(self.snd.waiting_reason(unsent, cwnd));
        }
        let goes = len >= mss
            || ((self.snd.call.idle || conn.cfg.nodelay) && len == unsent)
            || offset == 0
            || (self.snd.peer.max_wnd > 0 && len >= self.snd.peer.max_wnd / 2)
            || (room < mss && offset < 2 * mss);
        if !goes {
            let last = len == unsent;
            return Err(if last {
                SendLimit::SmallSegment
            } else {
                self.snd.waiting_reason(unsent, cwnd)
            });
        }
        Ok(self.cut_burst(conn, rcv, len, unsent, most, fast > 0))
    }

    /// Plans a retransmission: by a timer, of a lost segment, or as a probe.
    fn plan_retransmission<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
    ) -> Option<SegmentPlan> {
        let timed_out = self.state.timeout.at == Some(cx.now);
        let lost = if let Some(place) = self.state.call.retransmit.take() {
            self.state.call.probe = None;
            let cause = if timed_out { Cause::Timeout } else { Cause::FastRetransmit };
            Some((place, cause))
        } else if let Some(lost) = self.overdue(cx.now) {
            let of_timeout = self.is_of_timeout(&lost);
            let was_recovering = self.state.timeout.in_recovery;
            if !self.snd.in_fast_recovery() && !of_timeout && !was_recovering {
                self.cong_signal(conn, cx);
            }
            let cause = if of_timeout { Cause::Timeout } else { Cause::FastRetransmit };
            Some((lost.start(), cause))
        } else {
            self.state.call.probe.take().map(|place| (place, Cause::LossProbe))
        };
        let (place, cause) = lost?;
        let place = place.max(self.snd.una);
        let sent_segment = *self.snd.scoreboard.get(place)?;
        let data_end = self.snd.data_end();
        let end = sent_segment.end().min(data_end).min(place + conn.mss());
        let len = end.since(place).get();
        let fin = len == 0 && sent_segment.end() > data_end;
        let kind = SentKind::Retransmission(cause);
        let push = len > 0 && end == data_end;
        Some(SegmentPlan { at: place, len, fin, push, kind, more: false })
    }
}

impl FreeBsdRack<'_> {
    /// Cuts a burst of at most `most` bytes out of `len`, in whole segments unless it is the last or
    /// its mbufs are too many for the device; only the burst limit of the interface lets another
    /// follow in the call. What is left of an earlier burst is not rounded (rack_fast_output).
    fn cut_burst(
        &mut self,
        conn: &Connection,
        rcv: &ReceiveSide,
        len: u64,
        unsent: u64,
        most: u64,
        fast: bool,
    ) -> (SegmentPlan, u64) {
        let mss = conn.mss();
        let mut burst = len;
        let mut more = false;
        if len > mss {
            if conn.cfg.tso && rcv.reassembly.is_empty() {
                let headers = u64::from(conn.cfg.ip.header_len()) + 20 + (conn.maxseg() - mss);
                let largest = conn.largest_burst().saturating_sub(headers).max(mss);
                more = burst > largest;
                burst = burst.min(largest);
                if burst < unsent && !fast {
                    burst -= burst % mss;
                }
                burst = burst.min(most);
                let offset = self.snd.nxt - self.snd.una;
                burst = self.snd.buffer.one_packet(offset, burst);
            } else {
                burst = mss;
                more = true;
            }
        }
        let at = self.snd.nxt;
        let push = burst == unsent;
        (SegmentPlan { at, len: burst, fin: false, push, kind: SentKind::New, more }, len - burst)
    }

    /// A FIN is sent once all data is acknowledged (rack_output).
    fn plan_fin(&mut self, conn: &Connection) -> Result<(SegmentPlan, u64), SendLimit> {
        let unsent = self.snd.nxt == self.snd.una && self.snd.max == self.snd.una;
        if conn.fin_wanted() && unsent && self.snd.nxt == self.snd.data_end() {
            let at = self.snd.nxt;
            let kind = SentKind::Control;
            return Ok((SegmentPlan { at, len: 0, fin: true, push: false, kind, more: false }, 0));
        }
        Err(if self.snd.buffer.fin { SendLimit::Done } else { SendLimit::Application })
    }

    /// After a segment: if the call ends with it, starts the pause and the timer. A retransmission
    /// is followed by the shortest pause.
    pub(super) fn end_segment(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        kind: SentKind,
        more: bool,
    ) {
        let (mss, left) = (conn.mss(), core::mem::take(&mut self.state.call.left));
        let retransmitted = matches!(kind, SentKind::Retransmission(_));
        let srtt = self.snd.rtt.estimator.srtt();
        let sent = self.state.call.sent;
        let pause = if retransmitted {
            self.state.rack.min_timer()
        } else {
            let rtt = self.state.least.unwrap_or(srtt.map_or(1, Duration::as_micros));
            let goes_on = more && sent < self.state.burst.most(mss);
            if goes_on {
                self.state.call.fast = if left >= mss { left } else { 0 };
                return;
            }
            self.state.burst.pause(sent, rtt, mss)
        };
        self.state.call.is_probe = false;
        self.state.call.fast =
            if left >= mss && !retransmitted && !pause.is_zero() { left } else { 0 };
        self.snd.call.due = false;
        self.start_hpts_timer(conn, timers, now, pause);
    }

    /// Ends a call that finds nothing more to send (`just_return`).
    fn just_return(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        why: SendLimit,
    ) {
        let (mss, max) = (conn.mss(), self.snd.max);
        let outstanding = self.snd.max - self.snd.una;
        let window_limited =
            outstanding + mss.max(self.snd.peer.max_wnd / 2).min(mss) >= self.snd.peer.wnd;
        let data_limited = outstanding >= self.snd.buffer.used();
        let in_recovery = self.snd.in_fast_recovery();
        let srtt = self.snd.rtt.estimator.srtt();
        self.state.call.is_probe = false;
        let sent = core::mem::take(&mut self.state.call.sent);
        let pause = if sent > 0 {
            let rtt = self.state.least.unwrap_or(srtt.map_or(1, Duration::as_micros));
            self.state.burst.pause(sent, rtt, mss)
        } else {
            self.state.hpts.forget_lag();
            if in_recovery && (window_limited || data_limited) {
                self.state.prr.prr_sndcnt = 0;
            }
            let app_limited = !window_limited && (data_limited || why == SendLimit::SmallSegment);
            self.state.goodput.on_just_returned(app_limited, max, mss);
            Duration::ZERO
        };
        self.start_hpts_timer(conn, timers, now, pause);
    }
}

impl Connection {
    /// The initial window (`rc_init_window`).
    pub(super) fn initial_window(&self) -> u64 {
        let mss = self.mss();
        (10 * mss).min((2 * mss).max(14_600))
    }
}
