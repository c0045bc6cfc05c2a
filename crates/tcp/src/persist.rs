//! The persist timer of FreeBSD's base stack (tcp_setpersist, tcp_timer_persist and `TF_FORCEDATA`
//! of tcp_output). It backs off by `t_rxtshift`, as the retransmission timer does, and runs until a
//! segment is sent to an open window; a window that is too small does not stop it.

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, SendLimit};
use recovery::RttEstimator;
use units::Instant;

use crate::connection::Connection;
use crate::loss::LossDetector;
use crate::profile::ProbeRule;
use crate::sender::{ProbeSegment, Sender};
use crate::state::SendSide;
use crate::timer_outcome::TimerOutcome;
use crate::timers::Timers;

impl SendSide {
    /// Handles a zero window in tcp_output while data is waiting: pulls `snd_nxt` back to
    /// `snd_una`.
    pub(crate) fn shut_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        let LossDetector::Sack(loss) = &self.loss_detector else { return };
        if timers.runs(Purpose::Persist) && !loss.rule().output_ends_persist_backoff {
            return;
        }
        timers.stop(Purpose::Retransmit);
        self.rexmt.shift = 0;
        if self.nxt > self.una {
            self.nxt = self.una;
            self.rexmt.cause = Cause::WindowProbe;
            cx.emit_with_state(&self.with(conn), || Event::SendLimited(SendLimit::PeerWindow));
        }
        if !timers.runs(Purpose::Persist) {
            self.set_persist(conn, timers, cx.now);
        }
    }
}

impl Sender {
    /// tcp_timer_persist: forces the bytes that the window allows, or one byte into a zero window.
    pub(crate) fn on_persist_timer(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) -> TimerOutcome {
        if self.probe_limit_reached(conn, now, self.rexmt.shift) {
            return TimerOutcome::GiveUp;
        }
        self.rare.probes += 1;
        self.set_persist(conn, timers, now);
        self.probe.segment = Some(ProbeSegment::Byte);
        self.rexmt.cause = Cause::WindowProbe;
        self.call_output();
        TimerOutcome::Nothing
    }

    /// tcp_setpersist.
    pub(crate) fn set_persist(&mut self, conn: &Connection, timers: &mut Timers, now: Instant) {
        let ProbeRule::Byte { min, max } = conn.cfg.profile.probe else { return };
        let RttEstimator::FreeBsd(rtt) = &self.rtt.estimator else { return };
        let span = rtt.persist(self.rexmt.shift).max(min).min(max);
        self.rexmt.timeout_stamp = None;
        self.probe.persisting = true;
        timers.set(Purpose::Persist, conn.clock.deadline(now, span));
        if self.rexmt.shift < self.retries(conn) {
            self.rexmt.shift += 1;
        }
    }

    /// Does the persist timer force a segment (`TF_FORCEDATA`)?
    pub(crate) fn forces_data(&self) -> bool {
        self.probe.segment == Some(ProbeSegment::Byte)
    }

    /// Ends persist mode: data is sent to an open window.
    pub(crate) fn end_persist(&mut self, timers: &mut Timers) {
        timers.stop(Purpose::Persist);
        self.probe.persisting = false;
        self.rare.probes = 0;
        self.rexmt.shift = 0;
    }
}
