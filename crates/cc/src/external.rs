//! User-defined controllers: in a scripting language or in a user's own program.
//!
//! The stack's part of congestion control remains that of its system: which losses count, when a
//! recovery begins and ends, what is saved for an undo. That part is the system's own Reno, kept
//! here as `base`. The [`UserController`] decides the window: it is called once per round trip, per
//! interval or per acknowledgment, and at every loss; in between the window is constant, unless the
//! base grows it.
//!
//! The split between a fast path that counts and a slow path that decides follows Narayan et al.,
//! "Restructuring Endpoint Congestion Control", SIGCOMM 2018.

mod controller;
#[cfg(test)]
mod tests;

use core::fmt::{self, Debug};

use units::{Bytes, Duration, Instant, Offset, Rate};

use crate::contract::{
    AckEvent, AckSample, CongestionEvent, CongestionSignal, ConnectionStart, Control, Controller,
    ControllerInputs, DeclaredInputs, Growth, IdleEvent, RecoveryEnd, RttSample, WindowChange,
    WindowController,
};
use crate::kernel::KernelLibrary;
use crate::{AnyController, LinuxReno, NewReno};

pub use controller::{
    CcDecision, CcReport, ControllerError, ControllerFactory, LossReport, ReportTrigger,
    UserController,
};

/// An algorithm that is not built in, with a name. It lives as long as the program, so that scenarios stay plain data.
#[derive(Debug, Clone, Copy)]
pub struct ExternalAlgorithm(ExternalKind);

/// What makes its controllers.
#[derive(Debug, Clone, Copy)]
enum ExternalKind {
    /// A factory of [`UserController`]s.
    User(&'static dyn ControllerFactory),
    /// A library in C with Linux's operations.
    Kernel(&'static dyn KernelLibrary),
}

impl ExternalAlgorithm {
    /// Registers `maker`, which is never freed.
    pub fn new(maker: impl ControllerFactory + 'static) -> Self {
        Self(ExternalKind::User(Box::leak(Box::new(maker))))
    }

    /// A library with the operations of Linux's controllers, which is never freed.
    pub fn of_kernel(library: impl KernelLibrary + 'static) -> Self {
        Self(ExternalKind::Kernel(Box::leak(Box::new(library))))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            ExternalKind::User(maker) => maker.name(),
            ExternalKind::Kernel(library) => library.name(),
        }
    }

    /// The library, if it is one with Linux's operations: it needs Linux's stack.
    pub fn library(self) -> Option<&'static dyn KernelLibrary> {
        match self.0 {
            ExternalKind::User(_) => None,
            ExternalKind::Kernel(library) => Some(library),
        }
    }

    /// A controller on a system whose own Reno is FreeBSD's, with these parameters.
    pub fn on_freebsd(self, params: crate::newreno::NewRenoParams) -> AnyController {
        self.over(NewReno::new(params).into())
    }

    /// A controller on a system whose own Reno is Linux's.
    pub fn on_linux(self) -> AnyController {
        self.over(LinuxReno::new().into())
    }

    /// The base alone if this is a library, which only Linux's stack runs.
    fn over(self, base: AnyController) -> AnyController {
        let ExternalKind::User(maker) = self.0 else { return base };
        AnyController::from(ExternalController {
            pilot: maker.make(),
            maker,
            base,
            pacing: None,
            mss: 0,
            round_end: Offset(0),
            since: Instant::ZERO,
            counters: ReportCounters::default(),
            totals: ReportTotals::default(),
            decided: None,
            pending_window: None,
            failure: None,
        })
    }
}

/// Equal if the factory is the same.
impl PartialEq for ExternalAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (ExternalKind::User(one), ExternalKind::User(two)) => core::ptr::addr_eq(one, two),
            (ExternalKind::Kernel(one), ExternalKind::Kernel(two)) => core::ptr::addr_eq(one, two),
            _ => false,
        }
    }
}

impl Eq for ExternalAlgorithm {}

/// Counters between reports.
#[derive(Debug, Clone, Copy, Default)]
struct ReportCounters {
    acked: u64,
    packets: u32,
    losses: u32,
    ecn_marks: u32,
    timeouts: u32,
    rtt_min: Option<Duration>,
    rtt_last: Option<Duration>,
}

/// Counters since the connection was established.
#[derive(Debug, Clone, Copy, Default)]
struct ReportTotals {
    delivered: u64,
    rounds: u32,
}

/// A controller whose window a [`UserController`] decides.
pub struct ExternalController {
    maker: &'static dyn ControllerFactory,
    pilot: Box<dyn UserController>,
    base: AnyController,
    pacing: Option<Rate>,
    mss: u32,
    /// End of the current round.
    round_end: Offset,
    /// Time of the last report.
    since: Instant,
    counters: ReportCounters,
    totals: ReportTotals,
    /// The last window decided, and what the base made of it: Linux counts whole packets, so growth by
    /// parts of a packet would be lost.
    decided: Option<(Bytes, Bytes)>,
    /// Window to set when the current recovery ends.
    pending_window: Option<Bytes>,
    /// Error of the controller, which is not called after it.
    failure: Option<ControllerError>,
}

impl ExternalController {
    /// Error of the controller, if it failed.
    pub(crate) const fn failure(&self) -> Option<&ControllerError> {
        self.failure.as_ref()
    }

    /// Calls a hook of the controller, unless one has failed.
    fn call_hook(
        &mut self,
        hook: impl FnOnce(&mut dyn UserController) -> Result<CcDecision, ControllerError>,
    ) -> CcDecision {
        if self.failure.is_some() {
            return CcDecision::default();
        }
        hook(&mut *self.pilot).unwrap_or_else(|gone| {
            self.failure = Some(gone);
            CcDecision::default()
        })
    }

    /// Sets the window of the base.
    fn decide(&mut self, window: Bytes) {
        self.base.set_window(window);
        self.decided = Some((window, self.base.control().window));
    }

    /// The window as the controller decided it, if it is still that, else that of the base.
    fn exact(&self, window: Bytes) -> Bytes {
        match self.decided {
            Some((decided, made)) if made == window => decided,
            _ => window,
        }
    }

    fn apply(&mut self, decision: CcDecision) {
        if let Some(ssthresh) = decision.ssthresh {
            self.base.set_threshold(Some(ssthresh));
        }
        if let Some(window) = decision.window {
            if self.base.in_recovery() {
                self.pending_window = Some(window);
            } else {
                self.decide(window);
            }
        }
        self.pacing = decision.pacing.or(self.pacing);
    }

    fn due(&self, event: &AckEvent, ends_round: bool) -> bool {
        match self.maker.every() {
            ReportTrigger::Ack => true,
            ReportTrigger::Round => ends_round,
            ReportTrigger::Interval(span) => event.now.since(self.since) >= span,
        }
    }

    fn report(&mut self, event: &AckEvent) {
        let control = self.base.control();
        let counters = core::mem::take(&mut self.counters);
        let report = CcReport {
            now: event.now,
            interval: event.now.since(self.since),
            acked: counters.acked,
            losses: counters.losses,
            timeouts: counters.timeouts,
            rtt_min: counters.rtt_min,
            rtt_last: counters.rtt_last,
            srtt_micros: event.srtt.micros,
            window: self.exact(control.window),
            ssthresh: control.ssthresh,
            mss: self.mss,
            in_recovery: self.base.in_recovery(),
            flight: event.snd_nxt.0.saturating_sub(event.una.0),
            delivered: self.totals.delivered,
            packets: counters.packets,
            ecn_marks: counters.ecn_marks,
            window_limited: event.window_limited,
            peer_window: event.snd_wnd,
            rounds: self.totals.rounds,
        };
        self.since = event.now;
        let decision = self.call_hook(|pilot| pilot.on_report(&report));
        self.apply(decision);
    }
}

impl DeclaredInputs for ExternalController {
    const INPUTS: ControllerInputs =
        ControllerInputs { ack_samples: true, ..ControllerInputs::SRTT };
}

impl Controller for ExternalController {
    fn on_established(&mut self, event: &ConnectionStart) -> WindowChange {
        let change = self.base.on_established(event);
        self.mss = event.mss;
        self.since = event.now;
        self.round_end = event.una;
        let window = self.base.control().window;
        let decision = self.call_hook(|pilot| pilot.on_start(event.now, event.mss, window));
        self.apply(decision);
        change
    }

    fn on_acked(&mut self, event: &AckEvent) -> WindowChange {
        let before = self.base.control().window;
        let mut change = self.base.on_acked(event);
        if !self.maker.base_grows()
            && !self.base.in_recovery()
            && matches!(change, WindowChange::Grew(_))
        {
            self.base.set_window(before);
            change = WindowChange::None;
        }
        self.counters.acked += event.bytes;
        self.counters.packets += event.packets;
        self.totals.delivered += event.bytes;
        let ends_round = event.una >= self.round_end;
        self.totals.rounds += u32::from(ends_round);
        if let Some(rtt) = event.rtt {
            self.counters.rtt_min = Some(self.counters.rtt_min.map_or(rtt, |least| least.min(rtt)));
            self.counters.rtt_last = Some(rtt);
        }
        if self.due(event, ends_round) {
            self.report(event);
        }
        if ends_round {
            self.round_end = event.snd_nxt;
        }
        let after = self.base.control();
        if after.window == before {
            return change;
        }
        let in_slow_start = after.ssthresh.is_none_or(|ssthresh| before < ssthresh);
        match change {
            WindowChange::None if after.window > before => WindowChange::Grew(if in_slow_start {
                Growth::SlowStart
            } else {
                Growth::Avoidance
            }),
            WindowChange::None => WindowChange::Shrank,
            change => change,
        }
    }

    fn on_congested(&mut self, event: &CongestionEvent) -> WindowChange {
        let before = self.base.control().window;
        let change = self.base.on_congested(event);
        match event.signal {
            CongestionSignal::Timeout { .. } => self.counters.timeouts += 1,
            signal if change == WindowChange::RecoveryBegan => {
                self.counters.losses += 1;
                self.counters.ecn_marks += u32::from(signal == CongestionSignal::Ecn);
            }
            _ => return change,
        }
        let loss = LossReport {
            now: event.now,
            signal: event.signal,
            window: self.exact(before),
            ssthresh: self.base.control().ssthresh,
            pipe: event.pipe,
            mss: self.mss,
            lost_packets: event.lost,
        };
        let decision = self.call_hook(|pilot| pilot.on_loss(&loss));
        if let Some(window) = decision.window {
            // Recovery ends at the threshold (PRR, RFC 9937; slow start after a timeout).
            self.base.set_threshold(Some(decision.ssthresh.unwrap_or(window)));
        } else if decision.ssthresh.is_some() {
            self.base.set_threshold(decision.ssthresh);
        }
        self.pending_window = decision.window;
        self.pacing = decision.pacing.or(self.pacing);
        change
    }

    fn on_recovered(&mut self, event: &RecoveryEnd) -> WindowChange {
        let change = self.base.on_recovered(event);
        if let Some(window) = self.pending_window.take() {
            self.decide(window);
        }
        change
    }

    fn on_idle(&mut self, event: &IdleEvent) -> WindowChange {
        self.base.on_idle(event)
    }

    fn on_mss(&mut self, mss: u32, maxseg: u32) {
        self.mss = mss;
        self.base.on_mss(mss, maxseg);
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

impl WindowController for ExternalController {
    fn on_round(&mut self, round: u32) -> WindowChange {
        self.base.on_round(round)
    }

    fn on_rtt_sample(&mut self, sample: &RttSample) -> WindowChange {
        self.base.on_rtt_sample(sample)
    }

    fn on_ack_sample(&mut self, sample: &AckSample) -> WindowChange {
        self.base.on_ack_sample(sample)
    }

    fn on_tx_start(&mut self, ticks: u64, last_sent: u64) {
        self.base.on_tx_start(ticks, last_sent);
    }
}

impl Clone for ExternalController {
    fn clone(&self) -> Self {
        let (pilot, base) = (self.pilot.fork(), self.base.clone());
        Self { pilot, base, failure: self.failure.clone(), ..*self }
    }
}

impl Debug for ExternalController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.maker.name();
        f.debug_struct("Piloted").field("by", &name).field("base", &self.base).finish()
    }
}

/// Compares the factory and the base.
impl PartialEq for ExternalController {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self.maker, other.maker) && self.base == other.base
    }
}

impl Eq for ExternalController {}
