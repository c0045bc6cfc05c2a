//! The persist timer of FreeBSD's base stack (tcp_setpersist, tcp_timer_persist and `TF_FORCEDATA`
//! of tcp_output). It backs off by `t_rxtshift`, as the retransmission timer does, and runs until a
//! segment is sent to an open window; a window that is too small does not stop it.

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, SendLimit};
use recovery::RttEstimator;
use units::Instant;

use crate::endpoint::TcpEndpoint;
use crate::loss::LossDetector;
use crate::profile::ProbeRule;
use crate::state::ProbeSegment;

impl TcpEndpoint {
    /// Handles a zero window in tcp_output while data is waiting: pulls `snd_nxt` back to
    /// `snd_una`.
    pub(crate) fn shut_window<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let LossDetector::Sack(loss) = &self.snd.loss_detector else { return };
        if self.timers.runs(Purpose::Persist) && !loss.rule().output_ends_persist_backoff {
            return;
        }
        self.timers.stop(Purpose::Retransmit);
        self.snd.rexmt.shift = 0;
        if self.snd.nxt > self.snd.una {
            self.snd.nxt = self.snd.una;
            self.snd.rexmt.cause = Cause::WindowProbe;
            cx.emit_with_state(self, || Event::SendLimited(SendLimit::PeerWindow));
        }
        if !self.timers.runs(Purpose::Persist) {
            self.set_persist(cx.now);
        }
    }

    /// tcp_setpersist.
    pub(crate) fn set_persist(&mut self, now: Instant) {
        let ProbeRule::Byte { min, max } = self.cfg.profile.probe else { return };
        let RttEstimator::FreeBsd(rtt) = &self.rtt else { return };
        let span = rtt.persist(self.snd.rexmt.shift).max(min).min(max);
        self.snd.rexmt.timeout_stamp = None;
        self.snd.probe.persisting = true;
        self.timers.set(Purpose::Persist, self.clock.deadline(now, span));
        if self.snd.rexmt.shift < self.retries() {
            self.snd.rexmt.shift += 1;
        }
    }

    /// tcp_timer_persist: forces the bytes that the window allows, or one byte into a zero window.
    pub(crate) fn on_persist_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.probe_limit_reached(cx.now) {
            self.give_up(cx);
            return;
        }
        self.snd.rare.probes += 1;
        self.set_persist(cx.now);
        self.snd.probe.segment = Some(ProbeSegment::Byte);
        self.snd.rexmt.cause = Cause::WindowProbe;
        self.call_output();
    }

    /// Does the persist timer force a segment (`TF_FORCEDATA`)?
    pub(crate) fn forces_data(&self) -> bool {
        self.snd.probe.segment == Some(ProbeSegment::Byte)
    }

    /// Ends persist mode: data is sent to an open window.
    pub(crate) fn end_persist(&mut self) {
        self.timers.stop(Purpose::Persist);
        self.snd.probe.persisting = false;
        self.snd.rare.probes = 0;
        self.snd.rexmt.shift = 0;
    }
}
