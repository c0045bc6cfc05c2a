//! Expiry of the stack's timers (rack_timeout_rack, rack_timeout_tlp, rack_timeout_rxt).

use cc::{CongestionSignal as Sign, Controller};
use machine::Cx;
use record::{Cause, Recorder, SendLimit};
use recovery::hpts_rack::RackTimer;
use recovery::rack_freebsd::RackFreeBsd;
use units::{Bytes, Duration, Offset};

use super::state::LastTimeout;
use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::loss::LossDetector;
use crate::state::SendSide;
use crate::timers::Timers;

impl TcpEndpoint {
    /// Handles an expired timer. Returns the reason if the call ends here.
    pub(super) fn on_rack_timeout<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        timer: RackTimer,
    ) -> Option<SendLimit> {
        let LossDetector::FreeBsdRack(rack) = &mut self.snd.loss_detector else { return None };
        rack.probes.timed_at = cx.now;
        match timer {
            RackTimer::Reorder => self.snd.on_rack_reorder(&self.conn, &mut self.timers, cx),
            RackTimer::Probe => {
                rack.call.fast = 0;
                self.snd.on_rack_probe(&self.conn);
                None
            }
            RackTimer::Retransmit => self.on_rack_retransmit(cx),
        }
    }

    /// Handles the retransmission timeout: discards SACK information and retransmits the first
    /// segment (rack_remxt_tmr).
    fn on_rack_retransmit<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) -> Option<SendLimit> {
        if !self.snd.outstanding() {
            return None;
        }
        self.snd.rexmt.shift += 1;
        if self.snd.rexmt.shift > self.snd.retries(&self.conn) {
            self.give_up(cx);
            return Some(SendLimit::Done);
        }
        self.snd.totals.timeouts += 1;
        self.snd.rtt.estimator.on_timeout(self.snd.rexmt.shift);
        self.snd.rtt.timing = None;
        self.snd.rexmt.cwr_end = None;
        let first = self.snd.scoreboard.first().copied();
        let in_recovery = self.snd.in_fast_recovery();
        let stamp = first
            .filter(|sent_segment| {
                self.conn.negotiated.timestamps && sent_segment.transmissions() == 1
            })
            .filter(|_| self.snd.rexmt.shift == 1)
            .map(|sent_segment| {
                (sent_segment.end(), self.conn.clock.timestamp(sent_segment.sent_at()))
            });
        self.snd.scoreboard.clear_sack_state();
        let (una, max, wnd, mss) = (self.snd.una, self.snd.max, self.snd.peer.wnd, self.conn.mss());
        let LossDetector::FreeBsdRack(rack) = &mut self.snd.loss_detector else { return None };
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
        if self.snd.rexmt.shift > 1 {
            rack.goodput.abandon();
        }
        rack.timeout = LastTimeout { at: Some(cx.now), max, in_recovery, first: stamp };
        // rack_cong_signal, CC_RTO: the stack reduces window and threshold itself.
        let segments = wnd.min(rack.burst.window()) / 2 / mss;
        let signal = Sign::Timeout { shift: self.snd.rexmt.shift };
        let change = self.snd.cc.on_congested(&self.snd.congested(&self.conn, cx.now, signal));
        self.snd.cc.set_threshold(Some(Bytes(segments.max(2) * mss)));
        self.snd.cc.set_window(Bytes(mss));
        self.snd.note(&self.conn, cx, change, Cause::Timeout);
        self.rcv.ack_now = true;
        None
    }
}

impl SendSide {
    /// Retransmits the oldest segment, in a recovery, if its reordering window has passed.
    fn on_rack_reorder<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> Option<SendLimit> {
        let thresh = self.rack_thresh(cx.now);
        let oldest = self.scoreboard.oldest().copied();
        let Some(lost) =
            oldest.filter(|sent_segment| RackFreeBsd::is_overdue(sent_segment, thresh, cx.now))
        else {
            self.start_wheel(conn, timers, cx.now, Duration::ZERO);
            return Some(SendLimit::Pacing);
        };
        if !self.in_fast_recovery() {
            self.begin_rack_recovery(conn, cx);
        }
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return None };
        if rack.settings.discounts_lost {
            self.scoreboard.expire_passed();
        }
        rack.call.retransmit = Some(lost.start());
        rack.call.fast = 0;
        rack.hpts.override_pause();
        rack.hpts.end_pause();
        None
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
