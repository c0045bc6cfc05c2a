//! Processing of an acknowledgment, in the order of rack_do_segment: deliveries and losses
//! (rack_log_ack), the end of a recovery (rack_post_recovery), the window (rack_ack_received), the
//! smoothed round trip (tcp_rack_xmit_timer_commit), and the output call that follows.

use core::hint::cold_path;

use cc::{CongestionSignal as Sign, Controller, RecoveryEnd, WindowController};
use machine::Cx;
use packet::Segment;
use record::{Cause, Event, Recorder};
use recovery::hpts_rack::RackTimer;
use recovery::rack_freebsd::micros;
use recovery::sendmap::SentSegment;
use recovery::{RttEstimator, RttInput, RttMeasurement};
use units::{Bytes, Duration, Instant, Offset, unlikely};

use super::delivered::{AckContext, AckEffects};
use super::steps::RackPrrInput;
use crate::connection::Connection;
use crate::endpoint::TcpSide;
use crate::loss::{DUP_THRESHOLD, LossDetector};
use crate::received_ack::ReceivedAck;
use crate::sender::Sender;
use crate::state::SendSide;
use crate::timers::Timers;

/// Result of rack_log_ack.
#[derive(Debug, Clone, Copy, Default)]
struct LogAckResult {
    /// Bytes newly acknowledged or SACKed; bytes SACKed before count again when acknowledged
    /// (`changed`).
    bytes: u64,
    shown: AckEffects,
}

/// The round trip of a SYN, in microseconds: by its transmission time and by its timestamp echo.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SynRtt {
    timed: Option<u64>,
    echoed: Option<u64>,
}

impl SendSide {
    /// Treats an acknowledgment that was overtaken by another as evidence of reordering
    /// (rack_process_ack).
    #[cold]
    pub(crate) fn detect_reordered_ack(&mut self, now: Instant) {
        if let Some(loss) = self.loss_detector.freebsd_rack() {
            loss.rack.on_reordering(now);
        }
    }

    /// Processes an acknowledgment.
    pub(crate) fn rack_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
    ) {
        self.answer_rack_probe();
        let (una, ack) = (self.una, received.th_ack);
        let advances = ack > una;
        let recovered = self.in_fast_recovery();
        let no_blocks = received.blocks().is_empty();
        if ack == una
            && received.wnd == self.peer.wnd
            && no_blocks
            && !received.data
            && self.outstanding()
        {
            self.strike(conn, cx);
        }
        let struck = !recovered && self.in_fast_recovery();
        // rack_fastack: the window is updated before the acknowledgment is counted.
        let fast = advances
            && no_blocks
            && received.wnd > 0
            && !recovered
            && self.scoreboard.sums().sacked.packets == 0;
        let changed = self.log_ack(conn, cx, segment, received, struck);
        if advances {
            if fast {
                self.peer.wnd = received.wnd;
            }
            self.count_rack_ack(conn, timers, cx, received, fast);
        }
        self.commit_rtt(conn, cx, ack, &changed.shown);
        if changed.bytes > 0 || self.data_end() > self.max {
            if let Some(loss) = self.loss_detector.freebsd_rack() {
                loss.call.by_segment = true;
            }
            self.call_output();
        } else {
            self.end_hystart_round(conn, cx);
        }
    }

    /// Advances `snd_una` (rack_process_ack; `fast`: rack_fastack).
    fn count_rack_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        fast: bool,
    ) {
        let (ack, max) = (received.th_ack, self.max);
        self.rexmt.shift = 0;
        if let RttEstimator::Rack(rtt) = &mut self.rtt.estimator {
            rtt.end_backoff();
        }
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        rack.probes.on_progress();
        if rack.hpts.timer() == Some(RackTimer::Retransmit) {
            rack.hpts.cancel(cx.now, false);
        }
        if !fast {
            self.settle_rack_recovery(conn, cx, ack);
        }
        let (window, mss) = (conn.initial_window(), conn.mss());
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        if rack.goodput.on_ack(ack, max, micros(cx.now), window, mss)
            && rack.hpts.is_entered()
            && rack.hpts.is_paced()
        {
            rack.hpts.remove();
        }
        let window = Bytes(rack.burst.window());
        self.cc.on_window_used(window);
        let change = self.grow(conn, cx.now, ack, 0, received.nsegs, false);
        if let Some(loss) = self.loss_detector.freebsd_rack() {
            loss.burst.on_ack();
        }
        self.advance(conn, cx, ack, received.wnd, received.nsegs, change);
        if ack == max {
            let Some(rack) = self.loss_detector.freebsd_rack() else { return };
            rack.reverts.forget();
            rack.timeout = super::state::LastTimeout::default();
            rack.hpts.cancel(cx.now, true);
        }
        self.sync_wheel(timers);
    }

    /// Counts a duplicate acknowledgment without blocks against the oldest segment, which is lost at
    /// the third once the time for it has passed (rack_strike_dupack).
    fn strike<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let Some(oldest) = self.scoreboard.oldest().map(SentSegment::start) else { return };
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        let count = rack.strikes(oldest).saturating_add(1);
        rack.strikes = (oldest, count);
        if count == DUP_THRESHOLD {
            cx.emit(|| Event::DupAck { count });
        }
        let Some(lost) = self.overdue(cx.now) else { return };
        if !self.in_fast_recovery() {
            self.begin_rack_recovery(conn, cx);
        }
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        rack.call.retransmit = Some(lost.start());
        rack.hpts.override_pause();
    }

    /// The segment with the oldest transmission, if it is lost now (tcp_rack_output).
    pub(super) fn overdue(&mut self, now: Instant) -> Option<SentSegment> {
        if self.max > self.data_end() {
            // A FIN was sent.
            return None;
        }
        let srtt = self.rtt.estimator.srtt();
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return None };
        rack.overdue(&mut self.sender.scoreboard, srtt, now)
    }

    /// Was the segment marked lost by the last timeout, and not retransmitted since
    /// (`RACK_MUST_RXT`)?
    pub(super) fn is_of_timeout(&self, sent_segment: &SentSegment) -> bool {
        let LossDetector::FreeBsdRack(rack) = &self.loss_detector else { return false };
        rack.timeout.at.is_some_and(|at| sent_segment.sent_at() < at)
    }

    /// rack_log_ack; `struck`: a duplicate has just begun a recovery.
    fn log_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
        struck: bool,
    ) -> LogAckResult {
        let mut changed = self.take_delivered(conn, cx, segment, received);
        self.report_rtt_samples(conn, cx, received.th_ack);
        let (una, ack) = (self.una, received.th_ack);
        if received.blocks().is_empty() {
            if ack == una && struck {
                changed.bytes += conn.mss();
            }
        } else {
            self.note_duplicates(conn, cx, received);
        }
        if let Some(ssthresh) = changed.shown.undone {
            self.undo_rack_recovery(conn, cx, ssthresh);
        }
        if changed.bytes > 0
            && let Some(loss) = self.loss_detector.freebsd_rack()
        {
            loss.hpts.cancel(cx.now, false);
        }
        let lost = self.overdue(cx.now);
        let mut began = struck;
        if let Some(lost) = &lost
            && !self.in_fast_recovery()
            && !self.is_of_timeout(lost)
        {
            cold_path();
            self.begin_rack_recovery(conn, cx);
            if let Some(rack) = self.loss_detector.freebsd_rack() {
                rack.hpts.override_pause();
                rack.hpts.forget_early();
            }
            began = true;
        }
        if self.in_fast_recovery() && !began {
            self.update_prr(conn, changed.bytes, lost.is_some());
        }
        changed
    }

    /// Applies the acknowledgment and its blocks to the scoreboard.
    fn take_delivered<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
    ) -> LogAckResult {
        let at = AckContext {
            now: cx.now,
            th_ack: received.th_ack,
            srtt: self.rtt.estimator.srtt().unwrap_or(Duration::ZERO),
            echo: segment
                .timestamps
                .filter(|s| conn.negotiated.timestamps && s.ecr != 0)
                .map(|s| s.ecr),
        };
        let una = self.una;
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else {
            return LogAckResult::default();
        };
        let (reported, shown) =
            rack.deliver(&mut self.sender.scoreboard, received, &at, una, &conn.clock);
        if shown.retransmission
            && let RttEstimator::Rack(rtt) = &mut self.sender.rtt.estimator
        {
            self.sender.rexmt.shift = 0;
            rtt.end_backoff();
        }
        if shown.timeout_undone {
            cold_path();
            let change = self.sender.cc.on_congested(&self.sender.congested(
                conn,
                cx.now,
                Sign::SpuriousTimeout,
            ));
            self.totals.spurious += 1;
            self.note(conn, cx, change, Cause::Undone);
        }
        if shown.reported {
            let count = self.scoreboard.sums().sacked.packets.min(u64::from(u32::MAX)) as u32;
            cx.emit(|| Event::DupAck { count });
        }
        let bytes = received.th_ack.since(una).get() + reported;
        LogAckResult { bytes, shown }
    }

    /// Processes blocks below the acknowledgment, which report duplicates (rack_note_dsack); a
    /// D-SACK round may end.
    fn note_duplicates<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
    ) {
        let (in_recovery, max) = (self.in_fast_recovery(), self.max);
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return };
        let restored = rack.on_duplicates(&mut self.sender.scoreboard, received, in_recovery, max);
        if let Some(ssthresh) = restored {
            self.undo_rack_recovery(conn, cx, ssthresh);
        }
    }

    /// Undoes a spurious recovery: restores the threshold; the window was never reduced.
    fn undo_rack_recovery<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ssthresh: u64,
    ) {
        cold_path();
        self.totals.spurious += 1;
        self.cc.set_threshold(if ssthresh == u64::MAX { None } else { Some(Bytes(ssthresh)) });
        if let Some(loss) = self.loss_detector.freebsd_rack() {
            loss.undo.end();
        }
        if self.in_fast_recovery() {
            self.cc.leave_recovery();
        }
        self.emit_window(conn, cx, Cause::Undone);
    }

    /// Enters recovery (rack_cong_signal, CC_NDUPACK): one segment may be sent.
    pub(super) fn begin_rack_recovery<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
    ) {
        cold_path();
        cx.emit(|| Event::Lost { packets: 1 });
        let ssthresh = self.cc.control().ssthresh.map_or(u64::MAX, Bytes::get);
        let (flight, mss) = (self.max - self.una, conn.mss());
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        rack.begin_recovery(ssthresh, flight, mss);
        self.totals.fast_recoveries += 1;
        self.rtt.timing = None;
        self.abandon_cwr();
        let change = self.sender.cc.on_congested(&self.sender.congested(conn, cx.now, Sign::Loss));
        self.note(conn, cx, change, Cause::FastRetransmit);
    }

    /// Proportional rate reduction (rack_update_prr); may allow a lost segment to be sent at once.
    fn update_prr(&mut self, conn: &Connection, changed: u64, lost: bool) {
        let control = self.cc.control();
        let input = RackPrrInput {
            changed,
            pipe: self.scoreboard.sums().rack_pipe(),
            ssthresh: control.ssthresh.unwrap_or(control.window).get(),
            mss: conn.mss(),
            limited: self.data_end() <= self.max,
            lost,
        };
        if let Some(rack) = self.loss_detector.freebsd_rack() {
            rack.on_prr_ack(&input);
        }
    }

    /// Ends a recovery (rack_post_recovery): the window is not below the threshold, plus some of
    /// the unused credit unless the application had no more to send.
    fn settle_rack_recovery<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
    ) {
        if let Some(end) = self.rexmt.cwr_end {
            cold_path();
            if ack > end {
                self.end_cwr(conn, cx, ack, true);
            }
            return;
        }
        if !self.in_fast_recovery() || (ack < self.cc.recovery_point() && ack < self.max) {
            return;
        }
        cold_path();
        let outstanding = self.max - self.una;
        let limited = outstanding > self.buffer.used();
        let end = RecoveryEnd { th_ack: ack, pipe: outstanding };
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        let change = rack.end_recovery(&end, limited, conn.mss(), &mut self.sender.cc);
        self.note(conn, cx, change, Cause::Recovered);
    }

    /// tcp_rack_xmit_timer_commit, the last step.
    fn commit_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        shown: &AckEffects,
    ) {
        if let Some(loss) = self.loss_detector.freebsd_rack() {
            loss.goodput.commit(shown.goodput);
        }
        self.commit_sample(conn, cx, ack, shown);
    }

    /// Passes the round trip of the SYN to the RACK stack, once it runs.
    pub(crate) fn begin_rack(&mut self, syn: Option<SynRtt>) {
        let (LossDetector::FreeBsdRack(rack), Some(syn)) = (&mut self.loss_detector, syn) else {
            return;
        };
        rack.on_syn(syn.timed, syn.echoed);
    }
}

impl Sender {
    fn commit_sample<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        shown: &AckEffects,
    ) {
        let Some(rtt) = shown.rtt else { return };
        let rtt = Duration::from_micros(rtt);
        let sample = RttMeasurement::Timed { sent: Instant::ZERO, acked: Instant::ZERO + rtt };
        let (shift, snd_nxt) = (self.rexmt.shift, self.nxt);
        let rtt = self.rtt.estimator.on_sample(&RttInput { sample, shift, snd_una: ack, snd_nxt });
        if unlikely(self.rtt.timing.is_some_and(|(at, _)| ack > at)) {
            self.rtt.timing = None;
        }
        self.note_rtt(conn, cx, ack, rtt, rtt);
    }

    /// Takes the round trip of a SYN: by its timestamp echo, in whole milliseconds, and by its
    /// transmission time, if it was sent once and this side opened the connection; both are
    /// committed (rack_do_syn_sent, rack_do_syn_recv). Returns them in microseconds.
    pub(crate) fn take_syn_rtt<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
    ) -> Option<SynRtt> {
        let RttEstimator::Rack(rtt) = &mut self.rtt.estimator else { return None };
        rtt.end_backoff();
        let stamp = segment.timestamps.filter(|s| conn.negotiated.timestamps && s.ecr != 0);
        let echoed = stamp.map(|stamps| {
            let ms = conn.clock.timestamp(cx.now).wrapping_sub(stamps.ecr);
            (u64::from(ms) * 1_000).max(1)
        });
        let sent = self.rtt.timing.take().filter(|_| conn.cfg.side == TcpSide::Client);
        let timed = sent.map(|(_, sent)| (micros(cx.now) - micros(sent)).max(1));
        let both = timed.map(|timed| echoed.map_or(timed, |echoed| echoed.min(timed)));
        for rtt in [echoed, both].into_iter().flatten() {
            let shown = AckEffects { rtt: Some(rtt), ..AckEffects::default() };
            self.commit_sample(conn, cx, Offset(1), &shown);
        }
        Some(SynRtt { timed, echoed })
    }
}

impl Connection {
    /// The initial window (`rc_init_window`).
    pub(super) fn initial_window(&self) -> u64 {
        let mss = self.mss();
        (10 * mss).min((2 * mss).max(14_600))
    }
}
