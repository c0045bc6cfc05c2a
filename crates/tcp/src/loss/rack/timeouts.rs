//! Expiry of the stack's timers (rack_timeout_rack, rack_timeout_tlp, rack_timeout_rxt).

use cc::{CongestionSignal as Sign, Controller};
use machine::Cx;
use record::{Cause, Recorder, SendLimit};
use recovery::hpts_rack::RackTimer;
use recovery::rack_freebsd::RackFreeBsd;
use units::{Bytes, Duration, Offset};

use super::call::RackCallStart;
use super::state::LastTimeout;
use crate::connection::Connection;
use crate::loss::LossDetector;
use crate::state::SendSide;
use crate::timers::Timers;

impl SendSide {
    /// Handles an expired timer at the beginning of a call.
    pub(super) fn on_rack_timeout<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
        timer: RackTimer,
    ) -> RackCallStart {
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else {
            return RackCallStart::Output;
        };
        rack.probes.timed_at = cx.now;
        match timer {
            RackTimer::Reorder => self.on_rack_reorder(conn, timers, cx),
            RackTimer::Probe => {
                rack.call.fast = 0;
                self.on_rack_probe(conn);
                RackCallStart::Output
            }
            RackTimer::Retransmit => self.on_rack_retransmit(conn, cx),
        }
    }

    /// Handles the retransmission timeout: discards SACK information and retransmits the first
    /// segment (rack_remxt_tmr).
    fn on_rack_retransmit<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
    ) -> RackCallStart {
        if !self.outstanding() {
            return RackCallStart::Output;
        }
        self.rexmt.shift += 1;
        if self.rexmt.shift > self.retries(conn) {
            return RackCallStart::GiveUp;
        }
        self.totals.timeouts += 1;
        self.sender.rtt.estimator.on_timeout(self.sender.rexmt.shift);
        self.rtt.timing = None;
        self.rexmt.cwr_end = None;
        let first = self.scoreboard.first().copied();
        let in_recovery = self.in_fast_recovery();
        let stamp = first
            .filter(|sent_segment| conn.negotiated.timestamps && sent_segment.transmissions() == 1)
            .filter(|_| self.rexmt.shift == 1)
            .map(|sent_segment| (sent_segment.end(), conn.clock.timestamp(sent_segment.sent_at())));
        self.scoreboard.clear_sack_state();
        let (una, max, wnd, mss) = (self.una, self.max, self.peer.wnd, conn.mss());
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else {
            return RackCallStart::Output;
        };
        rack.hpts.cancel(cx.now, false);
        rack.hpts.forget_lag();
        rack.hpts.override_pause();
        rack.rack.on_recovered();
        rack.undo.end();
        rack.reverts.forget();
        rack.prr.prr_sndcnt = 0;
        rack.strikes = (una, 0);
        rack.call.retransmit = Some(una);
        rack.call.fast = 0;
        if self.sender.rexmt.shift > 1 {
            rack.goodput.abandon();
        }
        rack.timeout = LastTimeout { at: Some(cx.now), max, in_recovery, first: stamp };
        // rack_cong_signal, CC_RTO: the stack reduces window and threshold itself.
        let segments = wnd.min(rack.burst.window()) / 2 / mss;
        let signal = Sign::Timeout { shift: self.rexmt.shift };
        let change = self.sender.cc.on_congested(&self.sender.congested(conn, cx.now, signal));
        self.cc.set_threshold(Some(Bytes(segments.max(2) * mss)));
        self.cc.set_window(Bytes(mss));
        self.note(conn, cx, change, Cause::Timeout);
        RackCallStart::OutputAck
    }

    /// Retransmits the oldest segment, in a recovery, if its reordering window has passed.
    fn on_rack_reorder<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> RackCallStart {
        let thresh = self.rack_thresh(cx.now);
        let oldest = self.scoreboard.oldest().copied();
        let Some(lost) =
            oldest.filter(|sent_segment| RackFreeBsd::is_overdue(sent_segment, thresh, cx.now))
        else {
            self.start_wheel(conn, timers, cx.now, Duration::ZERO);
            return RackCallStart::Ended(SendLimit::Pacing);
        };
        if !self.in_fast_recovery() {
            self.begin_rack_recovery(conn, cx);
        }
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else {
            return RackCallStart::Output;
        };
        if rack.settings.discounts_lost {
            self.sender.scoreboard.expire_passed();
        }
        rack.call.retransmit = Some(lost.start());
        rack.call.fast = 0;
        rack.hpts.override_pause();
        rack.hpts.end_pause();
        RackCallStart::Output
    }

    /// Prepares a tail loss probe: a segment of new data, or the last one again unless a full
    /// segment is available.
    fn on_rack_probe(&mut self, conn: &Connection) {
        let (una, max, mss, wnd) = (self.una, self.max, conn.mss(), self.peer.wnd);
        let (outstanding, available) = (max - una, self.buffer.used());
        let in_recovery = self.in_fast_recovery();
        let collapsed = outstanding > wnd;
        let fresh = available >= outstanding + mss && outstanding + mss <= wnd;
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        rack.reverts.forget();
        if !collapsed && rack.probes.count >= 1 {
            rack.rack.on_recovered();
            if rack.probes.count == 1 {
                rack.goodput.abandon();
            }
        }
        if fresh && !collapsed {
            rack.call.probe_new = mss;
            if in_recovery {
                rack.prr.prr_sndcnt = mss;
            }
        } else {
            let data_end = self.data_end();
            let edge = if collapsed { una + wnd } else { max };
            let highest = self.scoreboard.highest_unsacked(edge.min(data_end));
            let (start, end) = highest.unwrap_or((una, una + mss));
            let start = start.max(Offset(end.0.saturating_sub(mss)));
            if let Some(loss) = self.loss_detector.freebsd_rack() {
                loss.call.probe = Some(start);
            }
        }
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        rack.call.is_probe = true;
        rack.hpts.override_pause();
    }
}
