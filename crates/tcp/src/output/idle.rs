//! Passes without data to send.

use cc::Controller;
use machine::Cx;
use record::{Event, Recorder, SendLimit};
use units::unlikely;

use crate::connection::Connection;
use crate::endpoint::TcpEndpoint;
use crate::send_side::SendSide;
use crate::sender::Sender;
use crate::tcp_state::TcpState;

impl TcpEndpoint {
    /// Has all data been sent, with nothing else to do but perhaps to acknowledge? This is the case
    /// in most passes of a receiver, and of a sender limited by its application or send buffer.
    #[inline(always)]
    pub(super) fn nothing_to_send(&self) -> bool {
        let snd = &self.snd;
        let quiet = snd.stack.is_quiet(&snd.scoreboard);
        self.conn.state == TcpState::Established
            && snd.nxt == snd.max
            && snd.nxt == self.snd.data_end()
            && (snd.buffer.used() == 0 || self.conn.queues_packets())
            && quiet
            && self.reset.is_none()
            && snd.rexmt.head.is_none()
            && snd.probe.segment.is_none()
            && snd.rates.is_none()
            && !self.snd.cc.in_recovery()
    }
}

impl SendSide {
    /// Ends a pass that has no data to send; returns why.
    #[inline(always)]
    pub(super) fn end_idle_pass<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
    ) -> SendLimit {
        if core::mem::take(&mut self.call.first_pass) {
            self.begin_output(conn, cx);
        }
        // Linux looks at the window only where it has sent something or would (tcp_push_pending_frames).
        let looks =
            self.nxt != self.call.nxt_at_call || (self.buffer.used() > 0 && !conn.queues_packets());
        if looks {
            // Is the window full of whole packets? The test needs no division.
            let full = (self.packets_in_flight() + 1) * conn.mss() > self.send_window(conn);
            self.validate_window(full);
        }
        let why = if unlikely(self.buffer.fin) { SendLimit::Done } else { SendLimit::Application };
        self.end_pass(conn, cx, why);
        why
    }

    /// Ends a call because nothing can be sent.
    #[inline(always)]
    pub(crate) fn end_pass<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        why: SendLimit,
    ) {
        self.end_output(conn, cx, why);
        if core::mem::take(&mut self.call.check_space) {
            self.wake_writer(conn, cx);
        }
    }
}

impl Sender {
    /// Ends a call because nothing can be sent, but for a writer that waits for space.
    #[inline(always)]
    pub(crate) fn end_output<R: Recorder>(
        &mut self,
        conn: &Connection,
        cx: &mut Cx<'_, R>,
        why: SendLimit,
    ) {
        self.call.due = false;
        self.validate_bytes(conn, Some(why));
        if why != self.call.waiting {
            cx.emit(|| Event::SendLimited(why));
        }
        self.call.waiting = why;
    }
}
