//! Processing of acknowledgments at the sender (RFC 9293 3.10.7.4, RFC 5681, RFC 6582; the ACK part
//! of tcp_do_segment of FreeBSD and tcp_ack of Linux), and of the sender's timers.

mod without_sack;

use core::hint::cold_path;

use cc::{
    AckSample, CongestionEvent, CongestionSignal as Sign, Controller, RateController, RecoveryEnd,
    SmoothedRtt, WindowChange, WindowController,
};
use machine::Cx;
use packet::{Options, Segment};
use record::{Cause, Event, Purpose, Recorder, Shortcuts};
use recovery::sendmap::DeliveredRun;
use recovery::{RttEstimator, RttInput, RttMeasurement};
use units::ratio::scaled;
use units::{Bytes, Duration, Instant, Offset, unlikely};

use crate::connection::Connection;
use crate::endpoint::{TcpEndpoint, TcpState};
use crate::loss::LossDetector;
use crate::output::call::PacketBatch;
use crate::profile::{IdleRule, WindowUpdate};
use crate::sent::DeliveredPackets;
use crate::state::SendSide;
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
        if matches!(self.snd.loss_detector, LossDetector::Sack(_)) {
            self.base_ack(cx, segment, seq, ack);
        } else {
            let overtaken = ack < self.snd.una;
            self.snd.detector_ack(&self.conn, &mut self.timers, cx, segment, seq, ack);
            if unlikely(overtaken) && self.snd.is_rack() {
                self.detect_reordered_ack(cx.now);
            }
        }
        if let Some(fin) = fin
            && self.snd.una > fin
        {
            cold_path();
            self.on_fin_acked(cx);
        }
    }

    /// Handles the expiry of a timer.
    pub(crate) fn on_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, purpose: Purpose) {
        self.snd.call.batch = PacketBatch::NONE;
        if self.snd.on_wheel(purpose) {
            return;
        }
        cx.emit(|| Event::Timer(purpose));
        match purpose {
            Purpose::DelayedAck => {
                if self.rcv.compressed.waiting > 0 {
                    self.send_compressed_ack(cx);
                } else {
                    self.rcv.policy.on_timer(self.conn.clock.ticks(self.snd.rtt.estimator.rto()));
                    self.ack_at_once();
                }
            }
            Purpose::Retransmit => self.on_retransmit_timer(cx),
            Purpose::Reorder => self.snd.on_reorder_timer(&self.conn, &mut self.timers, cx),
            Purpose::LossProbe => self.snd.on_probe_timer(&self.conn, &mut self.timers, cx),
            Purpose::Persist => self.on_window_timer(cx),
            Purpose::Keepalive => self.on_keepalive_timer(cx),
            Purpose::TimeWait => self.conn.state = TcpState::Closed,
            Purpose::Pacing => {
                self.snd.release_retransmissions();
                self.snd.call_output();
            }
        }
    }

    /// tcp_timer_rexmt of FreeBSD; tcp_retransmit_timer of Linux.
    fn on_retransmit_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        // Retransmissions of the head as window probes do not count as timeouts.
        let probes = self.snd.head_probes(&self.conn);
        self.snd.rexmt.shift += u32::from(!probes);
        let hopeless = if probes {
            self.snd.head_unanswered(&self.conn, cx.now)
        } else {
            self.snd.retransmits_timed_out(&self.conn, cx.now)
        };
        if hopeless {
            self.give_up(cx);
            return;
        }
        self.snd.totals.timeouts += 1;
        if !self.snd.syn_times_out_linearly(&self.conn) {
            self.snd.rtt.estimator.on_timeout(self.snd.rexmt.shift);
        }
        if self.conn.state == TcpState::SynSent
            && self.conn.cfg.profile.rules.opening.timeout_ends_ecn
        {
            self.snd.ecn.on_syn_timeout();
        }
        self.snd.rtt.timing = None;
        self.snd.rexmt.head = probes.then_some(Cause::Timeout);
        self.snd.rexmt.dup_acks = 0;
        if !matches!(self.snd.loss_detector, LossDetector::Sack(_)) {
            self.snd.end_limited_transmit();
        }
        if matches!(self.conn.state, TcpState::SynSent | TcpState::SynReceived) {
            if self.is_fast_open_child() {
                self.snd.rare.fast_open.syn_ack_due = true;
            }
            self.snd.arm_after_timeout(&self.conn, &mut self.timers, cx.now);
            self.snd.call_output();
            return;
        }
        let rules = self.conn.cfg.profile.rules.sending;
        let stamps = self.conn.negotiated.timestamps && rules.undoes_timeout_by_echo;
        if self.snd.rexmt.shift == 1 && stamps {
            self.snd.rexmt.timeout_stamp = Some(self.conn.clock.timestamp(cx.now));
        }
        if matches!(self.snd.loss_detector, LossDetector::Sack(_)) {
            // tcp_timer_rexmt updates the scoreboard before it signals congestion, and forces a
            // segment.
            if self.snd.rexmt.shift > 1 {
                self.snd.rexmt.timeout_stamp = None;
            }
            self.snd.sack_timeout();
            self.rcv.ack_now = true;
        }
        // tcp_enter_loss marks losses first, and sets the window to the packets then in flight plus
        // one.
        let timed = matches!(self.snd.loss_detector, LossDetector::RackTlp(_));
        let marks_first = timed && rules.timeout_marks_first;
        if marks_first {
            self.snd.rack_tlp_timeout(&self.conn, &mut self.timers, cx.now);
        }
        let signal = Sign::Timeout { shift: self.snd.rexmt.shift.max(1) };
        let change = self.snd.cc.on_congested(&self.snd.congested(&self.conn, cx.now, signal));
        if marks_first {
            self.snd.cc.set_window(Bytes((self.snd.packets_in_flight() + 1) * self.conn.mss()));
        }
        self.snd.note(&self.conn, cx, change, Cause::Timeout);
        self.snd.rexmt.cwr_end = None;
        match self.snd.loss_detector {
            LossDetector::RackTlp(_) if marks_first => {}
            LossDetector::RackTlp(_) => {
                self.snd.rack_tlp_timeout(&self.conn, &mut self.timers, cx.now);
            }
            LossDetector::Sack(_) | LossDetector::NewReno | LossDetector::FreeBsdRack(_) => {
                self.snd.nxt = self.snd.una;
                self.snd.rexmt.cause = Cause::Timeout;
            }
        }
        self.snd.arm_after_timeout(&self.conn, &mut self.timers, cx.now);
        self.snd.call_output();
    }
}

impl SendSide {
    /// Processes an acknowledgment where tcp_output is called afterwards.
    #[inline(always)]
    fn detector_ack<R: Recorder>(
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
            let received = self.parse_ack(conn, segment, (seq, ack), wnd);
            match self.loss_detector {
                LossDetector::Sack(_) => {}
                LossDetector::RackTlp(_) => self.rack_tlp_ack(conn, timers, cx, segment, &received),
                LossDetector::FreeBsdRack(_) => self.rack_ack(conn, timers, cx, segment, &received),
                LossDetector::NewReno if ack > self.una => {
                    self.on_new_ack(conn, timers, cx, segment, &received);
                }
                LossDetector::NewReno if self.is_duplicate(timers, &received) => {
                    self.on_dup_ack(conn, cx, ack);
                }
                LossDetector::NewReno => {}
            }
        }
        if unlikely(self.ecn.echoed(segment.flags)) && !self.has_one_timer() {
            self.on_ecn_echo(conn, cx, ack);
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

    /// Wakes a blocked writer once the send buffer has space.
    #[inline(always)]
    pub(crate) fn wake_writer<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        if !self.buffer.starved() {
            return;
        }
        if self.buffer.expands() {
            self.expand_buffer(conn, cx);
        }
        let unsent = self.data_end().since(self.max).get();
        if self.buffer.writable(self.max, unsent) {
            self.call.wakes_writer = true;
        }
    }

    /// Do the SACK blocks of an acknowledgment before `snd_una` count? They do in Linux (`old_ack` of
    /// tcp_ack) and in FreeBSD's RACK stack.
    #[cold]
    fn takes_old_acks(&self, conn: &Connection) -> bool {
        match conn.cfg.profile.rules.sending.sacks_of_old_acks {
            true => matches!(self.loss_detector, LossDetector::RackTlp(_)),
            false => self.is_rack(),
        }
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
    pub(crate) fn end_cwr<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
    ) {
        self.rexmt.cwr_end = None;
        let window = self.cc.control().window;
        let change = self.cc.on_recovered(&RecoveryEnd { th_ack: ack, pipe: self.max - ack });
        if !self.has_one_timer() {
            // Nothing was lost: the window stays as the echo left it.
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

    /// Bytes in flight as the stack estimates them (tcp_compute_pipe of FreeBSD, RFC 6675).
    pub(crate) fn pipe(&self) -> u64 {
        match &self.loss_detector {
            LossDetector::Sack(_) => self.sack_pipe(),
            LossDetector::RackTlp(_) | LossDetector::FreeBsdRack(_) => {
                self.scoreboard.sums().pipe()
            }
            LossDetector::NewReno => self.max - self.una,
        }
    }

    /// The smoothed round trip for the controller.
    #[inline]
    pub(crate) fn smoothed(&self, conn: &Connection) -> SmoothedRtt {
        if self.cc.uses_srtt() { self.smoothed_now(conn) } else { SmoothedRtt::default() }
    }

    #[inline(never)]
    fn smoothed_now(&self, conn: &Connection) -> SmoothedRtt {
        let samples = self.rtt.samples;
        if let RttEstimator::FreeBsd(rtt) = &self.rtt.estimator {
            let micros = u32::try_from(rtt.srtt_micros()).unwrap_or(u32::MAX);
            return SmoothedRtt { ticks: rtt.srtt_ticks(), micros, samples };
        }
        let srtt = self.rtt.estimator.srtt().unwrap_or(Duration::ZERO);
        let hz = u64::from(conn.cfg.profile.hz);
        let ticks = scaled(srtt.as_nanos(), hz, Duration::from_secs(1).as_nanos());
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        SmoothedRtt { ticks: narrow(ticks), micros: narrow(srtt.as_micros()), samples }
    }

    /// Updates the send window unless the segment is older than the last that updated it (RFC 9293
    /// 3.10.7.4). Of equally old ones FreeBSD takes the larger window (tcp_do_segment), Linux also
    /// a zero window (tcp_may_update_window).
    #[inline(always)]
    pub(crate) fn update_window(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        seq: Offset,
        ack: Offset,
        wnd: u64,
    ) {
        let as_old = match conn.cfg.profile.rules.sending.window_update {
            WindowUpdate::Larger => wnd > self.peer.wnd,
            WindowUpdate::LargerOrZero => wnd > self.peer.wnd || wnd == 0,
            WindowUpdate::Any => true,
        };
        let newer = self.peer.wl1 < seq
            || (self.peer.wl1 == seq && (self.peer.wl2 < ack || (self.peer.wl2 == ack && as_old)));
        if !newer {
            return;
        }
        if wnd > self.peer.wnd || wnd == 0 {
            self.call_output();
        }
        if unlikely(self.probe.persisting) && self.is_rack() {
            if !self.is_shut_for_rack(conn, wnd) {
                self.exit_rack_persist(timers);
            }
        } else if unlikely(self.probe.persisting) && wnd > 0 {
            // The window is open again; if it is still too small, the next pass resumes probing.
            self.probe.persisting = false;
            timers.stop(Purpose::Persist);
            self.call_output();
        }
        if unlikely(self.max == self.una) && wnd != self.peer.wnd {
            // tcp_ack_update_window, before the acknowledgment is processed.
            self.peer.opened_while_idle = self.data_end() > self.nxt;
        }
        self.peer.wnd = wnd;
        self.peer.max_wnd = self.peer.max_wnd.max(wnd);
        self.peer.wl1 = seq;
        self.peer.wl2 = ack;
    }

    /// Size of Linux's send buffer in windows (tcp_sndbuf_expand).
    pub(crate) fn windows_buffered(&self) -> u64 {
        self.cc.rate_based().map_or(2, RateController::windows_buffered)
    }

    #[inline(never)]
    fn expand_buffer<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        // Is the window full of whole packets? The test needs no division.
        if (self.packets_in_flight() + 1) * conn.mss() > self.cwnd() {
            return;
        }
        let (windows, packets) = (self.windows_buffered(), self.cwnd() / conn.mss());
        if let Some(size) = self.buffer.expand(windows, packets) {
            cx.emit(|| Event::SendBuffer { size: size as u32 });
        }
    }

    /// Takes a round-trip sample. FreeBSD uses every echoed timestamp, else the byte being timed;
    /// Linux the time since the oldest segment acknowledged was sent, and an echo only if that was
    /// retransmitted (tcp_ack_update_rtt).
    pub(crate) fn take_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
        delivered: &DeliveredPackets,
    ) {
        let echo =
            segment.timestamps.filter(|stamps| conn.negotiated.timestamps && stamps.ecr != 0);
        let timed = self.rtt.timing.filter(|&(at, _)| ack > at);
        if timed.is_some() {
            self.rtt.timing = None;
        }
        let by_echo = || {
            let stamps = echo?;
            let ms = conn.clock.timestamp(cx.now).wrapping_sub(stamps.ecr);
            Some(RttMeasurement::Echo { ms })
        };
        // The kernel's ticks have a phase of their own.
        let phase = conn.clock.phase();
        let since =
            |sent: Instant| RttMeasurement::Timed { sent: sent + phase, acked: cx.now + phase };
        let timed = timed.map(|(_, sent)| sent);
        let sample = match self.rtt.estimator {
            RttEstimator::FreeBsd(_) | RttEstimator::Rfc(_) => by_echo().or(timed.map(since)),
            RttEstimator::Rack(_) => delivered.newest_sent().or(timed).map(since),
            // No sample of a retransmission: only the SYN is timed otherwise.
            RttEstimator::Linux(_) => {
                let syn = timed.filter(|_| delivered.packets == 0);
                delivered.oldest_sent().or(syn).map(since).or_else(by_echo)
            }
        };
        let Some(sample) = sample else { return };
        let rtt = self.rtt.estimator.on_sample(&RttInput {
            sample,
            shift: self.rexmt.shift,
            snd_una: ack,
            snd_nxt: self.nxt,
        });
        // Linux takes the minimum from the newest segment acknowledged (ca_rtt).
        let newest = match (&self.rtt.estimator, delivered.newest_sent()) {
            (RttEstimator::Linux(_), Some(sent)) => cx.now.since(sent).min(rtt),
            _ => rtt,
        };
        self.note_rtt(conn, cx, ack, rtt, newest);
    }

    /// [`SendSide::take_rtt`] on the fast path, for a batch of packets.
    #[inline(always)]
    pub(crate) fn take_batch_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        ack: Offset,
        row: &DeliveredRun,
    ) {
        let RttEstimator::Linux(linux) = &mut self.rtt.estimator else {
            return self.take_rtt(conn, cx, segment, ack, &DeliveredPackets::row(row));
        };
        let since = |sent| cx.now.since(sent);
        let rtt = linux.on_round_trip(since(row.first.sent_at), ack, self.nxt);
        if self.rtt.timing.is_some_and(|(at, _)| ack > at) {
            self.rtt.timing = None;
        }
        self.note_rtt(conn, cx, ack, rtt, since(row.last.sent_at).min(rtt));
    }

    /// Records a round-trip sample; `newest` is that of the newest segment acknowledged.
    #[inline(always)]
    pub(crate) fn note_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        rtt: Duration,
        newest: Duration,
    ) {
        self.rtt.sample = Some(rtt);
        self.rtt.samples = self.rtt.samples.saturating_add(1);
        let least = self.totals.min_rtt.map_or(newest, |least| least.min(newest));
        self.totals.min_rtt = Some(least);
        self.rate_sample_rtt(newest);
        cx.emit(|| Event::RttSample { rtt });
        if !conn.cfg.profile.rules.sending.reports_round_trips {
            return;
        }
        if self.cc.uses_ack_samples() {
            self.report_ack_sample(conn, cx, ack, newest);
        } else {
            self.note(conn, cx, WindowChange::None, Cause::SlowStartExit);
        }
    }

    #[inline(never)]
    fn report_ack_sample<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        rtt: Duration,
    ) {
        let pacing_rate = if self.cc.in_slow_start() { self.pacing_rate() } else { 0 };
        let change = self.cc.on_ack_sample(&AckSample {
            now: cx.now,
            ticks: conn.clock.tick(cx.now),
            rtt,
            una: ack,
            snd_nxt: self.nxt,
            pacing_rate,
        });
        self.note(conn, cx, change, Cause::SlowStartExit);
    }
}
