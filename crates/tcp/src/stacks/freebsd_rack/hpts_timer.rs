//! The entry on the wheel that makes the next call of rack_output (rack_start_hpts_timer), with the
//! one timer that runs (rack_timer_start).

use record::Purpose;
use recovery::hpts_rack::RackTimer;
use recovery::probe_rack::ProbeInput;
use recovery::rack_freebsd::{RackFreeBsd, micros};
use units::{Duration, Instant};

use super::FreeBsdRack;
use crate::connection::Connection;
use crate::tcp_state::TcpState;
use crate::timers::Timers;

/// Maximum time until a probe; beyond it the timeout comes first (`TCPTV_REXMTMAX`).
const LONGEST_PROBE: Duration = Duration::from_secs(64);

/// The purposes of the wheel's entries.
const PURPOSES: [Purpose; 4] =
    [Purpose::Reorder, Purpose::LossProbe, Purpose::Retransmit, Purpose::Pacing];

pub(super) const fn purpose_of(timer: Option<RackTimer>) -> Purpose {
    match timer {
        Some(RackTimer::Reorder) => Purpose::Reorder,
        Some(RackTimer::Probe) => Purpose::LossProbe,
        Some(RackTimer::Retransmit) => Purpose::Retransmit,
        None => Purpose::Pacing,
    }
}

impl FreeBsdRack<'_> {
    /// Handles an entry of the wheel; false if the timer is not one of its entries.
    pub(crate) fn on_wheel(&mut self, purpose: Purpose) -> bool {
        if !PURPOSES.contains(&purpose) {
            return false;
        }
        self.state.hpts.on_wheel();
        self.snd.call_output();
        true
    }

    /// Sets the endpoint's timers to the entry on the wheel.
    pub(crate) fn sync_wheel(&mut self, timers: &mut Timers) {
        let entry = self.state.hpts.entry().map(|(at, timer)| (at, purpose_of(timer)));
        for purpose in PURPOSES {
            match entry {
                Some((at, entered)) if entered == purpose => timers.set(purpose, at),
                _ => timers.stop(purpose),
            }
        }
    }

    /// rack_start_hpts_timer.
    pub(super) fn start_hpts_timer(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        pause: Duration,
    ) {
        if !self.state.hpts.is_entered() {
            let timer = self.timer_start(conn, now);
            let measured = self.state.goodput.is_measured();
            self.state.hpts.start(now, pause, timer, measured);
        }
        self.sync_wheel(timers);
    }

    /// rack_timer_start: selects the one timer to run, and for how long: the reordering timer if a
    /// segment sent after the oldest was delivered, else that of a probe, else the timeout.
    fn timer_start(&mut self, conn: &Connection, now: Instant) -> Option<(RackTimer, Duration)> {
        if !self.outstanding() || self.snd.probe.persisting {
            return None;
        }
        let oldest = *self.snd.scoreboard.oldest()?;
        let data_end = self.snd.data_end();
        let only_fin = oldest.start() >= data_end;
        if conn.state == TcpState::SynReceived || only_fin {
            return Some(self.timeout_left(now, oldest.sent_at()));
        }
        if RackFreeBsd::is_suspected(&oldest, self.state.strikes(oldest.start())) {
            let thresh = self.thresh(now);
            return Some((RackTimer::Reorder, self.state.rack.time_left(&oldest, thresh, now)));
        }
        self.probe_left(now)
            .map(|left| (RackTimer::Probe, left))
            .or_else(|| Some(self.timeout_left(now, oldest.sent_at())))
    }

    /// Time until the timeout, from the last transmission of the oldest segment or the last timer.
    fn timeout_left(&self, now: Instant, sent_at: Instant) -> (RackTimer, Duration) {
        let rto = self.snd.rtt.estimator.rto();
        let since = micros(now).saturating_sub(micros(sent_at.max(self.state.probes.timed_at)));
        let rto = rto.as_micros();
        let left = if rto > since { rto - since } else { self.state.rack.min_timer().as_micros() };
        (RackTimer::Retransmit, Duration::from_micros(left))
    }

    /// Time until a probe, if one may be sent.
    fn probe_left(&self, now: Instant) -> Option<Duration> {
        if self.state.probes.in_progress && self.state.probes.count >= self.state.settings.probes {
            return None;
        }
        let (last, before) = self.snd.scoreboard.newest_two();
        let last = last.filter(|last| last.end() <= self.snd.data_end())?;
        let srtt = self.snd.rtt.estimator.srtt();
        let thresh = self.state.settings.pto.thresh(&ProbeInput {
            srtt,
            rack_rtt: RackFreeBsd::rtt(self.state.latest.1, srtt),
            last,
            before,
            rto: self.snd.rtt.estimator.rto(),
            longest: self.state.rack.longest(),
        });
        let since =
            micros(now).saturating_sub(micros(last.sent_at().max(self.state.probes.timed_at)));
        let thresh = thresh.as_micros();
        let left =
            if thresh > since { thresh - since } else { self.state.rack.min_timer().as_micros() };
        let left = Duration::from_micros(left).max(self.state.settings.pto.least);
        (left <= LONGEST_PROBE).then_some(left)
    }

    /// Leaves the wheel while the window is probed (rack_enter_persist).
    pub(crate) fn remove_from_wheel(&mut self, timers: &mut Timers) {
        self.state.hpts.remove();
        self.sync_wheel(timers);
    }
}
