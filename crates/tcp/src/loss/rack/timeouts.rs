//! The stack's timers fire (rack_timeout_rack, rack_timeout_tlp, rack_timeout_rxt).

use cc::{Controller, Signal as Sign};
use machine::Cx;
use record::{Cause, Recorder, Waiting};
use recovery::hpts_rack::RackTimer;
use recovery::rack_freebsd::RackFreeBsd;
use units::{Bytes, Duration, Offset};

use super::{Timeout, rack_of};
use crate::endpoint::Endpoint;
use crate::loss::Repair;

impl Endpoint {
    /// A timer is due. Says why the call ends, if it does.
    pub(super) fn on_rack_timeout<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        timer: RackTimer,
    ) -> Option<Waiting> {
        let Repair::Rack(rack) = &mut self.snd.repair else { return None };
        rack.probes.timed_at = cx.now;
        match timer {
            RackTimer::Reorder => self.on_rack_reorder(cx),
            RackTimer::Probe => {
                rack.call.fast = 0;
                self.on_rack_probe();
                None
            }
            RackTimer::Retransmit => self.on_rack_retransmit(cx),
        }
    }

    /// The oldest segment has had its time: it is retransmitted, in a recovery.
    fn on_rack_reorder<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) -> Option<Waiting> {
        let thresh = self.rack_thresh(cx.now);
        let oldest = self.snd.map.oldest().copied();
        let Some(lost) = oldest.filter(|piece| RackFreeBsd::is_overdue(piece, thresh, cx.now))
        else {
            self.start_wheel(cx.now, Duration::ZERO);
            return Some(Waiting::Pacing);
        };
        if !self.cc.in_recovery() {
            self.begin_rack_recovery(cx);
        }
        let Repair::Rack(rack) = &mut self.snd.repair else { return None };
        if rack.settings.discounts_lost {
            self.snd.map.expire_passed();
        }
        rack.call.resend = Some(lost.start());
        rack.call.fast = 0;
        rack.hpts.override_pause();
        rack.hpts.end_pause();
        None
    }

    /// No acknowledgment came for about two round trips: a segment of new data, or the last one again
    /// unless that much is at hand.
    fn on_rack_probe(&mut self) {
        let (una, max, mss, wnd) = (self.snd.una, self.snd.max, self.mss(), self.snd.wnd);
        let (outstanding, available) = (max - una, self.snd.buffer.used());
        let in_recovery = self.cc.in_recovery();
        let collapsed = outstanding > wnd;
        let fresh = available >= outstanding + mss && outstanding + mss <= wnd;
        let rack = rack_of!(self);
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
            let highest = self.snd.map.highest_unreported(edge.min(data_end));
            let (start, end) = highest.unwrap_or((una, una + mss));
            let start = start.max(Offset(end.0.saturating_sub(mss)));
            rack_of!(self).call.probe = Some(start);
        }
        let rack = rack_of!(self);
        rack.call.is_probe = true;
        rack.hpts.override_pause();
    }

    /// The retransmission timeout: reports are forgotten, and the first segment is retransmitted
    /// (rack_remxt_tmr).
    fn on_rack_retransmit<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) -> Option<Waiting> {
        if !self.outstanding() {
            return None;
        }
        self.snd.shift += 1;
        if self.snd.shift > self.retries() {
            self.give_up(cx);
            return Some(Waiting::Done);
        }
        self.totals.timeouts += 1;
        self.rtt.on_timeout(self.snd.shift);
        self.snd.timed = None;
        self.snd.ecn_episode = None;
        let first = self.snd.map.first().copied();
        let in_recovery = self.cc.in_recovery();
        let stamp = first
            .filter(|piece| self.link.timestamps && piece.transmissions() == 1)
            .filter(|_| self.snd.shift == 1)
            .map(|piece| (piece.end(), self.clock.timestamp(piece.sent_at())));
        self.snd.map.forget_reports();
        let (una, max, wnd, mss) = (self.snd.una, self.snd.max, self.snd.wnd, self.mss());
        let Repair::Rack(rack) = &mut self.snd.repair else { return None };
        rack.hpts.cancel(cx.now, false);
        rack.hpts.forget_lag();
        rack.hpts.override_pause();
        rack.rack.on_recovered();
        rack.undo.end();
        rack.reverts.forget();
        rack.prr.prr_sndcnt = 0;
        rack.strikes = (una, 0);
        rack.call.resend = Some(una);
        rack.call.fast = 0;
        if self.snd.shift > 1 {
            rack.goodput.abandon();
        }
        rack.timeout = Timeout { at: Some(cx.now), max, in_recovery, first: stamp };
        // rack_cong_signal, CC_RTO: the stack lowers window and threshold itself.
        let segments = wnd.min(rack.burst.window()) / 2 / mss;
        let signal = Sign::Timeout { shift: self.snd.shift };
        let change = self.cc.on_congested(&self.congested(cx.now, signal));
        self.cc.set_threshold(Some(Bytes(segments.max(2) * mss)));
        self.cc.set_window(Bytes(mss));
        self.note(cx, change, Cause::Timeout);
        self.rcv.ack_now = true;
        None
    }
}
