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

use super::detector::RackDetector;
use super::prr_state::PrrState;
use super::recovery_state::any_retransmitted;
use crate::endpoint::TcpEndpoint;
use crate::loss::LossDetector;

impl TcpEndpoint {
    /// Does an acknowledgment of Linux's sender echo congestion? Without anything in flight it does not (`no_queue` of
    /// tcp_ack).
    #[inline]
    pub(super) fn echoes_congestion(&self, segment: &Segment) -> bool {
        self.has_one_timer() && self.ecn.echoed(segment.flags) && self.snd.max > self.snd.una
    }

    /// Handles an echo, after the losses of its acknowledgment: enters CWR, unless a window
    /// reduction is in progress.
    #[cold]
    pub(super) fn enter_cwr<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let control = self.cc.control();
        let flight = self.snd.scoreboard.sums();
        let (mss, whole) = (self.mss(), self.is_rate_based());
        let in_recovery = self.cc.in_recovery();
        let reducing = in_recovery || self.snd.rexmt.cwr_end.is_some();
        let outstanding = any_retransmitted(&self.snd.scoreboard);
        let Some(loss) = self.snd.loss_detector.rack_tlp() else { return };
        loss.episode.proven = true;
        if reducing || loss.episode.timeout_until.is_some() {
            return;
        }
        loss.tlp.forget();
        loss.episode.undo.forget(outstanding);
        loss.episode.prr = match whole {
            true => PrrState::Controller,
            false => loss.detector.new_prr(&flight, control.window.get(), mss),
        };
        let change = self.cc.on_congested(&self.congested(cx.now, Sign::Ecn));
        self.snd.rexmt.cwr_end = Some(self.snd.max);
        self.ecn.on_reduced();
        self.note(cx, change, Cause::Ecn);
    }

    /// Losses were found in CWR: the recovery is the rest of the same reduction (tcp_enter_recovery).
    /// Returns false in other states, and on other systems.
    pub(super) fn continue_cwr(&mut self) -> bool {
        if self.snd.rexmt.cwr_end.is_none() || !self.has_one_timer() {
            return false;
        }
        cold_path();
        self.snd.rexmt.cwr_end = None;
        true
    }

    /// tcp_undo_cwnd_reduction: restores window and threshold, unless an echo has proven congestion.
    pub(super) fn undo_reduction(&mut self, now: units::Instant, sign: Sign) -> WindowChange {
        let proven = match &mut self.snd.loss_detector {
            LossDetector::RackTlp(loss) => match &mut loss.detector {
                RackDetector::Linux(rack) => {
                    rack.on_undo();
                    loss.episode.proven
                }
                RackDetector::Rfc(_) => false,
            },
            _ => false,
        };
        if proven {
            cold_path();
            self.cc.leave_recovery();
            return WindowChange::Undone;
        }
        self.ecn.withdraw();
        self.cc.on_congested(&self.congested(now, sign))
    }
}
