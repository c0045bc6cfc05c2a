//! A controller that is written elsewhere: in a scripting language, in a user's own program.
//!
//! The stack's side of congestion control stays that of its system: which losses count, when a
//! recovery begins and ends, what is remembered for an undo. That part is the system's own Reno,
//! kept here as `base`. What the window is, is the [`Pilot`]'s: it is asked once in a round trip
//! or in an interval, or at every acknowledgment, and at every loss; in between the window stands
//! still, unless the pilot leaves its growth to the base.
//!
//! The split between a fast path that counts and a slow one that decides is that of Narayan et
//! al., "Restructuring Endpoint Congestion Control", SIGCOMM 2018.

mod pilot;
#[cfg(test)]
mod tests;

use core::fmt::{self, Debug};

use units::{Bytes, Duration, Instant, Offset, Rate};

use crate::contract::{
    AckSample, Acked, Change, Congested, Control, Controller, Established, Growth, Idle, Recovered,
    RttSample, Signal,
};
use crate::{AnyController, LinuxReno, NewReno};

pub use pilot::{Decision, Every, Gone, LossReport, Maker, Pilot, Report};

/// A maker, known by name. It lives as long as the program, so that scenarios stay plain data.
#[derive(Debug, Clone, Copy)]
pub struct Outside(&'static dyn Maker);

impl Outside {
    /// One by `maker`, which is never freed.
    pub fn new(maker: impl Maker + 'static) -> Self {
        Self(Box::leak(Box::new(maker)))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// A controller on a system whose own Reno is FreeBSD's, with these parameters.
    pub fn on_freebsd(self, params: crate::newreno::Params) -> AnyController {
        self.over(NewReno::new(params).into())
    }

    /// A controller on a system whose own Reno is Linux's.
    pub fn on_linux(self) -> AnyController {
        self.over(LinuxReno::new().into())
    }

    fn over(self, base: AnyController) -> AnyController {
        AnyController::from(Piloted {
            pilot: self.0.make(),
            maker: self,
            base,
            pacing: None,
            mss: 0,
            mark: Offset(0),
            since: Instant::ZERO,
            seen: Seen::default(),
            decided: None,
            failure: None,
        })
    }
}

/// Two are the same if they are the same maker.
impl PartialEq for Outside {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self.0, other.0)
    }
}

impl Eq for Outside {}

/// What is counted between reports.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    acked: u64,
    losses: u32,
    timeouts: u32,
    rtt_min: Option<Duration>,
    rtt_last: Option<Duration>,
}

/// A controller whose window a [`Pilot`] decides.
pub struct Piloted {
    maker: Outside,
    pilot: Box<dyn Pilot>,
    base: AnyController,
    pacing: Option<Rate>,
    mss: u32,
    /// End of the round in progress.
    mark: Offset,
    /// Time of the last report.
    since: Instant,
    seen: Seen,
    /// Window to be taken when the recovery in progress ends.
    decided: Option<Bytes>,
    /// What the pilot failed with; it is not called any more.
    failure: Option<Gone>,
}

impl Piloted {
    /// What its pilot failed with, if it did.
    pub(crate) const fn failure(&self) -> Option<&Gone> {
        self.failure.as_ref()
    }

    /// Calls a hook of the pilot, unless one has failed.
    fn ask(&mut self, hook: impl FnOnce(&mut dyn Pilot) -> Result<Decision, Gone>) -> Decision {
        if self.failure.is_some() {
            return Decision::default();
        }
        hook(&mut *self.pilot).unwrap_or_else(|gone| {
            self.failure = Some(gone);
            Decision::default()
        })
    }

    fn take(&mut self, decision: Decision) {
        if let Some(ssthresh) = decision.ssthresh {
            self.base.set_threshold(Some(ssthresh));
        }
        if let Some(window) = decision.window {
            if self.base.in_recovery() {
                self.decided = Some(window);
            } else {
                self.base.set_window(window);
            }
        }
        self.pacing = decision.pacing.or(self.pacing);
    }

    fn due(&self, event: &Acked) -> bool {
        match self.maker.0.every() {
            Every::Ack => true,
            Every::Round => event.una >= self.mark,
            Every::Interval(span) => event.now.since(self.since) >= span,
        }
    }

    fn report(&mut self, event: &Acked) {
        let control = self.base.control();
        let seen = core::mem::take(&mut self.seen);
        let report = Report {
            now: event.now,
            interval: event.now.since(self.since),
            acked: seen.acked,
            losses: seen.losses,
            timeouts: seen.timeouts,
            rtt_min: seen.rtt_min,
            rtt_last: seen.rtt_last,
            srtt_micros: event.srtt.micros,
            window: control.window,
            ssthresh: control.ssthresh,
            mss: self.mss,
            in_recovery: self.base.in_recovery(),
        };
        self.since = event.now;
        self.mark = event.snd_nxt;
        let decision = self.ask(|pilot| pilot.on_report(&report));
        self.take(decision);
    }
}

impl Controller for Piloted {
    fn on_established(&mut self, event: &Established) -> Change {
        let change = self.base.on_established(event);
        self.mss = event.mss;
        self.since = event.now;
        self.mark = event.una;
        let window = self.base.control().window;
        let decision = self.ask(|pilot| pilot.on_start(event.now, event.mss, window));
        self.take(decision);
        change
    }

    fn on_acked(&mut self, event: &Acked) -> Change {
        let before = self.base.control().window;
        let mut change = self.base.on_acked(event);
        if !self.maker.0.base_grows()
            && !self.base.in_recovery()
            && matches!(change, Change::Grew(_))
        {
            self.base.set_window(before);
            change = Change::None;
        }
        self.seen.acked += event.bytes;
        if let Some(rtt) = event.rtt {
            self.seen.rtt_min = Some(self.seen.rtt_min.map_or(rtt, |least| least.min(rtt)));
            self.seen.rtt_last = Some(rtt);
        }
        if self.due(event) {
            self.report(event);
        }
        let after = self.base.control();
        if after.window == before {
            return change;
        }
        let in_slow_start = after.ssthresh.is_none_or(|ssthresh| before < ssthresh);
        match change {
            Change::None if after.window > before => {
                Change::Grew(if in_slow_start { Growth::SlowStart } else { Growth::Avoidance })
            }
            Change::None => Change::Shrank,
            change => change,
        }
    }

    fn on_congested(&mut self, event: &Congested) -> Change {
        let before = self.base.control().window;
        let change = self.base.on_congested(event);
        match event.signal {
            Signal::Timeout { .. } => self.seen.timeouts += 1,
            _ if change == Change::RecoveryBegan => self.seen.losses += 1,
            _ => return change,
        }
        let loss = LossReport {
            now: event.now,
            signal: event.signal,
            window: before,
            ssthresh: self.base.control().ssthresh,
            pipe: event.pipe,
            mss: self.mss,
        };
        let decision = self.ask(|pilot| pilot.on_loss(&loss));
        if let Some(window) = decision.window {
            // Recoveries lead to the threshold (PRR, RFC 9937; slow start after a timeout).
            self.base.set_threshold(Some(decision.ssthresh.unwrap_or(window)));
        } else if decision.ssthresh.is_some() {
            self.base.set_threshold(decision.ssthresh);
        }
        self.decided = decision.window;
        self.pacing = decision.pacing.or(self.pacing);
        change
    }

    fn on_recovered(&mut self, event: &Recovered) -> Change {
        let change = self.base.on_recovered(event);
        if let Some(window) = self.decided.take() {
            self.base.set_window(window);
        }
        change
    }

    fn on_idle(&mut self, event: &Idle) -> Change {
        self.base.on_idle(event)
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        self.mss = mss;
        self.base.on_mss(mss, maxseg);
    }

    fn on_round(&mut self, round: u32) -> Change {
        self.base.on_round(round)
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> Change {
        self.base.on_rtt_sample(sample)
    }

    fn on_ack_sample(&mut self, sample: &AckSample) -> Change {
        self.base.on_ack_sample(sample)
    }

    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        self.base.on_tx_start(ticks, last_sent);
    }

    fn control(&self) -> Control {
        Control { pacing: self.pacing, ..self.base.control() }
    }

    fn set_window(&mut self, window: Bytes) {
        self.base.set_window(window);
    }

    fn leave_recovery(&mut self) {
        self.base.leave_recovery();
    }

    fn set_threshold(&mut self, ssthresh: Option<Bytes>) {
        self.base.set_threshold(ssthresh);
    }

    fn in_recovery(&self) -> bool {
        self.base.in_recovery()
    }

    fn in_slow_start(&self) -> bool {
        self.base.in_slow_start()
    }

    fn recovery_point(&self) -> Offset {
        self.base.recovery_point()
    }
}

impl Clone for Piloted {
    fn clone(&self) -> Self {
        let (pilot, base) = (self.pilot.fork(), self.base.clone());
        Self { pilot, base, failure: self.failure.clone(), ..*self }
    }
}

impl Debug for Piloted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.maker.name();
        f.debug_struct("Piloted").field("by", &name).field("base", &self.base).finish()
    }
}

/// By what can be compared: the maker and the base.
impl PartialEq for Piloted {
    fn eq(&self, other: &Self) -> bool {
        self.maker == other.maker && self.base == other.base
    }
}

impl Eq for Piloted {}
