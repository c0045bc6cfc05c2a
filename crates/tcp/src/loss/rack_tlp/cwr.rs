//! The window reduction that an ECN echo causes on Linux.
//!
//! Source: tcp_input.c of Linux 6.12 (tcp_try_to_open, tcp_enter_cwr, tcp_init_cwnd_reduction,
//! tcp_end_cwnd_reduction): the state CWR, in which PRR reduces the window as in a recovery, until
//! data sent after the echo is acknowledged. What an echo has proven is never undone.

use core::hint::cold_path;

use cc::{CongestionSignal as Sign, Controller, WindowChange};
use machine::Cx;
use packet::Segment;
use record::{Cause, Recorder};
use recovery::sendmap::SendMap;
use units::Bytes;

use super::detector::RackDetector;
use super::prr_state::PrrState;
use super::recovery_state::any_retransmitted;
use super::state::RackTlpState;
use crate::connection::Connection;
use crate::send_side::SendSide;

/// The connection when congestion is echoed.
#[derive(Debug, Clone, Copy)]
struct CwrInput {
    /// A window reduction is in progress.
    reducing: bool,
    /// The controller sets the window itself.
    rate_based: bool,
    window: Bytes,
    mss: u64,
}

impl RackTlpState {
    /// Begins the reduction for an echo, unless one is in progress; returns whether it did.
    fn enter_cwr(&mut self, map: &SendMap, input: &CwrInput) -> bool {
        self.episode.proven = true;
        if input.reducing || self.episode.timeout_until.is_some() {
            return false;
        }
        self.tlp.forget();
        self.episode.undo.forget(any_retransmitted(map));
        self.episode.prr = match input.rate_based {
            true => PrrState::Controller,
            false => self.detector.new_prr(&map.sums(), input.window.get(), input.mss),
        };
        true
    }

    /// The reduction is undone (tcp_undo_cwnd_reduction); returns whether an echo has proven
    /// congestion.
    fn on_undo(&mut self) -> bool {
        match &mut self.detector {
            RackDetector::Linux(rack) => {
                rack.on_undo();
                self.episode.proven
            }
            RackDetector::Rfc(_) | RackDetector::External(_) => false,
        }
    }
}

impl SendSide {
    /// Does an acknowledgment of Linux's sender echo congestion? Without anything in flight it does not (`no_queue` of
    /// tcp_ack).
    #[inline]
    pub(super) fn echoes_congestion(&self, segment: &Segment) -> bool {
        self.has_one_timer() && self.ecn.echoed(segment.flags) && self.max > self.una
    }

    /// Handles an echo, after the losses of its acknowledgment: enters CWR, unless a window
    /// reduction is in progress.
    #[cold]
    pub(super) fn enter_cwr<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let input = CwrInput {
            reducing: self.cc.in_recovery() || self.rexmt.cwr_end.is_some(),
            rate_based: self.is_rate_based(),
            window: self.cc.control().window,
            mss: conn.mss(),
        };
        let Some(loss) = self.stack.rack_tlp() else { return };
        if !loss.enter_cwr(&self.sender.scoreboard, &input) {
            return;
        }
        self.sender.show_controller(conn, cx.now, self.sender.una);
        let change = self.sender.cc.on_congested(&self.sender.congested(conn, cx.now, Sign::Ecn));
        self.rexmt.cwr_end = Some(self.max);
        self.ecn.on_reduced();
        self.note(conn, cx, change, Cause::Ecn);
    }

    /// The controller has reduced the window by itself: the stack limits what is sent as after an echo (tcp_enter_cwr).
    #[cold]
    pub(super) fn begin_own_cwr<R: Recorder>(&mut self, conn: &Connection, cx: &mut Cx<'_, R>) {
        let input = CwrInput {
            reducing: self.rexmt.cwr_end.is_some(),
            rate_based: self.is_rate_based(),
            window: self.cc.control().window,
            mss: conn.mss(),
        };
        let Some(loss) = self.stack.rack_tlp() else { return };
        if !loss.enter_cwr(&self.sender.scoreboard, &input) {
            return;
        }
        self.rexmt.cwr_end = Some(self.max);
        self.ecn.on_reduced();
        self.note(conn, cx, WindowChange::RecoveryBegan, Cause::Avoidance);
    }

    /// tcp_undo_cwnd_reduction: restores window and threshold, unless an echo has proven congestion.
    pub(super) fn undo_reduction(
        &mut self,
        conn: &Connection,
        now: units::Instant,
        sign: Sign,
    ) -> WindowChange {
        let proven = self.stack.rack_tlp().is_some_and(RackTlpState::on_undo);
        if proven {
            cold_path();
            self.cc.leave_recovery();
            return WindowChange::Undone;
        }
        self.ecn.withdraw();
        self.sender.cc.on_congested(&self.sender.congested(conn, now, sign))
    }
}
