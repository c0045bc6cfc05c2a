//! The retransmission timeout (tcp_timer_rexmt).

use cc::{CongestionSignal as Sign, Controller};
use machine::Cx;
use record::{Cause, Recorder};

use super::FreeBsd;
use crate::connection::Connection;
use crate::timer_outcome::TimerOutcome;
use crate::timers::Timers;

impl FreeBsd<'_> {
    /// tcp_timer_rexmt: updates the scoreboard before it signals congestion, and forces a segment.
    pub(crate) fn timer_rexmt<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> TimerOutcome {
        self.snd.rexmt.shift += 1;
        let shift = self.snd.rexmt.shift;
        if shift > self.snd.retries(conn) {
            return TimerOutcome::GiveUp;
        }
        self.snd.totals.timeouts += 1;
        self.snd.begin_tx_sample(conn, cx.now, false, self.snd.scoreboard.sums().all.packets);
        self.snd.rtt.estimator.on_timeout(shift);
        self.snd.rtt.timing = None;
        self.snd.rexmt.dup_acks = 0;
        let undoes = conn.cfg.profile.rules.sending.undoes_timeout_by_echo;
        if shift == 1 && conn.negotiated.timestamps && undoes {
            self.snd.rexmt.timeout_stamp = Some(conn.clock.timestamp(cx.now));
        }
        if shift > 1 {
            self.snd.rexmt.timeout_stamp = None;
        }
        self.timeout_scoreboard();
        self.snd.show_controller(conn, cx.now, self.snd.una);
        let signal = Sign::Timeout { shift };
        let change = self.snd.cc.on_congested(&self.snd.congested(conn, cx.now, signal));
        self.snd.note(conn, cx, change, Cause::Timeout);
        self.snd.rexmt.cwr_end = None;
        self.snd.nxt = self.snd.una;
        self.snd.rexmt.cause = Cause::Timeout;
        self.snd.arm_after_timeout(conn, timers, cx.now, 0);
        self.snd.call_output();
        TimerOutcome::AckNow
    }
}
