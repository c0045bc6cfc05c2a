//! What can be said about a run, and who listens. Layer 1.
//!
//! [`event`] is the vocabulary: plain `Copy` data. [`state`] is the sender's state as a row, and
//! the senders that it is read from, whole or in parts.
//! [`movement`] are the steps of single packets.
//! [`Recorder`] is a generic parameter of everything that runs, so that watching costs nothing
//! when nobody watches: with [`Off`] the calls vanish.
//!
//! What it does not do: it writes no file and knows no format.

pub mod event;
pub mod movement;
pub mod state;

mod digest;

pub use digest::Digest;
pub use event::{Cause, Event, Evidence, Purpose, SentKind, Waiting};
pub use movement::{Movement, PacketNumber, StationId};
pub use state::{Sender, SenderState};

use units::{FlowId, HostId, Instant};

/// Whom an event concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Who {
    /// The host it happened on.
    pub host: HostId,
    /// The connection.
    pub flow: FlowId,
}

/// Listens to a run.
pub trait Recorder {
    /// False lets the compiler remove every call.
    const ON: bool;

    /// True asks for the steps of every packet as well.
    const PACKETS: bool = false;

    /// An event, with the sender's state after it where the event is one of a sender.
    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>);

    /// An event of a sender, which stands there to be asked for its state after it. Whoever does not
    /// want all of that from everybody says here what he reads; the event is made if it is asked for.
    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        self.record(at, who, event(), Some(&sender.row()));
    }

    /// A step of a packet; told only where [`Recorder::PACKETS`] is true.
    #[inline(always)]
    fn moved(&mut self, at: Instant, movement: Movement) {
        let _ = (at, movement);
    }
}

/// Who is lent for a run.
impl<R: Recorder> Recorder for &mut R {
    const ON: bool = R::ON;
    const PACKETS: bool = R::PACKETS;

    #[inline]
    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        (**self).record(at, who, event, state);
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        (**self).record_sender(at, who, event, sender);
    }

    #[inline]
    fn moved(&mut self, at: Instant, movement: Movement) {
        (**self).moved(at, movement);
    }
}

/// Nobody listens.
#[derive(Debug, Clone, Copy, Default)]
pub struct Off;

impl Recorder for Off {
    const ON: bool = false;

    #[inline(always)]
    fn record(&mut self, _: Instant, _: Who, _: Event, _: Option<&SenderState>) {}
}
