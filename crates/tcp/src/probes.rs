//! Probes: of a zero window (RFC 9293 section 3.8.6.1; tcp_setpersist and tcp_timer_persist of
//! FreeBSD, tcp_send_probe0 of Linux) and of an idle connection (section 3.8.4; keepalive).

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, SendLimit};
use units::{Duration, Instant};

use crate::connection::Connection;
use crate::profile::ProbeRule;
use crate::send_side::SendSide;
use crate::sender::{ProbeSegment, Sender};
use crate::tcp_state::TcpState;
use crate::timer_outcome::TimerOutcome;
use crate::timers::Timers;

/// FreeBSD: silence of the peer after which the window is no longer probed (TCPTV_KEEP_IDLE, as
/// tcp_maxpersistidle).
const MAX_PERSIST_IDLE: Duration = Duration::from_secs(7_200);

impl SendSide {
    /// Sets the persist timer, unless it runs, if data is waiting, nothing is in flight and the
    /// window prevents sending.
    pub(crate) fn watch_window<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        if self.peer.wnd == 0 && matches!(conn.cfg.profile.probe, ProbeRule::Byte { .. }) {
            // The peer may have closed its window over outstanding data: probe from the head on, as
            // long as there are answers.
            timers.stop(Purpose::Retransmit);
            self.rexmt.shift = 0;
            self.rexmt.timeout_stamp = None;
            if self.nxt > self.una {
                self.nxt = self.una;
                self.rexmt.cause = Cause::WindowProbe;
                cx.emit_with_state(&self.with(conn), || Event::SendLimited(SendLimit::PeerWindow));
            }
        }
        let idle = self.nxt == self.una && !timers.runs(Purpose::Retransmit);
        if idle && !timers.runs(Purpose::Persist) {
            self.rare.probes = 0;
            if self.rare.probing_since.is_some() {
                self.rare.probing_since = None;
            }
            self.probe.persisting = true;
            self.set_window_timer(conn, timers, cx);
        }
    }
}

impl Sender {
    /// Probes the window (tcp_probe_timer; RFC 9293 section 3.8.6.1).
    pub(crate) fn on_zero_window_timer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> TimerOutcome {
        if !self.probe.persisting || self.data_end() == self.una {
            return TimerOutcome::Nothing;
        }
        if self.last.received > self.rare.probed_at {
            self.rare.unanswered_probes = 0;
        }
        if self.probes_timed_out(conn, cx.now)
            || self.probe_limit_reached(conn, cx.now, self.rare.probes)
        {
            return TimerOutcome::GiveUp;
        }
        self.rare.probed_at = cx.now;
        self.probe.segment = Some(match conn.cfg.profile.probe {
            ProbeRule::Byte { .. } => ProbeSegment::Byte,
            // tcp_write_wakeup: the window is open, but too small for the segment.
            ProbeRule::Empty { .. } if self.una + self.peer.wnd > self.nxt => ProbeSegment::Part,
            ProbeRule::Empty { .. } => ProbeSegment::Empty,
        });
        self.rexmt.cause = Cause::WindowProbe;
        if self.probe.segment == Some(ProbeSegment::Part) {
            // The retransmission timer covers this data (tcp_send_probe0).
            self.probe.persisting = false;
            self.call_output();
            return TimerOutcome::Nothing;
        }
        self.rare.probes += 1;
        self.rare.unanswered_probes += 1;
        self.set_window_timer(conn, timers, cx);
        self.call_output();
        TimerOutcome::Nothing
    }

    /// Handles the keepalive timer.
    pub(crate) fn keep_alive(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
    ) -> TimerOutcome {
        let Some(keepalive) = conn.cfg.keepalive.as_deref().copied() else {
            return TimerOutcome::Nothing;
        };
        // tcp_keepalive_timer: "It is alive without keepalive" while data or a FIN is outstanding or
        // unsent.
        // FreeBSD's tcp_timer_keep does not check that.
        let waits = conn.cfg.profile.rules.closing.keepalive_waits_for_data;
        if waits && self.data_end().max(self.max) > self.una {
            timers.set(Purpose::Keepalive, conn.clock.deadline(now, keepalive.idle));
            return TimerOutcome::Nothing;
        }
        let silence = now.since(self.last.received);
        let hopeless = match Duration::from_millis(u64::from(self.rare.user_timeout)) {
            Duration::ZERO => self.rare.unanswered_keepalives == keepalive.count,
            limit => silence >= limit && self.rare.unanswered_keepalives > 0,
        };
        if hopeless {
            return TimerOutcome::DeadPeer;
        }
        self.rare.unanswered_keepalives += 1;
        self.probe.segment = Some(ProbeSegment::Empty);
        self.call_output();
        timers.set(Purpose::Keepalive, conn.clock.deadline(now, keepalive.interval));
        TimerOutcome::Nothing
    }

    /// Restarts the timer of window probes after an acknowledgment that leaves the window shut
    /// (tcp_ack_probe of Linux).
    pub(crate) fn restart_window_timer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        if self.max == self.una && self.data_end() > self.nxt {
            self.set_window_timer(conn, timers, cx);
        }
    }

    fn set_window_timer<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        let doublings = self.rare.probes.min(12);
        let span = match conn.cfg.profile.probe {
            ProbeRule::Byte { min, max } => {
                let base = self.rtt.estimator.srtt().unwrap_or(min);
                base.saturating_mul(1 << doublings).max(min).min(max)
            }
            ProbeRule::Empty { max } => {
                self.rtt.estimator.rto().saturating_mul(1 << doublings).min(max)
            }
        };
        let span = span + self.pacing_delay(conn, cx.now);
        timers.set(Purpose::Persist, self.probe_deadline(conn, cx.now, span));
    }

    /// Is the head of the outstanding data retransmitted as a window probe, since the peer has
    /// closed its window over it (tcp_retransmit_timer of Linux)?
    pub(crate) fn head_probes(&self, conn: &Connection) -> bool {
        let by_head = matches!(conn.cfg.profile.probe, ProbeRule::Empty { .. });
        by_head && self.peer.wnd == 0 && conn.synchronised() && !self.rare.orphaned
    }

    /// Has the peer been silent for too long to go on probing with the head
    /// (tcp_rtx_probe0_timed_out of Linux)?
    pub(crate) fn head_unanswered(&self, conn: &Connection, now: Instant) -> bool {
        let ProbeRule::Empty { max } = conn.cfg.profile.probe else { return false };
        now.since(self.last.received) > max.saturating_mul(2)
    }

    /// Is the limit of unanswered window probes reached (tcp_timer_persist of FreeBSD,
    /// tcp_probe_timer of Linux)? A peer that answers is probed for ever (RFC 1122 section
    /// 4.2.2.17), but by FreeBSD for only a minute once the application has closed.
    /// `probes`: those sent in a row.
    pub(crate) fn probe_limit_reached(&self, conn: &Connection, now: Instant, probes: u32) -> bool {
        let silence = now.since(self.last.received);
        match (conn.cfg.profile.probe, self.rtt.estimator.all_timeouts()) {
            (ProbeRule::Empty { .. }, _) => self.rare.unanswered_probes >= self.retries(conn),
            (ProbeRule::Byte { max, .. }, Some(timeouts)) => {
                (probes >= self.retries(conn) && silence >= timeouts.min(MAX_PERSIST_IDLE))
                    || (self.buffer.fin && silence >= max)
            }
            // RFC 9293 section 3.8.6.1 sets no limit.
            (ProbeRule::Byte { .. }, None) => false,
        }
    }

    /// Restarts the keepalive timer after a segment was received.
    pub(crate) fn rearm_keepalive<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) {
        if let Some(keepalive) = conn.cfg.keepalive.as_deref()
            && conn.state == TcpState::Established
        {
            self.rare.unanswered_keepalives = 0;
            let at = conn.clock.deadline(cx.now, keepalive.idle);
            timers.set(Purpose::Keepalive, at);
        }
    }
}
