//! The end of a connection: FINs, TIME-WAIT, and aborts.

use core::hint::cold_path;

use machine::{Cx, Signal};
use packet::Segment;
use record::{Event, Purpose, Recorder};
use recovery::lazy::LazyBox;
use units::Offset;

use crate::ack_policy::AckDecision;
use crate::endpoint::TcpEndpoint;
use crate::profile::TimeWaitRule;
use crate::tcp_state::TcpState;

impl TcpEndpoint {
    /// Processes the peer's FIN once all data before it has arrived; `had_gap`: data or the FIN
    /// itself had arrived out of order.
    pub(super) fn take_fin<R: Recorder>(&mut self, cx: &mut Cx<'_, R>, had_gap: bool) {
        if self.rcv.fin != Some(self.rcv.nxt) {
            return;
        }
        cold_path();
        self.rcv.nxt += 1;
        self.conn.state = match self.conn.state {
            TcpState::Established => TcpState::CloseWait,
            TcpState::FinWait1 => TcpState::Closing,
            TcpState::FinWait2 => {
                self.enter_time_wait(cx);
                TcpState::TimeWait
            }
            other => other,
        };
        self.signal(Signal::Readable);
        // Linux expects the application to close soon, too (tcp_fin).
        let decision = match self.conn.state {
            TcpState::CloseWait if !had_gap => {
                self.rcv.on_fin(&self.conn, &self.snd.rtt.estimator, cx.now)
            }
            _ => None,
        };
        match decision {
            Some(AckDecision::Within(span)) => {
                self.rcv.ack_now = false;
                if self.rcv.delay_ack(&self.conn, &mut self.timers, cx.now, span) {
                    self.ack_at_once();
                }
            }
            _ => self.ack_at_once(),
        }
    }

    /// Ends the connection with a RST if `segment` brings data that can no longer be read, after our FIN
    /// (`TCPABORTONDATA` of tcp_rcv_state_process; tcp_do_segment of FreeBSD); `seq` is its sequence number.
    pub(super) fn refuses_data<R: Recorder>(
        &mut self,
        cx: &mut Cx<'_, R>,
        segment: &Segment,
        seq: Offset,
    ) -> bool {
        let awaits = matches!(self.conn.state, TcpState::FinWait1 | TcpState::FinWait2);
        let new = seq + u64::from(segment.payload) > self.rcv.nxt;
        let refuses = awaits && new && self.snd.rare.receive_shut;
        if refuses {
            self.abort(cx);
            self.answer_with_reset(segment);
        }
        refuses
    }

    /// Handles the acknowledgment of our FIN.
    #[cold]
    pub(crate) fn on_fin_acked<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        match self.conn.state {
            TcpState::FinWait1 => {
                self.conn.state = TcpState::FinWait2;
                if self.snd.rare.orphaned && self.conn.cfg.profile.rules.closing.orphan_times_out {
                    // tcp_fin_timeout
                    let at = self.conn.clock.deadline(cx.now, self.conn.cfg.profile.time_wait);
                    self.timers.set(Purpose::TimeWait, at);
                }
            }
            TcpState::Closing => {
                self.conn.state = TcpState::TimeWait;
                self.enter_time_wait(cx);
            }
            TcpState::LastAck => {
                self.conn.state = TcpState::Closed;
                self.timers.stop_all();
                cx.emit(|| Event::Closed);
                self.signal(Signal::Closed);
            }
            _ => {}
        }
    }

    pub(super) fn enter_time_wait<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let orphan = self.conn.state == TcpState::FinWait2;
        let first = !self.timers.runs(Purpose::TimeWait) || orphan;
        self.timers.stop_all();
        let at = self.conn.clock.deadline(cx.now, self.conn.cfg.profile.time_wait);
        self.timers.set(Purpose::TimeWait, at);
        if first {
            if self.conn.cfg.profile.rules.closing.time_wait == TimeWaitRule::SmallSocket {
                // The small socket of TIME-WAIT counts its answers anew (tcp_time_wait).
                self.challenge = LazyBox::default();
            }
            cx.emit(|| Event::Closed);
            self.signal(Signal::Closed);
        }
    }

    pub(crate) fn abort<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.conn.state = TcpState::Closed;
        self.timers.stop_all();
        cx.emit(|| Event::Aborted);
        self.signal(Signal::Aborted);
    }
}
