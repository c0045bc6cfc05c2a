//! What a connection does when one of its timers expires.

use core::hint::cold_path;

use cc::{CongestionSignal as Sign, Controller};
use machine::Cx;
use packet::Timestamps;
use record::{Cause, Event, Purpose, Recorder};
use units::{Bytes, unlikely};

use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::output::call::PacketBatch;
use crate::send_side::SendSide;
use crate::stacks::Stack;
use crate::tcp_state::TcpState;
use crate::timer_outcome::TimerOutcome;
use crate::timers::Timers;

impl TcpEndpoint {
    /// Handles the expiry of a timer.
    pub(crate) fn on_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, purpose: Purpose) {
        self.snd.call.batch = PacketBatch::NONE;
        if self.snd.on_wheel(purpose) {
            return;
        }
        cx.emit(|| Event::Timer(purpose));
        let Self { conn, timers, snd, .. } = self;
        let outcome = match purpose {
            Purpose::DelayedAck => return self.on_delayed_ack_timer(cx),
            Purpose::TimeWait => {
                conn.state = TcpState::Closed;
                return;
            }
            Purpose::Retransmit => snd.on_retransmit_timer(conn, timers, cx),
            Purpose::Persist => snd.on_window_timer(conn, timers, cx),
            Purpose::Keepalive => snd.on_keepalive_timer(conn, timers, cx.now),
            Purpose::Reorder => return snd.on_reorder_timer(conn, timers, cx),
            Purpose::LossProbe => return snd.on_probe_timer(conn, timers, cx),
            Purpose::Pacing => {
                snd.release_retransmissions();
                snd.call_output();
                if unlikely(!conn.clock.is_exact()) {
                    snd.reach_call(conn, cx.now);
                }
                return;
            }
        };
        match outcome {
            TimerOutcome::Nothing => {}
            TimerOutcome::AckNow => self.rcv.ack_now = true,
            TimerOutcome::GiveUp => self.give_up(cx),
            TimerOutcome::DeadPeer => match self.conn.cfg.profile.rules.closing.resets_dead_peer {
                true => self.reset(cx),
                false => self.abort(cx),
            },
        }
    }

    /// Drops the connection because the peer does not answer. FreeBSD sends a RST (tcp_drop), Linux
    /// does not (tcp_write_err).
    pub(crate) fn give_up<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        match self.conn.cfg.profile.rules.closing.resets_when_given_up {
            true => self.reset(cx),
            false => self.abort(cx),
        }
    }

    /// Sends the ACK that was delayed. If SACK compression held it back (tcp_compressed_ack_kick, which does not read the
    /// clock), the timestamp is of the last packet received or sent.
    fn on_delayed_ack_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.rcv.compressed.waiting == 0 {
            self.rcv.policy.on_timer(self.conn.clock.ticks(self.snd.rtt.estimator.rto()));
            self.ack_at_once();
            return;
        }
        cold_path();
        self.respond(cx);
        if self.rcv.compressed.leftover == Some(cx.now) {
            // That of a delayed ACK reads the clock (tcp_mstamp_refresh).
            return;
        }
        let val = self.conn.clock.timestamp(self.snd.last.received.max(self.snd.last.sent));
        if let Some(ack) = self.outbox.as_mut().and_then(|outbox| outbox.back_mut()) {
            ack.timestamps = ack.timestamps.map(|stamps| Timestamps { val, ..stamps });
        }
    }
}

impl SendSide {
    /// tcp_retransmit_timer of Linux; RFC 6298 section 5.
    pub(crate) fn retransmit_timer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> TimerOutcome {
        // Retransmissions of the head as window probes do not count as timeouts.
        let probes = self.head_probes(conn);
        self.rexmt.shift += u32::from(!probes);
        let hopeless = if probes {
            self.head_unanswered(conn, cx.now)
        } else {
            self.retransmits_timed_out(conn, cx.now)
        };
        if hopeless {
            return TimerOutcome::GiveUp;
        }
        self.totals.timeouts += 1;
        self.begin_sample(conn, cx.now, false);
        if !self.syn_times_out_linearly(conn) {
            self.sender.rtt.estimator.on_timeout(self.sender.rexmt.shift);
        }
        if conn.state == TcpState::SynSent && conn.cfg.profile.rules.opening.timeout_ends_ecn {
            self.ecn.on_syn_timeout();
        }
        self.rtt.timing = None;
        self.rexmt.head = probes.then_some(Cause::Timeout);
        self.rexmt.dup_acks = 0;
        self.end_limited_transmit();
        if matches!(conn.state, TcpState::SynSent | TcpState::SynReceived) {
            if self.is_fast_open_child(conn) {
                self.rare.fast_open.syn_ack_due = true;
            }
            self.rearm_after_timeout(conn, timers, cx.now);
            self.call_output();
            return TimerOutcome::Nothing;
        }
        let rules = conn.cfg.profile.rules.sending;
        let stamps = conn.negotiated.timestamps && rules.undoes_timeout_by_echo;
        if self.rexmt.shift == 1 && stamps {
            self.rexmt.timeout_stamp = Some(conn.clock.timestamp(cx.now));
        }
        // tcp_enter_loss marks losses first, and sets the window to the packets then in flight plus
        // one.
        let timed = matches!(self.stack, Stack::RackTlp(_));
        let marks_first = timed && rules.timeout_marks_first;
        if marks_first {
            self.rack_tlp_timeout(conn, timers, cx.now);
        }
        self.sender.show_controller(conn, cx.now, self.sender.una);
        let signal = Sign::Timeout { shift: self.rexmt.shift.max(1) };
        let change = self.sender.cc.on_congested(&self.sender.congested(conn, cx.now, signal));
        if marks_first {
            self.sender.cc.set_window(Bytes((self.packets_in_flight() + 1) * conn.mss()));
        }
        self.note(conn, cx, change, Cause::Timeout);
        self.rexmt.cwr_end = None;
        match self.stack {
            Stack::RackTlp(_) if marks_first => {}
            Stack::RackTlp(_) => {
                self.rack_tlp_timeout(conn, timers, cx.now);
            }
            Stack::FreeBsd(_) | Stack::NewReno | Stack::FreeBsdRack(_) => {
                self.nxt = self.una;
                self.rexmt.cause = Cause::Timeout;
            }
        }
        self.rearm_after_timeout(conn, timers, cx.now);
        self.call_output();
        TimerOutcome::Nothing
    }
}
