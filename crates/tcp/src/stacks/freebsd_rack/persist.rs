//! The persist timer of the RACK stack (rack_enter_persist, rack_timeout_persist,
//! rack_exit_persist of tcp_stacks/rack.c). A probe is a keepalive: an empty segment with the
//! sequence number `snd_una - 1`. Persist mode ends only once the window is as large as half the
//! largest one that the peer has advertised, or a segment: a smaller one is probed for ever.

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, SendLimit};
use recovery::RttEstimator;
use units::Instant;

use super::FreeBsdRack;
use crate::connection::Connection;
use crate::sender::ProbeSegment;
use crate::timer_outcome::TimerOutcome;
use crate::timers::Timers;

impl FreeBsdRack<'_> {
    /// Enters persist mode if data waits for a window that is too small, and nothing is in flight or
    /// the window was closed over it.
    pub(super) fn watch_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        let waits = self.snd.buffer.used() > self.snd.peer.wnd;
        if self.snd.probe.persisting || !waits || !self.is_shut(conn, self.snd.peer.wnd) {
            return;
        }
        if self.snd.max > self.snd.una && self.snd.peer.wnd > 0 {
            return;
        }
        if self.snd.nxt > self.snd.una {
            self.snd.nxt = self.snd.una;
            cx.emit_with_state(&self.snd.with(conn), || Event::SendLimited(SendLimit::PeerWindow));
        }
        self.snd.rexmt.cause = Cause::WindowProbe;
        timers.stop(Purpose::Retransmit);
        self.remove_from_wheel(timers);
        self.snd.rexmt.timeout_stamp = None;
        self.snd.rexmt.shift = 0;
        self.snd.probe.persisting = true;
        self.snd.rare.unanswered_probes = 0;
        self.set_persist(conn, timers, cx.now);
    }

    /// rack_timeout_persist.
    pub(crate) fn timeout_persist(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) -> TimerOutcome {
        if !self.snd.probe.persisting {
            return TimerOutcome::Nothing;
        }
        if self.snd.probe_limit_reached(conn, now, self.snd.rexmt.shift) {
            return TimerOutcome::GiveUp;
        }
        if self.snd.buffer.used() == 0 && self.snd.una == self.snd.max {
            self.exit_persist(timers);
            return TimerOutcome::Nothing;
        }
        self.snd.rare.probes += 1;
        self.snd.rare.unanswered_probes += 1;
        self.snd.probe.segment = Some(ProbeSegment::Empty);
        self.lengthen_persist(conn);
        self.set_persist(conn, timers, now);
        self.snd.call_output();
        TimerOutcome::Nothing
    }

    /// Is a window too small to leave persist mode?
    pub(super) fn is_shut(&self, conn: &Connection, wnd: u64) -> bool {
        wnd < (self.snd.peer.max_wnd.max(wnd) / 2).min(conn.mss())
    }

    /// Sets the timer (rack_get_persists_timer_val).
    fn set_persist(&mut self, conn: &Connection, timers: &mut Timers, now: Instant) {
        let RttEstimator::Rack(rtt) = &self.snd.rtt.estimator else { return };
        timers.set(Purpose::Persist, now + rtt.persist(self.snd.rexmt.shift));
        self.lengthen_persist(conn);
    }

    fn lengthen_persist(&mut self, conn: &Connection) {
        if self.snd.rexmt.shift < self.snd.retries(conn) {
            self.snd.rexmt.shift += 1;
        }
    }

    /// A segment arrived: it answers a probe (rack_handle_probe_response).
    pub(super) fn handle_probe_response(&mut self) {
        if self.snd.probe.persisting && self.snd.rare.unanswered_probes > 0 {
            self.snd.rare.unanswered_probes = 0;
            self.snd.rexmt.shift = 0;
        }
    }

    /// rack_exit_persist.
    pub(super) fn exit_persist(&mut self, timers: &mut Timers) {
        self.snd.probe.persisting = false;
        self.snd.rexmt.shift = 0;
        timers.stop(Purpose::Persist);
        self.snd.call_output();
    }

    /// rack_timeout_keepalive: measures the silence, and waits for `keepidle` after a probe, too. It
    /// runs only if no other timer does (rack_start_hpts_timer).
    pub(crate) fn timeout_keepalive(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) -> TimerOutcome {
        let Some(keepalive) = conn.cfg.keepalive.as_deref().copied() else {
            return TimerOutcome::Nothing;
        };
        let next = conn.clock.deadline(now, keepalive.idle);
        if self.snd.data_end().max(self.snd.max) > self.snd.una {
            timers.set(Purpose::Keepalive, next);
            return TimerOutcome::Nothing;
        }
        let silence = now.since(self.snd.last.received);
        let most = keepalive.interval.saturating_mul(u64::from(keepalive.count));
        if silence.saturating_sub(keepalive.idle) >= most {
            return TimerOutcome::DeadPeer;
        }
        self.snd.rare.unanswered_keepalives += 1;
        self.snd.probe.segment = Some(ProbeSegment::Empty);
        self.snd.call_output();
        timers.set(Purpose::Keepalive, next);
        TimerOutcome::Nothing
    }
}
