//! What a connection does when one of its timers expires.

use cc::{CongestionSignal as Sign, Controller};
use machine::Cx;
use record::{Cause, Event, Purpose, Recorder};
use units::Bytes;

use crate::endpoint::{TcpEndpoint, TcpState};
use crate::loss::LossDetector;
use crate::output::call::PacketBatch;

impl TcpEndpoint {
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
