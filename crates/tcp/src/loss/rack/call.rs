//! A call of rack_output: its beginning, the records of segments sent, and its end.

use machine::Cx;
use record::{Purpose, Recorder, SendLimit, SentKind};
use recovery::hpts_rack::{HptsTimer, RackTimer};
use recovery::probe_rack::ProbeInput;
use recovery::rack_freebsd::{RackFreeBsd, micros};
use recovery::sendmap::RetransmitResult;
use units::{Duration, Instant, Offset};

use crate::connection::Connection;
use crate::loss::LossDetector;
use crate::state::SendSide;
use crate::tcp_state::TcpState;
use crate::timers::Timers;

/// Maximum time until a probe; beyond it the timeout comes first (`TCPTV_REXMTMAX`).
const LONGEST_PROBE: Duration = Duration::from_secs(64);

/// The purposes of the wheel's entries.
const PURPOSES: [Purpose; 4] =
    [Purpose::Reorder, Purpose::LossProbe, Purpose::Retransmit, Purpose::Pacing];

const fn purpose_of(timer: Option<RackTimer>) -> Purpose {
    match timer {
        Some(RackTimer::Reorder) => Purpose::Reorder,
        Some(RackTimer::Probe) => Purpose::LossProbe,
        Some(RackTimer::Retransmit) => Purpose::Retransmit,
        None => Purpose::Pacing,
    }
}

/// How a call of rack_output begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum RackCallStart {
    /// Segments may be sent.
    Output,
    /// The same after a timeout: the next segment acknowledges, whether or not an ACK was due.
    OutputAck,
    /// Nothing is sent now.
    Ended(SendLimit),
    /// The peer does not answer: the connection ends.
    GiveUp,
}

impl SendSide {
    /// The beginning of rack_output: handles an expired timer and the pause that may defer the
    /// call.
    pub(crate) fn begin_rack_call<R: Recorder>(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        cx: &mut Cx<'_, R>,
    ) -> RackCallStart {
        let idle = !self.outstanding();
        let mut start = RackCallStart::Output;
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return start };
        let by_segment = core::mem::take(&mut rack.call.by_segment);
        match rack.hpts.begin(cx.now, idle) {
            HptsTimer::Nothing => {}
            HptsTimer::TooEarly => {
                self.sync_wheel(timers);
                return RackCallStart::Ended(SendLimit::Pacing);
            }
            HptsTimer::Timer(timer) => {
                cx.emit(|| record::Event::Timer(purpose_of(Some(timer))));
                start = self.on_rack_timeout(conn, timers, cx, timer);
                match start {
                    RackCallStart::Output | RackCallStart::OutputAck => {}
                    RackCallStart::GiveUp => return start,
                    RackCallStart::Ended(_) => {
                        self.sync_wheel(timers);
                        return start;
                    }
                }
            }
        }
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return start };
        // No pause follows a timeout.
        if !rack.hpts.may_output(cx.now) {
            let stopped = rack.hpts.timer().is_none() && !idle;
            if !(by_segment && stopped) {
                self.sync_wheel(timers);
                return RackCallStart::Ended(SendLimit::Pacing);
            }
            if rack.hpts.reenter(cx.now) {
                self.start_wheel(conn, timers, cx.now, Duration::ZERO);
                return RackCallStart::Ended(SendLimit::Pacing);
            }
        }
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return start };
        rack.call.sent = 0;
        start
    }

    /// Handles an entry of the wheel; false if the timer is not one of its entries.
    pub(crate) fn on_wheel(&mut self, purpose: Purpose) -> bool {
        if !PURPOSES.contains(&purpose) {
            return false;
        }
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return false };
        rack.hpts.on_wheel();
        self.call_output();
        true
    }

    /// Sets the endpoint's timers to the entry on the wheel.
    pub(crate) fn sync_wheel(&mut self, timers: &mut Timers) {
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return };
        let entry = rack.hpts.entry().map(|(at, timer)| (at, purpose_of(timer)));
        for purpose in PURPOSES {
            match entry {
                Some((at, entered)) if entered == purpose => timers.set(purpose, at),
                _ => timers.stop(purpose),
            }
        }
    }

    /// Records data sent, new or retransmitted (`repeated`); `retransmission` describes the
    /// retransmission.
    pub(crate) fn rack_sent(
        &mut self,
        conn: &Connection,
        at: Offset,
        end: Offset,
        repeated: bool,
        retransmission: &RetransmitResult,
    ) {
        let now = self.last.sent;
        let (una, mss, window) = (self.una, conn.mss(), conn.initial_window());
        let in_recovery = self.in_fast_recovery();
        let len = end - at;
        // Without SACK duplicates count as SACKed, of which there can be more than data.
        let flight = (self.max - una).saturating_sub(self.scoreboard.sums().sacked.bytes);
        let Some(rack) = self.loss_detector.freebsd_rack() else { return };
        if let Some(reports) = rack.hystart.as_deref_mut() {
            reports.on_sent(at, end, flight);
        }
        if in_recovery {
            rack.prr.on_sent(len);
            rack.undo.on_retransmitted(retransmission.passed_bytes);
            rack.reverts.on_sent(len, repeated);
        } else if !repeated {
            rack.reverts.on_sent(len, false);
        }
        if rack.call.is_probe {
            rack.probes.in_progress = true;
            rack.probes.count += 1;
            if repeated {
                rack.probes.sent = Some((at, end));
            }
        } else if !repeated {
            rack.probes.on_progress();
        }
        if !repeated {
            if una == at {
                rack.probes.timed_at = now;
            }
            rack.goodput.on_sent(at, end, micros(now), window, mss);
            if end > rack.timeout.max {
                rack.timeout.in_recovery = false;
            }
        }
        if repeated && at == rack.strikes.0 {
            // rack_update_rsm: duplicates of the last transmission do not count for this one.
            rack.strikes.1 = 0;
        }
        rack.call.sent += len;
    }

    /// After a segment: if the call ends with it, starts the pause and the timer. A retransmission
    /// is followed by the shortest pause; `left` bytes of new data may follow.
    pub(crate) fn end_rack_segment(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        kind: SentKind,
        left: u64,
        more: bool,
    ) {
        let mss = conn.mss();
        let retransmitted = matches!(kind, SentKind::Retransmission(_));
        let srtt = self.rtt.estimator.srtt();
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return };
        let sent = rack.call.sent;
        let pause = if retransmitted {
            rack.rack.min_timer()
        } else {
            let rtt = rack.least.unwrap_or(srtt.map_or(1, Duration::as_micros));
            let goes_on = more && sent < rack.burst.most(mss);
            if goes_on {
                rack.call.fast = if left >= mss { left } else { 0 };
                return;
            }
            rack.burst.pause(sent, rtt, mss)
        };
        rack.call.is_probe = false;
        rack.call.fast = if left >= mss && !retransmitted && !pause.is_zero() { left } else { 0 };
        self.call.due = false;
        self.start_wheel(conn, timers, now, pause);
    }

    /// Ends a call that finds nothing more to send (`just_return`).
    pub(crate) fn end_rack_call(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        why: SendLimit,
    ) {
        let (mss, max) = (conn.mss(), self.max);
        let outstanding = self.max - self.una;
        let window_limited = outstanding + mss.max(self.peer.max_wnd / 2).min(mss) >= self.peer.wnd;
        let data_limited = outstanding >= self.buffer.used();
        let in_recovery = self.in_fast_recovery();
        let srtt = self.rtt.estimator.srtt();
        let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return };
        rack.call.is_probe = false;
        let sent = core::mem::take(&mut rack.call.sent);
        let pause = if sent > 0 {
            let rtt = rack.least.unwrap_or(srtt.map_or(1, Duration::as_micros));
            rack.burst.pause(sent, rtt, mss)
        } else {
            rack.hpts.forget_lag();
            if in_recovery && (window_limited || data_limited) {
                rack.prr.prr_sndcnt = 0;
            }
            let app_limited = !window_limited && (data_limited || why == SendLimit::SmallSegment);
            rack.goodput.on_just_returned(app_limited, max, mss);
            Duration::ZERO
        };
        self.start_wheel(conn, timers, now, pause);
    }

    /// rack_start_hpts_timer.
    pub(super) fn start_wheel(
        &mut self,
        conn: &Connection,
        timers: &mut Timers,
        now: Instant,
        pause: Duration,
    ) {
        let LossDetector::FreeBsdRack(rack) = &self.loss_detector else { return };
        if !rack.hpts.is_entered() {
            let timer = self.next_rack_timer(conn, now);
            let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector else { return };
            let measured = rack.goodput.is_measured();
            rack.hpts.start(now, pause, timer, measured);
        }
        self.sync_wheel(timers);
    }

    /// rack_timer_start: selects the one timer to run, and for how long: the reordering timer if a
    /// segment sent after the oldest was delivered, else that of a probe, else the timeout.
    fn next_rack_timer(
        &mut self,
        conn: &Connection,
        now: Instant,
    ) -> Option<(RackTimer, Duration)> {
        if !self.outstanding() || self.probe.persisting {
            return None;
        }
        let oldest = *self.scoreboard.oldest()?;
        let data_end = self.data_end();
        let only_fin = oldest.start() >= data_end;
        if conn.state == TcpState::SynReceived || only_fin {
            return Some(self.rack_timeout_left(now, oldest.sent_at()));
        }
        let LossDetector::FreeBsdRack(rack) = &self.loss_detector else { return None };
        if RackFreeBsd::is_suspected(&oldest, rack.strikes(oldest.start())) {
            let thresh = self.rack_thresh(now);
            let rack = self.loss_detector.freebsd_rack()?;
            return Some((RackTimer::Reorder, rack.rack.time_left(&oldest, thresh, now)));
        }
        self.rack_probe_left(now)
            .map(|left| (RackTimer::Probe, left))
            .or_else(|| Some(self.rack_timeout_left(now, oldest.sent_at())))
    }

    /// Time until the timeout, from the last transmission of the oldest segment or the last timer.
    fn rack_timeout_left(&self, now: Instant, sent_at: Instant) -> (RackTimer, Duration) {
        let rto = self.rtt.estimator.rto();
        let LossDetector::FreeBsdRack(rack) = &self.loss_detector else {
            return (RackTimer::Retransmit, rto);
        };
        let since = micros(now).saturating_sub(micros(sent_at.max(rack.probes.timed_at)));
        let rto = rto.as_micros();
        let left = if rto > since { rto - since } else { rack.rack.min_timer().as_micros() };
        (RackTimer::Retransmit, Duration::from_micros(left))
    }

    /// Time until a probe, if one may be sent.
    fn rack_probe_left(&self, now: Instant) -> Option<Duration> {
        let LossDetector::FreeBsdRack(rack) = &self.loss_detector else { return None };
        if rack.probes.in_progress && rack.probes.count >= rack.settings.probes {
            return None;
        }
        let (last, before) = self.scoreboard.newest_two();
        let last = last.filter(|last| last.end() <= self.data_end())?;
        let srtt = self.rtt.estimator.srtt();
        let thresh = rack.settings.pto.thresh(&ProbeInput {
            srtt,
            rack_rtt: RackFreeBsd::rtt(rack.latest.1, srtt),
            last,
            before,
            rto: self.rtt.estimator.rto(),
            longest: rack.rack.longest(),
        });
        let since = micros(now).saturating_sub(micros(last.sent_at().max(rack.probes.timed_at)));
        let thresh = thresh.as_micros();
        let left = if thresh > since { thresh - since } else { rack.rack.min_timer().as_micros() };
        let left = Duration::from_micros(left).max(rack.settings.pto.least);
        (left <= LONGEST_PROBE).then_some(left)
    }

    /// Leaves the wheel while the window is probed (rack_enter_persist).
    pub(crate) fn remove_from_wheel(&mut self, timers: &mut Timers) {
        if let LossDetector::FreeBsdRack(rack) = &mut self.loss_detector {
            rack.hpts.remove();
            self.sync_wheel(timers);
        }
    }
}
