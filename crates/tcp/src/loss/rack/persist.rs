//! The persist timer of the RACK stack (rack_enter_persist, rack_timeout_persist,
//! rack_exit_persist of tcp_stacks/rack.c). A probe is a keepalive: an empty segment with the
//! sequence number `snd_una - 1`. Persist mode ends only once the window is as large as half the
//! largest one that the peer has advertised, or a segment: a smaller one is probed for ever.

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, SendLimit};
use recovery::RttEstimator;
use units::Instant;

use crate::connection::Connection;
use crate::sender::{ProbeSegment, Sender};
use crate::state::SendSide;
use crate::timer_outcome::TimerOutcome;
use crate::timers::Timers;

impl SendSide {
    /// Enters persist mode if data waits for a window that is too small, and nothing is in flight or
    /// the window was closed over it.
    pub(crate) fn watch_rack_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        let waits = self.buffer.used() > self.peer.wnd;
        if self.probe.persisting || !waits || !self.is_shut_for_rack(conn, self.peer.wnd) {
            return;
        }
        if self.max > self.una && self.peer.wnd > 0 {
            return;
        }
        if self.nxt > self.una {
            self.nxt = self.una;
            cx.emit_with_state(&self.with(conn), || Event::SendLimited(SendLimit::PeerWindow));
        }
        self.rexmt.cause = Cause::WindowProbe;
        timers.stop(Purpose::Retransmit);
        self.remove_from_wheel(timers);
        self.rexmt.timeout_stamp = None;
        self.rexmt.shift = 0;
        self.probe.persisting = true;
        self.rare.unanswered_probes = 0;
        self.set_rack_persist(conn, timers, cx.now);
    }
}

impl Sender {
    /// rack_timeout_persist.
    pub(crate) fn on_rack_persist_timer(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) -> TimerOutcome {
        if !self.probe.persisting {
            return TimerOutcome::Nothing;
        }
        if self.probe_limit_reached(conn, now, self.rexmt.shift) {
            return TimerOutcome::GiveUp;
        }
        if self.buffer.used() == 0 && self.una == self.max {
            self.exit_rack_persist(timers);
            return TimerOutcome::Nothing;
        }
        self.rare.probes += 1;
        self.rare.unanswered_probes += 1;
        self.probe.segment = Some(ProbeSegment::Empty);
        self.lengthen_rack_persist(conn);
        self.set_rack_persist(conn, timers, now);
        self.call_output();
        TimerOutcome::Nothing
    }

    /// Is a window too small to leave persist mode?
    pub(crate) fn is_shut_for_rack(&self, conn: &Connection, wnd: u64) -> bool {
        wnd < (self.peer.max_wnd.max(wnd) / 2).min(conn.mss())
    }

    /// Sets the timer (rack_get_persists_timer_val).
    fn set_rack_persist(&mut self, conn: &Connection, timers: &mut Timers, now: Instant) {
        let RttEstimator::Rack(rtt) = &self.rtt.estimator else { return };
        timers.set(Purpose::Persist, now + rtt.persist(self.rexmt.shift));
        self.lengthen_rack_persist(conn);
    }

    fn lengthen_rack_persist(&mut self, conn: &Connection) {
        if self.rexmt.shift < self.retries(conn) {
            self.rexmt.shift += 1;
        }
    }

    /// A segment arrived: it answers a probe (rack_handle_probe_response).
    pub(crate) fn answer_rack_probe(&mut self) {
        if self.probe.persisting && self.rare.unanswered_probes > 0 {
            self.rare.unanswered_probes = 0;
            self.rexmt.shift = 0;
        }
    }

    /// rack_exit_persist.
    pub(crate) fn exit_rack_persist(&mut self, timers: &mut Timers) {
        self.probe.persisting = false;
        self.rexmt.shift = 0;
        timers.stop(Purpose::Persist);
        self.call_output();
    }
}
