//! Stopping a run from another thread.

use core::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::Segment;
use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use sim::{Observer, RunError, RunOutcome, Scenario};
use units::Instant;

/// Once set, runs end with [`RunError::Stopped`].
pub type StopFlag<'a> = &'a AtomicBool;

/// A flag that is never set.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// Runs a scenario with an observer until its end or until `stop` is set. The flag is also checked
/// before the run, which may be too short to check it.
///
/// # Errors
/// Those of [`sim::run`].
pub fn run(
    scenario: &Scenario,
    observer: &mut impl Observer,
    stop: StopFlag<'_>,
) -> Result<RunOutcome, RunError> {
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Stopped);
    }
    sim::run(scenario, &mut Stoppable(observer, stop))
}

/// Runs a scenario like [`run`], with an engine that all observers share: for runs where speed does
/// not matter.
///
/// # Errors
/// Those of [`sim::run`].
pub fn run_shared(
    scenario: &Scenario,
    observer: &mut impl Observer,
    stop: StopFlag<'_>,
) -> Result<RunOutcome, RunError> {
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Stopped);
    }
    sim::run_shared(scenario, &mut Stoppable(observer, stop))
}

/// Forwards to another observer and checks the flag.
#[derive(Debug)]
struct Stoppable<'a, O>(&'a mut O, StopFlag<'a>);

impl<O: Recorder> Recorder for Stoppable<'_, O> {
    const ON: bool = O::ON;
    const PACKETS: bool = O::PACKETS;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
    }

    #[inline(always)]
    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        self.0.record_sender(at, who, event, sender);
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.0.record_packet(at, movement);
    }
}

impl<O: Observer> Observer for Stoppable<'_, O> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.0.tap(at, tap, outbound, segment);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        if self.1.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        self.0.progress(now)
    }
}
