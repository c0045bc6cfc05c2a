//! A record kept in memory.

use record::{Event, EventSource, PacketEvent, Recorder, SenderState};
use units::Instant;

use crate::summary::VerifiedSummary;
use crate::verifier::Verifier;
use crate::violation::Rejection;
use crate::world::WorldModel;

/// One item of a record.
#[expect(
    clippy::large_enum_variant,
    reason = "an item is passed on at once, or kept for a short run"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordItem {
    /// A connection event.
    Event {
        /// Time.
        at: Instant,
        /// Host and flow.
        who: EventSource,
        /// The event.
        event: Event,
        /// The sender's state recorded with it.
        state: Option<SenderState>,
    },
    /// A packet event.
    PacketItem {
        /// Time.
        at: Instant,
        /// The event.
        movement: PacketEvent,
    },
}

impl RecordItem {
    /// Returns the time of the item.
    pub const fn at(&self) -> Instant {
        match *self {
            Self::Event { at, .. } | Self::PacketItem { at, .. } => at,
        }
    }

    /// Replays it to `listener`.
    pub fn report<R: Recorder>(&self, listener: &mut R) {
        match *self {
            Self::Event { at, who, event, ref state } => {
                listener.record(at, who, event, state.as_ref());
            }
            Self::PacketItem { at, movement } => listener.record_packet(at, movement),
        }
    }
}

/// Keeps all items of a run, in order.
#[derive(Debug, Clone, Default)]
pub struct RecordedRun {
    /// The items.
    pub items: Vec<RecordItem>,
}

impl Recorder for RecordedRun {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.items.push(RecordItem::Event { at, who, event, state: state.copied() });
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.items.push(RecordItem::PacketItem { at, movement });
    }
}

/// Verifies a stored record, up to its last item.
///
/// # Errors
/// The errors of the description, or the violations of the record.
pub fn verify(world: &WorldModel, items: &[RecordItem]) -> Result<VerifiedSummary, Rejection> {
    let mut verifier = Verifier::new(world).map_err(Rejection::World)?;
    for item in items {
        item.report(&mut verifier);
    }
    let end = items.last().map_or(Instant::ZERO, RecordItem::at);
    verifier.finish(end).map_err(Rejection::Record)
}
