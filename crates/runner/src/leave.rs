//! Leaving a run before its end.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::Segment;
use record::{Event, Movement, Recorder, Sender, SenderState, Who};
use sim::{Observer, Outcome, Scenario, SetupError};
use units::Instant;

/// Once set, runs are left.
pub type Stop<'a> = &'a AtomicBool;

/// A flag that nobody sets.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// What a run unwinds with when it is left. Whoever sets the flag catches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left;

impl Left {
    /// Was it this that was thrown?
    pub fn is(thrown: &(dyn Any + Send)) -> bool {
        thrown.is::<Self>()
    }
}

/// Runs a scenario under an observer, and leaves it once `stop` is set: it unwinds with [`Left`],
/// also where that was set before, for a run may be too short to look up.
///
/// # Errors
/// Those of [`sim::run`].
pub fn run(
    scenario: &Scenario,
    observer: &mut impl Observer,
    stop: Stop<'_>,
) -> Result<Outcome, SetupError> {
    if stop.load(Ordering::Relaxed) {
        resume_unwind(Box::new(Left));
    }
    sim::run(scenario, &mut Leaving(observer, stop))
}

/// Watches a run for another observer, and leaves it once the flag is set: it unwinds with
/// [`Left`]. Nothing is printed then.
#[derive(Debug)]
struct Leaving<'a, O>(&'a mut O, Stop<'a>);

impl<O: Recorder> Recorder for Leaving<'_, O> {
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

impl<O: Observer> Observer for Leaving<'_, O> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.0.tap(at, tap, outbound, segment);
    }

    fn progress(&mut self, now: Instant) {
        if self.1.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Left));
        }
        self.0.progress(now);
    }
}
