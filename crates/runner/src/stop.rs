//! Runs that another thread can stop.

use core::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::Segment;
use record::{Event, Movement, Recorder, Sender, SenderState, Who};
use sim::{Observer, Outcome, RunError, Scenario};
use units::Instant;

/// Once set, runs end with [`RunError::Stopped`].
pub type Stop<'a> = &'a AtomicBool;

/// A flag that is never set.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// Runs a scenario under an observer until its end or until `stop` is set, also if that was set before: a
/// run may be too short to look at the flag.
///
/// # Errors
/// Those of [`sim::run`].
pub fn run(
    scenario: &Scenario,
    observer: &mut impl Observer,
    stop: Stop<'_>,
) -> Result<Outcome, RunError> {
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Stopped);
    }
    sim::run(scenario, &mut Stoppable(observer, stop))
}

/// Forwards everything to another observer and looks at the flag.
#[derive(Debug)]
struct Stoppable<'a, O>(&'a mut O, Stop<'a>);

impl<O: Recorder> Recorder for Stoppable<'_, O> {
    const ON: bool = O::ON;
    const PACKETS: bool = O::PACKETS;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
    }

    #[inline(always)]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        self.0.record_sender(at, who, event, sender);
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        self.0.moved(at, movement);
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
