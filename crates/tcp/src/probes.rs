//! Probes: of a zero window (RFC 9293 section 3.8.6.1; tcp_setpersist and tcp_timer_persist of
//! FreeBSD, tcp_send_probe0 of Linux) and of an idle connection (section 3.8.4; keepalive).

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, SendLimit};
use units::{Duration, Instant};

use crate::endpoint::{TcpEndpoint, TcpState};
use crate::loss::LossDetector;
use crate::profile::ProbeRule;
use crate::state::ProbeSegment;

/// FreeBSD: silence of the peer after which the window is no longer probed (TCPTV_KEEP_IDLE, as
/// tcp_maxpersistidle).
const MAX_PERSIST_IDLE: Duration = Duration::from_secs(7_200);

impl TcpEndpoint {
    /// Sets the persist timer, unless it runs, if data is waiting, nothing is in flight and the
    /// window prevents sending.
    pub(crate) fn watch_window<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.is_rack() {
            self.watch_rack_window(cx);
            return;
        }
        if self.snd.peer.wnd == 0 && matches!(self.cfg.profile.probe, ProbeRule::Byte { .. }) {
            // The peer may have closed its window over outstanding data: probe from the head on, as
            // long as there are answers.
            self.timers.stop(Purpose::Retransmit);
            self.snd.rexmt.shift = 0;
            self.snd.rexmt.timeout_stamp = None;
            if self.snd.nxt > self.snd.una {
                self.snd.nxt = self.snd.una;
                self.snd.rexmt.cause = Cause::WindowProbe;
                cx.emit_with_state(self, || Event::SendLimited(SendLimit::PeerWindow));
            }
        }
        let idle = self.snd.nxt == self.snd.una && !self.timers.runs(Purpose::Retransmit);
        if idle && !self.timers.runs(Purpose::Persist) {
            self.snd.rare.probes = 0;
            if self.snd.rare.probing_since.is_some() {
                self.snd.rare.probing_since = None;
            }
            self.snd.probe.persisting = true;
            self.set_window_timer(cx);
        }
    }

    /// Restarts the timer of window probes after an acknowledgment that leaves the window shut
    /// (tcp_ack_probe of Linux).
    pub(crate) fn restart_window_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.snd.max == self.snd.una && self.data_end() > self.snd.nxt {
            self.set_window_timer(cx);
        }
    }

    fn set_window_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let doublings = self.snd.rare.probes.min(12);
        let span = match self.cfg.profile.probe {
            ProbeRule::Byte { min, max } => {
                let base = self.rtt.srtt().unwrap_or(min);
                base.saturating_mul(1 << doublings).max(min).min(max)
            }
            ProbeRule::Empty { max } => self.rtt.rto().saturating_mul(1 << doublings).min(max),
        };
        let span = span + self.pacing_delay(cx.now);
        self.timers.set(Purpose::Persist, self.probe_deadline(cx.now, span));
    }

    /// Is the head of the outstanding data retransmitted as a window probe, since the peer has
    /// closed its window over it (tcp_retransmit_timer of Linux)?
    pub(crate) fn head_probes(&self) -> bool {
        let by_head = matches!(self.cfg.profile.probe, ProbeRule::Empty { .. });
        by_head && self.snd.peer.wnd == 0 && self.synchronised() && !self.snd.rare.orphaned
    }

    /// Has the peer been silent for too long to go on probing with the head
    /// (tcp_rtx_probe0_timed_out of Linux)?
    pub(crate) fn head_unanswered(&self, now: Instant) -> bool {
        let ProbeRule::Empty { max } = self.cfg.profile.probe else { return false };
        now.since(self.snd.last_received) > max.saturating_mul(2)
    }

    /// Is the limit of unanswered window probes reached (tcp_timer_persist of FreeBSD,
    /// tcp_probe_timer of Linux)? A peer that answers is probed for ever (RFC 1122 section
    /// 4.2.2.17), but by FreeBSD for only a minute once the application has closed.
    pub(crate) fn probe_limit_reached(&self, now: Instant) -> bool {
        let silence = now.since(self.snd.last_received);
        let probes = match self.snd.loss_detector {
            LossDetector::Sack(_) | LossDetector::FreeBsdRack(_) => self.snd.rexmt.shift,
            _ => self.snd.rare.probes,
        };
        match (self.cfg.profile.probe, self.rtt.all_timeouts()) {
            (ProbeRule::Empty { .. }, _) => self.snd.rare.unanswered_probes >= self.retries(),
            (ProbeRule::Byte { max, .. }, Some(timeouts)) => {
                (probes >= self.retries() && silence >= timeouts.min(MAX_PERSIST_IDLE))
                    || (self.snd.fin && silence >= max)
            }
            // RFC 9293 section 3.8.6.1 sets no limit.
            (ProbeRule::Byte { .. }, None) => false,
        }
    }

    /// Handles the persist timer.
    pub(crate) fn on_window_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if matches!(self.snd.loss_detector, LossDetector::Sack(_)) {
            self.on_persist_timer(cx);
            return;
        }
        if self.is_rack() {
            self.on_rack_persist_timer(cx);
            return;
        }
        if !self.snd.probe.persisting || self.data_end() == self.snd.una {
            return;
        }
        if self.snd.last_received > self.snd.rare.probed_at {
            self.snd.rare.unanswered_probes = 0;
        }
        if self.probes_timed_out(cx.now) || self.probe_limit_reached(cx.now) {
            self.give_up(cx);
            return;
        }
        self.snd.rare.probed_at = cx.now;
        self.snd.probe.segment = Some(match self.cfg.profile.probe {
            ProbeRule::Byte { .. } => ProbeSegment::Byte,
            // tcp_write_wakeup: the window is open, but too small for the segment.
            ProbeRule::Empty { .. } if self.snd.una + self.snd.peer.wnd > self.snd.nxt => {
                ProbeSegment::Part
            }
            ProbeRule::Empty { .. } => ProbeSegment::Empty,
        });
        self.snd.rexmt.cause = Cause::WindowProbe;
        if self.snd.probe.segment == Some(ProbeSegment::Part) {
            // The retransmission timer covers this data (tcp_send_probe0).
            self.snd.probe.persisting = false;
            self.call_output();
            return;
        }
        self.snd.rare.probes += 1;
        self.snd.rare.unanswered_probes += 1;
        self.set_window_timer(cx);
        self.call_output();
    }

    /// Drops the connection because the peer does not answer. FreeBSD sends a RST (tcp_drop), Linux
    /// does not (tcp_write_err).
    pub(crate) fn give_up<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        match self.cfg.profile.rules.closing.resets_when_given_up {
            true => self.reset(cx),
            false => self.abort(cx),
        }
    }

    /// Restarts the keepalive timer after a segment was received.
    pub(crate) fn rearm_keepalive<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if let Some(keepalive) = self.cfg.keepalive.as_deref()
            && self.state == TcpState::Established
        {
            self.snd.rare.unanswered_keepalives = 0;
            let at = self.clock.deadline(cx.now, keepalive.idle);
            self.timers.set(Purpose::Keepalive, at);
        }
    }

    /// Handles the keepalive timer.
    pub(crate) fn on_keepalive_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let Some(keepalive) = self.cfg.keepalive.as_deref().copied() else { return };
        // tcp_keepalive_timer: "It is alive without keepalive" while data or a FIN is outstanding or
        // unsent.
        // FreeBSD's tcp_timer_keep does not check that.
        // rack_start_hpts_timer sets it only if no other timer runs.
        let waits = self.cfg.profile.rules.closing.keepalive_waits_for_data || self.is_rack();
        if waits && self.data_end().max(self.snd.max) > self.snd.una {
            self.timers.set(Purpose::Keepalive, self.clock.deadline(cx.now, keepalive.idle));
            return;
        }
        // rack_timeout_keepalive measures the silence, and waits for `keepidle` after a probe, too.
        let silence = cx.now.since(self.snd.last_received);
        let most = keepalive.interval.saturating_mul(u64::from(keepalive.count));
        let hopeless = match self.is_rack() {
            true => silence.saturating_sub(keepalive.idle) >= most,
            false => match Duration::from_millis(u64::from(self.snd.rare.user_timeout)) {
                Duration::ZERO => self.snd.rare.unanswered_keepalives == keepalive.count,
                limit => silence >= limit && self.snd.rare.unanswered_keepalives > 0,
            },
        };
        if hopeless {
            // Both kernels send a RST.
            match self.cfg.profile.rules.closing.resets_dead_peer {
                true => self.reset(cx),
                false => self.abort(cx),
            }
            return;
        }
        self.snd.rare.unanswered_keepalives += 1;
        self.snd.probe.segment = Some(ProbeSegment::Empty);
        self.call_output();
        let wait = if self.is_rack() { keepalive.idle } else { keepalive.interval };
        self.timers.set(Purpose::Keepalive, self.clock.deadline(cx.now, wait));
    }
}
