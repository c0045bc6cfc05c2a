//! Leaving a run before its end.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::Segment;
use record::{Event, Movement, Recorder, SenderState, Who};
use sim::Observer;
use units::Instant;

/// What a run unwinds with when it is left. Whoever sets the flag catches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left;

impl Left {
    /// Was it this that was thrown?
    pub fn is(thrown: &(dyn Any + Send)) -> bool {
        thrown.is::<Self>()
    }
}

/// Watches a run for another observer, and leaves it once the flag is set: it unwinds with
/// [`Left`]. Nothing is printed then.
#[derive(Debug)]
pub(crate) struct Leaving<'a, O>(pub(crate) &'a mut O, pub(crate) &'a AtomicBool);

impl<O: Recorder> Recorder for Leaving<'_, O> {
    const ON: bool = O::ON;
    const PACKETS: bool = O::PACKETS;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
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
