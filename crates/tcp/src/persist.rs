//! The persist timer of FreeBSD's base stack (tcp_setpersist, tcp_timer_persist and `TF_FORCEDATA` of
//! tcp_output). It backs off by `t_rxtshift`, as the retransmission timer does, and runs until a segment is
//! sent to an open window: one that is too small does not stop it.

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, Waiting};
use recovery::RttEstimator;
use units::Instant;

use crate::endpoint::Endpoint;
use crate::probes::Probe;
use crate::profile::ProbeRule;

impl Endpoint {
    /// tcp_output finds the window shut over data that waits: it takes back what is outstanding.
    pub(crate) fn shut_window<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        self.timers.stop(Purpose::Retransmit);
        self.snd.shift = 0;
        if self.snd.nxt > self.snd.una {
            self.snd.nxt = self.snd.una;
            self.snd.resend_cause = Cause::WindowProbe;
            cx.emit_of(self, || Event::Waiting(Waiting::PeerWindow));
        }
        if !self.timers.runs(Purpose::Persist) {
            self.set_persist(cx.now);
        }
    }

    /// tcp_setpersist.
    pub(crate) fn set_persist(&mut self, now: Instant) {
        let ProbeRule::Byte { min, max } = self.cfg.profile.probe else { return };
        let RttEstimator::FreeBsd(rtt) = &self.rtt else { return };
        let span = rtt.persist(self.snd.shift).max(min).min(max);
        self.snd.timeout_stamp = None;
        self.snd.persisting = true;
        self.timers.set(Purpose::Persist, self.clock.deadline(now, span));
        if self.snd.shift < self.retries() {
            self.snd.shift += 1;
        }
    }

    /// tcp_timer_persist: forces what the window takes, or a byte where it takes nothing.
    pub(crate) fn on_persist_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.asked_enough(cx.now) {
            self.give_up(cx);
            return;
        }
        self.snd.asked.probes += 1;
        self.set_persist(cx.now);
        self.snd.probe = Some(Probe::Byte);
        self.snd.resend_cause = Cause::WindowProbe;
        self.call_output();
    }

    /// The persist timer forces a segment (`TF_FORCEDATA`).
    pub(crate) fn forces_data(&self) -> bool {
        self.snd.probe == Some(Probe::Byte)
    }

    /// Something is sent to an open window.
    pub(crate) fn end_persist(&mut self) {
        self.timers.stop(Purpose::Persist);
        self.snd.persisting = false;
        self.snd.asked.probes = 0;
        self.snd.shift = 0;
    }
}
