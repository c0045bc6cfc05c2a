//! The persist timer of FreeBSD's base stack (tcp_setpersist, tcp_timer_persist and `TF_FORCEDATA`
//! of tcp_output). It backs off by `t_rxtshift`, as the retransmission timer does, and runs until a
//! segment is sent to an open window; a window that is too small does not stop it.

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, SendLimit};
use recovery::RttEstimator;
use units::Instant;

use super::FreeBsd;
use crate::connection::Connection;
use crate::profile::ProbeRule;
use crate::sender::ProbeSegment;
use crate::timer_outcome::TimerOutcome;
use crate::timers::Timers;

impl FreeBsd<'_> {
    /// Handles a zero window in tcp_output while data is waiting: pulls `snd_nxt` back to
    /// `snd_una`.
    pub(super) fn shut_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        if timers.runs(Purpose::Persist) && !self.state.rule().output_ends_persist_backoff {
            return;
        }
        timers.stop(Purpose::Retransmit);
        self.snd.rexmt.shift = 0;
        if self.snd.nxt > self.snd.una {
            self.snd.nxt = self.snd.una;
            self.snd.rexmt.cause = Cause::WindowProbe;
            cx.emit_with_state(&self.snd.with(conn), || Event::SendLimited(SendLimit::PeerWindow));
        }
        if !timers.runs(Purpose::Persist) {
            self.setpersist(conn, timers, cx.now);
        }
    }

    /// tcp_timer_persist: forces the bytes that the window allows, or one byte into a zero window.
    pub(crate) fn timer_persist(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) -> TimerOutcome {
        if self.snd.probe_limit_reached(conn, now, self.snd.rexmt.shift) {
            return TimerOutcome::GiveUp;
        }
        self.snd.rare.probes += 1;
        self.setpersist(conn, timers, now);
        self.snd.probe.segment = Some(ProbeSegment::Byte);
        self.snd.rexmt.cause = Cause::WindowProbe;
        self.snd.call_output();
        TimerOutcome::Nothing
    }

    /// tcp_setpersist.
    pub(super) fn setpersist(&mut self, conn: &Connection, timers: &mut Timers, now: Instant) {
        let ProbeRule::Byte { min, max } = conn.cfg.profile.probe else { return };
        let RttEstimator::FreeBsd(rtt) = &self.snd.rtt.estimator else { return };
        let span = rtt.persist(self.snd.rexmt.shift).max(min).min(max);
        self.snd.rexmt.timeout_stamp = None;
        self.snd.probe.persisting = true;
        timers.set(Purpose::Persist, conn.clock.deadline(now, span));
        if self.snd.rexmt.shift < self.snd.retries(conn) {
            self.snd.rexmt.shift += 1;
        }
    }

    /// Does the persist timer force a segment (`TF_FORCEDATA`)?
    pub(super) fn forces_data(&self) -> bool {
        self.snd.probe.segment == Some(ProbeSegment::Byte)
    }

    /// Ends persist mode: data is sent to an open window.
    pub(super) fn end_persist(&mut self, timers: &mut Timers) {
        timers.stop(Purpose::Persist);
        self.snd.probe.persisting = false;
        self.snd.rare.probes = 0;
        self.snd.rexmt.shift = 0;
    }
}
