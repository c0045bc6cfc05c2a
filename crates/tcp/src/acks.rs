//! Processing of acknowledgments at the sender (RFC 9293 3.10.7.4, RFC 5681, RFC 6582; the ACK part
//! of tcp_do_segment of FreeBSD and tcp_ack of Linux).

mod without_sack;

use core::hint::cold_path;

use cc::{CongestionEvent, CongestionSignal as Sign, Controller, RecoveryEnd, WindowChange};
use machine::{Cx, Signal};
use packet::{Options, Segment};
use record::{Cause, Event, Purpose, Recorder, Shortcuts};
use units::{Bytes, Duration, Instant, Offset, unlikely};

use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::profile::{IdleRule, WindowUpdate};
use crate::received_ack::ReceivedAck;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::stacks::Stack;
use crate::timers::Timers;

impl TcpEndpoint {
    /// Processes an acceptable segment that acknowledges up to `ack`.
    pub(crate) fn on_ack<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        ack: Offset,
    ) {
        let fin = if unlikely(self.snd.buffer.fin) { Some(self.snd.data_end()) } else { None };
        self.acknowledge(cx, segment, (seq, ack));
        if let Some(fin) = fin
            && self.snd.una > fin
        {
            cold_path();
            self.on_fin_acked(cx);
        }
    }
}

impl SendSide {
    /// Processes an acknowledgment where tcp_output is called afterwards.
    #[inline(always)]
    pub(crate) fn detector_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
        ack: Offset,
    ) {
        let wnd = conn.scaled_window(segment);
        let bare = matches!(segment.options, Options::None) && !self.ecn.agreed();
        let calm = R::SHORTCUTS.has(Shortcuts::CALM_ACK);
        if !(calm && bare && self.fast_path_ack(conn, timers, cx, segment, ack, wnd)) {
            self.process_ack(conn, timers, cx, segment, (seq, ack), wnd);
        }
        self.update_window(conn, timers, seq, ack, wnd);
        self.update_pacing_rate(conn);
        if conn.cfg.profile.rules.sending.checks_after_ack {
            if unlikely(self.probe.persisting) {
                self.restart_window_timer(conn, timers, cx);
            }
            // tcp_data_snd_check pushes first and then checks for space (tcp_check_space).
            self.call.check_space = true;
            self.call_output();
        } else {
            self.wake_writer(conn, cx);
        }
    }

    /// Updates loss detection and processes an ECN echo.
    #[inline(never)]
    fn process_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        (seq, ack): (Offset, Offset),
        wnd: u64,
    ) {
        if ack >= self.una || self.takes_old_acks(conn) {
            let received = ReceivedAck::parse(conn, self.una, segment, (seq, ack), wnd);
            match self.stack {
                Stack::FreeBsd(_) | Stack::FreeBsdRack(_) => {}
                Stack::RackTlp(_) => self.rack_tlp_ack(conn, timers, cx, segment, &received),
                Stack::NewReno if ack > self.una => {
                    self.on_new_ack(conn, timers, cx, segment, &received);
                }
                Stack::NewReno if self.is_duplicate(timers, &received) => {
                    self.on_dup_ack(conn, cx, ack);
                }
                Stack::NewReno => {}
            }
        }
        if unlikely(self.ecn.echoed(segment.flags)) && !self.has_one_timer() {
            self.on_ecn_echo(conn, cx, ack);
        }
    }

    /// Wakes a blocked writer once the send buffer has space; it may grow first.
    #[inline(always)]
    pub(crate) fn wake_writer<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        if !self.buffer.starved() {
            return;
        }
        if self.buffer.expands() {
            self.expand_buffer(conn, cx);
        }
        self.signal_space();
    }

    /// Do the SACK blocks of an acknowledgment before `snd_una` count (`old_ack` of tcp_ack)?
    #[cold]
    fn takes_old_acks(&self, conn: &Connection) -> bool {
        let takes = conn.cfg.profile.rules.sending.sacks_of_old_acks;
        takes && matches!(self.stack, Stack::RackTlp(_))
    }

    /// Packets of one of these windows: one more than the degree of reordering at least (tcp_sndbuf_expand).
    pub(crate) fn window_buffered(&self, conn: &Connection) -> u64 {
        (self.cwnd() / conn.mss()).max(u64::from(self.reordering().metric()) + 1)
    }

    fn expand_buffer<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        // Is the window full of whole packets? The test needs no division.
        if (self.packets_in_flight() + 1) * conn.mss() > self.cwnd() {
            return;
        }
        let (windows, packets) = (self.windows_buffered(), self.window_buffered(conn));
        if let Some(size) = self.buffer.expand(windows, packets) {
            cx.emit(|| Event::SendBuffer { size: size as u32 });
        }
    }
}

impl Sender {
    /// Updates the send window unless the segment is older than the last that updated it.
    #[inline(always)]
    pub(crate) fn update_window(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        seq: Offset,
        ack: Offset,
        wnd: u64,
    ) {
        if !self.is_newer_window(conn, seq, ack, wnd) {
            return;
        }
        if wnd > self.peer.wnd || wnd == 0 {
            self.call_output();
        }
        if unlikely(self.probe.persisting) && wnd > 0 {
            // The window is open again; if it is still too small, the next pass resumes probing.
            self.probe.persisting = false;
            timers.stop(Purpose::Persist);
            self.call_output();
        }
        self.set_window(seq, ack, wnd);
    }

    /// May a segment update the send window: is it not older than the last that did (RFC 9293
    /// 3.10.7.4)? Of equally old ones FreeBSD takes the larger window (tcp_do_segment), Linux also a
    /// zero window (tcp_may_update_window).
    #[inline(always)]
    pub(crate) fn is_newer_window(
        &self,
        conn: &Connection,
        seq: Offset,
        ack: Offset,
        wnd: u64,
    ) -> bool {
        let as_old = match conn.cfg.profile.rules.sending.window_update {
            WindowUpdate::Larger => wnd > self.peer.wnd,
            WindowUpdate::LargerOrZero => wnd > self.peer.wnd || wnd == 0,
            WindowUpdate::Any => true,
        };
        self.peer.wl1 < seq
            || (self.peer.wl1 == seq && (self.peer.wl2 < ack || (self.peer.wl2 == ack && as_old)))
    }

    /// Sets the send window to that of a segment.
    #[inline(always)]
    pub(crate) fn set_window(&mut self, seq: Offset, ack: Offset, wnd: u64) {
        if unlikely(self.max == self.una) && wnd != self.peer.wnd {
            // tcp_ack_update_window, before the acknowledgment is processed.
            self.peer.opened_while_idle = self.data_end() > self.nxt;
        }
        self.peer.wnd = wnd;
        self.peer.max_wnd = self.peer.max_wnd.max(wnd);
        self.peer.wl1 = seq;
        self.peer.wl2 = ack;
    }

    /// Wakes a blocked writer if the send buffer has space.
    #[inline(always)]
    pub(crate) fn signal_space(&mut self) {
        let unsent = self.data_end().since(self.max).get();
        if self.buffer.writable(self.max, unsent) {
            self.call.signal(Signal::Writable);
        }
    }

    /// Advances `snd_una` and removes the acknowledged bytes from the send buffer.
    #[inline(always)]
    pub(crate) fn advance<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        wnd: u64,
        nsegs: u32,
        change: WindowChange,
    ) {
        let data_end = self.data_end();
        let old_una = self.una;
        let bytes = ack - old_una;
        self.una = ack;
        self.buffer.acknowledge(ack.min(data_end) - old_una.min(data_end), ack);
        self.nxt = self.nxt.max(ack);
        self.peer.wnd = wnd;
        cx.emit_with_state(&self.with(conn), || {
            let una = conn.payload_offset(ack);
            Event::Acked { una, bytes: bytes as u32, nsegs: nsegs as u16 }
        });
        self.note(conn, cx, change, Cause::SlowStart);
    }

    /// Responds to an ECN echo: reduces the window as for a loss, once per window of data (RFC 3168
    /// section 6.1.2).
    pub(crate) fn on_ecn_echo<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
    ) {
        if self.rexmt.cwr_end.is_some() || self.cc.in_recovery() || ack < self.cc.recovery_point() {
            return;
        }
        let congested = CongestionEvent { th_ack: ack, ..self.congested(conn, cx.now, Sign::Ecn) };
        let change = self.cc.on_congested(&congested);
        if change == WindowChange::RecoveryBegan {
            self.ecn.on_reduced();
            self.rexmt.cwr_end = Some(self.max);
            let ssthresh = self.cc.control().ssthresh.map_or(conn.mss(), Bytes::get);
            self.cc.override_window(Bytes(ssthresh));
        }
        self.note(conn, cx, change, Cause::Ecn);
    }

    /// Ends the CWR state: data sent after the reduction, and with it our CWR, is acknowledged.
    /// `keeps_window`: nothing was lost, and the window stays as the echo left it.
    pub(crate) fn end_cwr<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        keeps_window: bool,
    ) {
        self.rexmt.cwr_end = None;
        let window = self.cc.control().window;
        let change = self.cc.on_recovered(&RecoveryEnd { th_ack: ack, pipe: self.max - ack });
        if keeps_window {
            self.cc.override_window(window);
        }
        self.note(conn, cx, change, Cause::Recovered);
    }

    /// Is a fast recovery in progress (`IN_FASTRECOVERY` of FreeBSD)? Linux's controllers are in
    /// their reduction during the CWR state too.
    #[inline]
    pub(crate) fn in_fast_recovery(&self) -> bool {
        self.cc.in_recovery() && self.rexmt.cwr_end.is_none()
    }

    /// Leaves the CWR state when a fast recovery begins: the recovery has a recovery point of its
    /// own, at which both end (cc_cong_signal of FreeBSD sets `snd_recover` anew, EXIT_RECOVERY
    /// ends both).
    pub(crate) const fn abandon_cwr(&mut self) {
        self.rexmt.cwr_end = None;
    }

    /// Returns how long the flow has been idle, the timeout `rto` in the same unit, and whether
    /// that is long: nothing received or nothing sent for a timeout (tcp_output of FreeBSD), no
    /// data sent for more than a timeout (tcp_slow_start_after_idle_check of Linux, in ticks; RFC
    /// 5681 section 4.1).
    pub(crate) fn idle_for(
        &self,
        conn: &Connection,
        now: Instant,
        rto: Duration,
    ) -> (Duration, Duration, bool) {
        match conn.cfg.profile.idle {
            IdleRule::ReceivedOrSent => {
                let since = self.last.received.min(self.last.sent);
                let ticks = conn.clock.tick(now) - conn.clock.tick(since);
                (now.since(since), rto, ticks >= conn.clock.ticks(rto))
            }
            IdleRule::SentTicks => {
                let ticks = conn.clock.tick(now) - conn.clock.tick(self.last.sent);
                let span = |ticks: u64| Duration::from_nanos(conn.clock.ticks_as_nanos(ticks));
                let (idle, rto) = (span(ticks), span(conn.clock.ticks(rto)));
                (idle, rto, idle > rto)
            }
            IdleRule::Sent => {
                let idle = now.since(self.last.sent);
                (idle, rto, idle > rto)
            }
        }
    }

    pub(crate) fn congested(
        &self,
        conn: &Connection,
        now: Instant,
        signal: Sign,
    ) -> CongestionEvent {
        CongestionEvent {
            now,
            ticks: conn.clock.tick(now),
            signal,
            th_ack: self.una,
            snd_max: self.max,
            pipe: self.pipe(),
            snd_wnd: self.peer.wnd,
            lost: self.scoreboard.lost_ever(),
        }
    }

    /// Size of Linux's send buffer in windows (tcp_sndbuf_expand).
    pub(crate) fn windows_buffered(&self) -> u64 {
        self.cc.windows_buffered().unwrap_or(2)
    }
}
