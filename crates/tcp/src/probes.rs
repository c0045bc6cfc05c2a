//! Probes: of a closed window (RFC 9293 section 3.8.6.1; tcp_setpersist and tcp_timer_persist of
//! FreeBSD, tcp_send_probe0 of Linux) and of a peer long silent (section 3.8.4; keepalive).

use machine::Cx;
use record::{Cause, Event, Purpose, Recorder, Waiting};
use units::{Duration, Instant};

use crate::endpoint::{Endpoint, State};
use crate::loss::Repair;
use crate::profile::{Family, ProbeRule};

/// FreeBSD: a peer silent for so long is not asked about its window any more (TCPTV_KEEP_IDLE, as
/// tcp_maxpersistidle).
const MAX_PERSIST_IDLE: Duration = Duration::from_secs(7_200);

/// Keepalive of one connection (`SO_KEEPALIVE` and the options beside it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Keepalive {
    /// Silence after which the first probe goes.
    pub idle: Duration,
    /// From one probe to the next.
    pub interval: Duration,
    /// Probes without an answer after which the connection is given up.
    pub count: u32,
}

/// A probe that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) enum Probe {
    /// The next byte, whatever the window says.
    Byte,
    /// An empty segment with the number before the oldest unacknowledged one.
    Empty,
    /// What the window still takes of a segment that is longer.
    Part,
}

impl Endpoint {
    /// Data waits, nothing is under way and the window holds it back: the timer that will probe
    /// the window is set, unless it runs.
    pub(crate) fn watch_window<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if self.snd.wnd == 0 && matches!(self.cfg.profile.probe, ProbeRule::Byte { .. }) {
            // The peer may have closed its window over what is outstanding: rack_output takes all
            // of it back and probes from the head on, as long as there is an answer.
            self.timers.stop(Purpose::Retransmit);
            self.leave_wheel();
            self.snd.shift = 0;
            self.snd.timeout_stamp = None;
            if self.snd.nxt > self.snd.una {
                self.snd.nxt = self.snd.una;
                self.snd.resend_cause = Cause::WindowProbe;
                cx.emit_of(self, || Event::Waiting(Waiting::PeerWindow));
            }
        }
        let idle = self.snd.nxt == self.snd.una && !self.timers.runs(Purpose::Retransmit);
        if idle && !self.timers.runs(Purpose::Persist) {
            self.snd.asked.probes = 0;
            self.snd.persisting = true;
            self.leave_wheel();
            self.set_window_timer(cx);
        }
    }

    fn set_window_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let doublings = self.snd.asked.probes.min(12);
        let span = match self.cfg.profile.probe {
            ProbeRule::Byte { min, max } => {
                let base = self.rtt.srtt().unwrap_or(min);
                base.saturating_mul(1 << doublings).max(min).min(max)
            }
            ProbeRule::Empty { max } => self.rtt.rto().saturating_mul(1 << doublings).min(max),
        };
        self.timers.set(Purpose::Persist, self.clock.deadline(cx.now, span));
    }

    /// Does the head of what is under way serve as a probe, since the peer has closed its window
    /// over it (tcp_retransmit_timer of Linux)?
    pub(crate) fn head_probes(&self) -> bool {
        let by_head = matches!(self.cfg.profile.probe, ProbeRule::Empty { .. });
        by_head && self.snd.wnd == 0 && self.synchronised()
    }

    /// Has the peer been silent for too long to be probed by the head (tcp_rtx_probe0_timed_out of
    /// Linux)?
    pub(crate) fn head_unanswered(&self, now: Instant) -> bool {
        let ProbeRule::Empty { max } = self.cfg.profile.probe else { return false };
        now.since(self.snd.last_heard) > max.saturating_mul(2)
    }

    /// Has the peer been asked about its window long enough without an answer (tcp_timer_persist of
    /// FreeBSD, tcp_probe_timer of Linux)? As long as it answers, it is asked for ever (RFC 1122
    /// section 4.2.2.17), by FreeBSD for a minute only where the application has closed.
    pub(crate) fn asked_enough(&self, now: Instant) -> bool {
        let silence = now.since(self.snd.last_heard);
        let probes = match self.snd.repair {
            Repair::Holes(_) => self.snd.shift,
            _ => self.snd.asked.probes,
        };
        match (self.cfg.profile.probe, self.rtt.all_timeouts()) {
            (ProbeRule::Empty { .. }, _) => self.snd.asked.unheard_probes >= self.retries(),
            (ProbeRule::Byte { max, .. }, Some(timeouts)) => {
                (probes >= self.retries() && silence >= timeouts.min(MAX_PERSIST_IDLE))
                    || (self.snd.fin && silence >= max)
            }
            // RFC 9293 section 3.8.6.1 sets no end.
            (ProbeRule::Byte { .. }, None) => false,
        }
    }

    /// The window timer fired.
    pub(crate) fn on_window_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if matches!(self.snd.repair, Repair::Holes(_)) {
            self.on_persist_timer(cx);
            return;
        }
        if !self.snd.persisting || self.data_end() == self.snd.una {
            return;
        }
        if self.snd.last_heard > self.snd.asked.probed_at {
            self.snd.asked.unheard_probes = 0;
        }
        if self.asked_enough(cx.now) {
            self.give_up(cx);
            return;
        }
        self.snd.asked.probed_at = cx.now;
        self.snd.probe = Some(match self.cfg.profile.probe {
            ProbeRule::Byte { .. } => Probe::Byte,
            // tcp_write_wakeup: the window is open, but too small for the segment.
            ProbeRule::Empty { .. } if self.snd.una + self.snd.wnd > self.snd.nxt => Probe::Part,
            ProbeRule::Empty { .. } => Probe::Empty,
        });
        self.snd.resend_cause = Cause::WindowProbe;
        if self.snd.probe == Some(Probe::Part) {
            // What is sent then has a timer of its own (tcp_send_probe0).
            self.snd.persisting = false;
            self.call_output();
            return;
        }
        self.snd.asked.probes += 1;
        self.snd.asked.unheard_probes += 1;
        self.set_window_timer(cx);
        self.call_output();
    }

    /// The peer is taken for gone. FreeBSD tells it nevertheless (tcp_drop), Linux does not
    /// (tcp_write_err).
    pub(crate) fn give_up<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        match self.cfg.profile.family {
            Family::FreeBsd => self.reset(cx),
            Family::Linux | Family::Rfc => self.abort(cx),
        }
    }

    /// Something was heard: the silence begins anew.
    pub(crate) fn rearm_keepalive<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        if let Some(keepalive) = self.cfg.keepalive.as_deref()
            && self.state == State::Established
        {
            self.snd.asked.unanswered = 0;
            let at = self.clock.deadline(cx.now, keepalive.idle);
            self.timers.set(Purpose::Keepalive, at);
        }
    }

    /// The keepalive timer fired.
    pub(crate) fn on_keepalive_timer<R: Recorder>(&mut self, cx: &mut Cx<'_, R>) {
        let Some(keepalive) = self.cfg.keepalive.as_deref().copied() else { return };
        // tcp_keepalive_timer: "It is alive without keepalive" while anything is to be acknowledged or
        // sent. FreeBSD's tcp_timer_keep does not look at that.
        if self.cfg.profile.family != Family::FreeBsd && self.data_end() > self.snd.una {
            self.timers.set(Purpose::Keepalive, self.clock.deadline(cx.now, keepalive.idle));
            return;
        }
        if self.snd.asked.unanswered == keepalive.count {
            // Both kernels tell the peer, should it still be there.
            match self.cfg.profile.family {
                Family::FreeBsd | Family::Linux => self.reset(cx),
                Family::Rfc => self.abort(cx),
            }
            return;
        }
        self.snd.asked.unanswered += 1;
        self.snd.probe = Some(Probe::Empty);
        self.call_output();
        self.timers.set(Purpose::Keepalive, self.clock.deadline(cx.now, keepalive.interval));
    }
}
