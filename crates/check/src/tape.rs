//! A record kept in memory.

use record::{Event, Movement, Recorder, SenderState, Who};
use units::Instant;

use crate::summary::Summary;
use crate::verifier::Verifier;
use crate::violation::Rejection;
use crate::world::World;

/// One thing a run told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event {
        /// When.
        at: Instant,
        /// Whom it concerns.
        who: Who,
        /// What happened.
        event: Event,
        /// The sender's state that came with it.
        state: Option<SenderState>,
    },
    /// A step of a packet.
    Moved {
        /// When.
        at: Instant,
        /// The step.
        movement: Movement,
    },
}

impl Item {
    /// When it happened.
    pub const fn at(&self) -> Instant {
        match *self {
            Self::Event { at, .. } | Self::Moved { at, .. } => at,
        }
    }

    /// Tells it to `listener`.
    pub fn tell<R: Recorder>(&self, listener: &mut R) {
        match *self {
            Self::Event { at, who, event, ref state } => {
                listener.record(at, who, event, state.as_ref());
            }
            Self::Moved { at, movement } => listener.moved(at, movement),
        }
    }
}

/// Keeps all that a run tells, in order.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    /// What was told.
    pub items: Vec<Item>,
}

impl Recorder for Tape {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.items.push(Item::Event { at, who, event, state: state.copied() });
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        self.items.push(Item::Moved { at, movement });
    }
}

/// Verifies a record kept, up to its last item.
///
/// # Errors
/// What is wrong with the description, or with the record.
pub fn verify(world: &World, items: &[Item]) -> Result<Summary, Rejection> {
    let mut verifier = Verifier::new(world).map_err(Rejection::World)?;
    for item in items {
        item.tell(&mut verifier);
    }
    let end = items.last().map_or(Instant::ZERO, Item::at);
    verifier.finish(end).map_err(Rejection::Record)
}
