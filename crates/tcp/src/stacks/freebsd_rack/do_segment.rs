//! Processing of an acknowledgment, in the order of rack_do_segment: deliveries and losses
//! (rack_log_ack), the end of a recovery (rack_post_recovery), the window (rack_ack_received), the
//! smoothed round trip (tcp_rack_xmit_timer_commit), and the output call that follows.

use core::hint::cold_path;

use cc::{CongestionSignal as Sign, Controller, RecoveryEnd, WindowController};
use machine::Cx;
use packet::Segment;
use record::{Cause, Event, Recorder};
use recovery::RttEstimator;
use recovery::hpts_rack::RackTimer;
use recovery::rack_freebsd::micros;
use recovery::sendmap::SentSegment;
use units::{Bytes, Offset, unlikely};

use super::FreeBsdRack;
use super::log_ack::AckEffects;
use super::steps::RackPrrInput;
use super::syn::commit_sample;
use crate::connection::Connection;
use crate::loss::DUP_THRESHOLD;
use crate::received_ack::ReceivedAck;
use crate::timers::Timers;

impl FreeBsdRack<'_> {
    /// Processes a segment that acknowledges up to `ack`: the acknowledgment, also one before
    /// `snd_una`, whose SACK blocks count; an ECN echo; the window. `reordered`: it was overtaken by
    /// another.
    pub(crate) fn do_segment<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        (seq, ack): (Offset, Offset),
        reordered: bool,
    ) {
        let wnd = conn.scaled_window(segment);
        let received = ReceivedAck::parse(conn, self.snd.una, segment, (seq, ack), wnd);
        self.take_ack(conn, timers, cx, segment, &received);
        if unlikely(self.snd.ecn.echoed(segment.flags)) {
            self.snd.on_ecn_echo(conn, cx, ack);
        }
        self.update_window(conn, timers, seq, ack, wnd);
        self.wake_writer();
        if unlikely(reordered) {
            self.state.rack.on_reordering(cx.now);
        }
    }

    /// Takes the window of a segment that is not old; one large enough ends persist mode.
    fn update_window(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        seq: Offset,
        ack: Offset,
        wnd: u64,
    ) {
        if !self.snd.is_newer_window(conn, seq, ack, wnd) {
            return;
        }
        if wnd > self.snd.peer.wnd || wnd == 0 {
            self.snd.call_output();
        }
        if unlikely(self.snd.probe.persisting) && !self.is_shut(conn, wnd) {
            self.exit_persist(timers);
        }
        self.snd.set_window(seq, ack, wnd);
    }

    /// Wakes a blocked writer once the send buffer has space.
    pub(super) fn wake_writer(&mut self) {
        if self.snd.buffer.starved() {
            self.snd.signal_space();
        }
    }

    /// Processes an acknowledgment.
    fn take_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        received: &ReceivedAck,
    ) {
        self.handle_probe_response();
        let (una, ack) = (self.snd.una, received.th_ack);
        let advances = ack > una;
        let recovered = self.snd.in_fast_recovery();
        let no_blocks = received.blocks().is_empty();
        if ack == una
            && received.wnd == self.snd.peer.wnd
            && no_blocks
            && !received.data
            && self.outstanding()
        {
            self.strike_dupack(conn, cx);
        }
        let struck = !recovered && self.snd.in_fast_recovery();
        // rack_fastack: the window is updated before the acknowledgment is counted.
        let fast = advances
            && no_blocks
            && received.wnd > 0
            && !recovered
            && self.snd.scoreboard.sums().sacked.packets == 0;
        let changed = self.log_ack(conn, cx, segment, received, struck);
        if advances {
            if fast {
                self.snd.peer.wnd = received.wnd;
            }
            self.process_ack(conn, timers, cx, received, fast);
        }
        self.xmit_timer_commit(conn, cx, ack, &changed.shown);
        if changed.bytes > 0 || self.snd.data_end() > self.snd.max {
            self.state.call.by_segment = true;
            self.snd.call_output();
        } else {
            self.end_hystart_round(conn, cx);
        }
    }

    /// Advances `snd_una` (rack_process_ack; `fast`: rack_fastack).
    fn process_ack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        received: &ReceivedAck,
        fast: bool,
    ) {
        let (ack, max) = (received.th_ack, self.snd.max);
        self.snd.rexmt.shift = 0;
        if let RttEstimator::Rack(rtt) = &mut self.snd.rtt.estimator {
            rtt.end_backoff();
        }
        self.state.probes.on_progress();
        if self.state.hpts.timer() == Some(RackTimer::Retransmit) {
            self.state.hpts.cancel(cx.now, false);
        }
        if !fast {
            self.post_recovery(conn, cx, ack);
        }
        let (window, mss) = (conn.initial_window(), conn.mss());
        if self.state.goodput.on_ack(ack, max, micros(cx.now), window, mss)
            && self.state.hpts.is_entered()
            && self.state.hpts.is_paced()
        {
            self.state.hpts.remove();
        }
        let window = Bytes(self.state.burst.window());
        self.snd.cc.on_window_used(window);
        let change = self.snd.grow(conn, cx.now, ack, 0, received.nsegs, false);
        self.state.burst.on_ack();
        self.snd.advance(conn, cx, ack, received.wnd, received.nsegs, change);
        if ack == max {
            self.state.reverts.forget();
            self.state.timeout = super::state::LastTimeout::default();
            self.state.hpts.cancel(cx.now, true);
        }
        self.sync_wheel(timers);
    }

    /// Counts a duplicate acknowledgment without blocks against the oldest segment, which is lost at
    /// the third once the time for it has passed (rack_strike_dupack).
    fn strike_dupack<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let Some(oldest) = self.snd.scoreboard.oldest().map(SentSegment::start) else { return };
        let count = self.state.strikes(oldest).saturating_add(1);
        self.state.strikes = (oldest, count);
        if count == DUP_THRESHOLD {
            cx.emit(|| Event::DupAck { count });
        }
        let Some(lost) = self.overdue(cx.now) else { return };
        if !self.snd.in_fast_recovery() {
            self.cong_signal(conn, cx);
        }
        self.state.call.retransmit = Some(lost.start());
        self.state.hpts.override_pause();
    }

    /// Undoes a spurious recovery: restores the threshold; the window was never reduced.
    pub(super) fn undo_recovery<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ssthresh: u64,
    ) {
        cold_path();
        self.snd.totals.spurious += 1;
        self.snd.cc.set_threshold(if ssthresh == u64::MAX { None } else { Some(Bytes(ssthresh)) });
        self.state.undo.end();
        if self.snd.in_fast_recovery() {
            self.snd.cc.leave_recovery();
        }
        self.snd.emit_window(conn, cx, Cause::Undone);
    }

    /// Enters recovery (rack_cong_signal, CC_NDUPACK): one segment may be sent.
    pub(super) fn cong_signal<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        cold_path();
        cx.emit(|| Event::Lost { packets: 1 });
        let ssthresh = self.snd.cc.control().ssthresh.map_or(u64::MAX, Bytes::get);
        let (flight, mss) = (self.snd.max - self.snd.una, conn.mss());
        self.state.begin_recovery(ssthresh, flight, mss);
        self.snd.totals.fast_recoveries += 1;
        self.snd.rtt.timing = None;
        self.snd.abandon_cwr();
        let change = self.snd.cc.on_congested(&self.snd.congested(conn, cx.now, Sign::Loss));
        self.snd.note(conn, cx, change, Cause::FastRetransmit);
    }

    /// Proportional rate reduction (rack_update_prr); may allow a lost segment to be sent at once.
    pub(super) fn update_prr(&mut self, conn: &Connection, changed: u64, lost: bool) {
        let control = self.snd.cc.control();
        let input = RackPrrInput {
            changed,
            pipe: self.snd.scoreboard.sums().rack_pipe(),
            ssthresh: control.ssthresh.unwrap_or(control.window).get(),
            mss: conn.mss(),
            limited: self.snd.data_end() <= self.snd.max,
            lost,
        };
        self.state.on_prr_ack(&input);
    }

    /// Ends a recovery (rack_post_recovery): the window is not below the threshold, plus some of
    /// the unused credit unless the application had no more to send.
    fn post_recovery<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>, ack: Offset) {
        if let Some(end) = self.snd.rexmt.cwr_end {
            cold_path();
            if ack > end {
                self.snd.end_cwr(conn, cx, ack, true);
            }
            return;
        }
        if !self.snd.in_fast_recovery()
            || (ack < self.snd.cc.recovery_point() && ack < self.snd.max)
        {
            return;
        }
        cold_path();
        let outstanding = self.snd.max - self.snd.una;
        let limited = outstanding > self.snd.buffer.used();
        let end = RecoveryEnd { th_ack: ack, pipe: outstanding };
        let change = self.state.end_recovery(&end, limited, conn.mss(), &mut self.snd.cc);
        self.snd.note(conn, cx, change, Cause::Recovered);
    }

    /// tcp_rack_xmit_timer_commit, the last step.
    fn xmit_timer_commit<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        ack: Offset,
        shown: &AckEffects,
    ) {
        self.state.goodput.commit(shown.goodput);
        commit_sample(self.snd, conn, cx, ack, shown.rtt);
    }
}
