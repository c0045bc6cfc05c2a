//! Expiry of the stack's timers (rack_timeout_rack, rack_timeout_tlp, rack_timeout_rxt).

use cc::{CongestionSignal as Sign, Controller};
use machine::Cx;
use record::{Cause, Recorder, SendLimit};
use recovery::hpts_rack::RackTimer;
use recovery::rack_freebsd::RackFreeBsd;
use units::{Bytes, Duration, Offset};

use super::FreeBsdRack;
use super::output::RackCallStart;
use super::state::LastTimeout;
use crate::connection::Connection;
use crate::timers::Timers;

impl FreeBsdRack<'_> {
    /// Handles an expired timer at the beginning of a call.
    pub(super) fn on_timeout<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        timer: RackTimer,
    ) -> RackCallStart {
        self.state.probes.timed_at = cx.now;
        match timer {
            RackTimer::Reorder => self.timeout_rack(conn, timers, cx),
            RackTimer::Probe => {
                self.state.call.fast = 0;
                self.timeout_tlp(conn);
                RackCallStart::Output
            }
            RackTimer::Retransmit => self.timeout_rxt(conn, cx),
        }
    }

    /// Handles the retransmission timeout: discards SACK information and retransmits the first
    /// segment (rack_remxt_tmr).
    fn timeout_rxt<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) -> RackCallStart {
        if !self.outstanding() {
            return RackCallStart::Output;
        }
        self.snd.rexmt.shift += 1;
        if self.snd.rexmt.shift > self.snd.retries(conn) {
            return RackCallStart::GiveUp;
        }
        self.snd.totals.timeouts += 1;
        self.snd.rtt.estimator.on_timeout(self.snd.rexmt.shift);
        self.snd.rtt.timing = None;
        self.snd.rexmt.cwr_end = None;
        let first = self.snd.scoreboard.first().copied();
        let in_recovery = self.snd.in_fast_recovery();
        let stamp = first
            .filter(|sent_segment| conn.negotiated.timestamps && sent_segment.transmissions() == 1)
            .filter(|_| self.snd.rexmt.shift == 1)
            .map(|sent_segment| (sent_segment.end(), conn.clock.timestamp(sent_segment.sent_at())));
        self.snd.scoreboard.clear_sack_state();
        let (una, max, wnd, mss) = (self.snd.una, self.snd.max, self.snd.peer.wnd, conn.mss());
        self.state.hpts.cancel(cx.now, false);
        self.state.hpts.forget_lag();
        self.state.hpts.override_pause();
        self.state.rack.on_recovered();
        self.state.undo.end();
        self.state.reverts.forget();
        self.state.prr.prr_sndcnt = 0;
        self.state.strikes = (una, 0);
        self.state.call.retransmit = Some(una);
        self.state.call.fast = 0;
        if self.snd.rexmt.shift > 1 {
            self.state.goodput.abandon();
        }
        self.state.timeout = LastTimeout { at: Some(cx.now), max, in_recovery, first: stamp };
        // rack_cong_signal, CC_RTO: the stack reduces window and threshold itself.
        let segments = wnd.min(self.state.burst.window()) / 2 / mss;
        let signal = Sign::Timeout { shift: self.snd.rexmt.shift };
        let change = self.snd.cc.on_congested(&self.snd.congested(conn, cx.now, signal));
        self.snd.cc.set_threshold(Some(Bytes(segments.max(2) * mss)));
        self.snd.cc.set_window(Bytes(mss));
        self.snd.note(conn, cx, change, Cause::Timeout);
        RackCallStart::OutputAck
    }

    /// Retransmits the oldest segment, in a recovery, if its reordering window has passed.
    fn timeout_rack<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> RackCallStart {
        let thresh = self.thresh(cx.now);
        let oldest = self.snd.scoreboard.oldest().copied();
        let Some(lost) =
            oldest.filter(|sent_segment| RackFreeBsd::is_overdue(sent_segment, thresh, cx.now))
        else {
            self.start_hpts_timer(conn, timers, cx.now, Duration::ZERO);
            return RackCallStart::Ended(SendLimit::Pacing);
        };
        if !self.snd.in_fast_recovery() {
            self.cong_signal(conn, cx);
        }
        if self.state.settings.discounts_lost {
            self.snd.scoreboard.expire_passed();
        }
        self.state.call.retransmit = Some(lost.start());
        self.state.call.fast = 0;
        self.state.hpts.override_pause();
        self.state.hpts.end_pause();
        RackCallStart::Output
    }

    /// Prepares a tail loss probe: a segment of new data, or the last one again unless a full
    /// segment is available.
    fn timeout_tlp(&mut self, conn: &Connection) {
        let (una, max, mss, wnd) = (self.snd.una, self.snd.max, conn.mss(), self.snd.peer.wnd);
        let (outstanding, available) = (max - una, self.snd.buffer.used());
        let in_recovery = self.snd.in_fast_recovery();
        let collapsed = outstanding > wnd;
        let fresh = available >= outstanding + mss && outstanding + mss <= wnd;
        self.state.reverts.forget();
        if !collapsed && self.state.probes.count >= 1 {
            self.state.rack.on_recovered();
            if self.state.probes.count == 1 {
                self.state.goodput.abandon();
            }
        }
        if fresh && !collapsed {
            self.state.call.probe_new = mss;
            if in_recovery {
                self.state.prr.prr_sndcnt = mss;
            }
        } else {
            let data_end = self.snd.data_end();
            let edge = if collapsed { una + wnd } else { max };
            let highest = self.snd.scoreboard.highest_unsacked(edge.min(data_end));
            let (start, end) = highest.unwrap_or((una, una + mss));
            let start = start.max(Offset(end.0.saturating_sub(mss)));
            self.state.call.probe = Some(start);
        }
        self.state.call.is_probe = true;
        self.state.hpts.override_pause();
    }
}
