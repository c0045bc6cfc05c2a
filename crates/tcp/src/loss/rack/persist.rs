//! The persist timer of the RACK stack (rack_enter_persist, rack_timeout_persist,
//! rack_exit_persist of tcp_stacks/rack.c). A probe is a keepalive: an empty segment with the
//! sequence number `snd_una - 1`. Persist mode ends only once the window is as large as half the
//! largest one that the peer has advertised, or a segment: a smaller one is probed for ever.

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, SendLimit};
use recovery::RttEstimator;
use units::Instant;

use crate::endpoint::TcpEndpoint;
use crate::state::ProbeSegment;

impl TcpEndpoint {
    /// Is a window too small to leave persist mode?
    pub(crate) fn is_shut_for_rack(&self, wnd: u64) -> bool {
        wnd < (self.snd.peer.max_wnd.max(wnd) / 2).min(self.mss())
    }

    /// Enters persist mode if data waits for a window that is too small, and nothing is in flight or
    /// the window was closed over it.
    pub(crate) fn watch_rack_window<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let waits = self.snd.buffer.used() > self.snd.peer.wnd;
        if self.snd.probe.persisting || !waits || !self.is_shut_for_rack(self.snd.peer.wnd) {
            return;
        }
        if self.snd.max > self.snd.una && self.snd.peer.wnd > 0 {
            return;
        }
        if self.snd.nxt > self.snd.una {
            self.snd.nxt = self.snd.una;
            cx.emit_with_state(self, || Event::SendLimited(SendLimit::PeerWindow));
        }
        self.snd.rexmt.cause = Cause::WindowProbe;
        self.timers.stop(Purpose::Retransmit);
        self.remove_from_wheel();
        self.snd.rexmt.timeout_stamp = None;
        self.snd.rexmt.shift = 0;
        self.snd.probe.persisting = true;
        self.snd.rare.unanswered_probes = 0;
        self.set_rack_persist(cx.now);
    }

    /// Sets the timer (rack_get_persists_timer_val).
    fn set_rack_persist(&mut self, now: Instant) {
        let RttEstimator::Rack(rtt) = &self.rtt else { return };
        self.timers.set(Purpose::Persist, now + rtt.persist(self.snd.rexmt.shift));
        self.lengthen_rack_persist();
    }

    fn lengthen_rack_persist(&mut self) {
        if self.snd.rexmt.shift < self.retries() {
            self.snd.rexmt.shift += 1;
        }
    }

    /// rack_timeout_persist.
    pub(crate) fn on_rack_persist_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if !self.snd.probe.persisting {
            return;
        }
        if self.probe_limit_reached(cx.now) {
            self.give_up(cx);
            return;
        }
        if self.snd.buffer.used() == 0 && self.snd.una == self.snd.max {
            self.exit_rack_persist();
            return;
        }
        self.snd.rare.probes += 1;
        self.snd.rare.unanswered_probes += 1;
        self.snd.probe.segment = Some(ProbeSegment::Empty);
        self.lengthen_rack_persist();
        self.set_rack_persist(cx.now);
        self.call_output();
    }

    /// A segment arrived: it answers a probe (rack_handle_probe_response).
    pub(crate) fn answer_rack_probe(&mut self) {
        if self.snd.probe.persisting && self.snd.rare.unanswered_probes > 0 {
            self.snd.rare.unanswered_probes = 0;
            self.snd.rexmt.shift = 0;
        }
    }

    /// rack_exit_persist.
    pub(crate) fn exit_rack_persist(&mut self) {
        self.snd.probe.persisting = false;
        self.snd.rexmt.shift = 0;
        self.timers.stop(Purpose::Persist);
        self.call_output();
    }
}
