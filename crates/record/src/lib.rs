//! The events of a run and the interface of their recorders. Layer 1.
//!
//! [`event`] defines the events: plain `Copy` data. [`state`] is the sender's state as one record,
//! and the trait through which it is read, whole or in parts. [`packet_event`] has the events of
//! single packets. [`Recorder`] is a generic parameter of everything that runs, so recording costs
//! nothing when it is off: with [`NullRecorder`] the calls are compiled out.
//!
//! This crate writes no file and knows no format.

pub mod event;
pub mod packet_event;
pub mod state;
pub mod tcp_bits;

mod digest;
mod shortcuts;

pub use digest::Digest;
pub use event::{Cause, Event, LossTrigger, Purpose, SendLimit, SentKind};
pub use packet_event::{ElementId, PacketEvent, PacketNumber};
pub use shortcuts::{LongWay, Shortcuts};
pub use state::{BbrPhase, BbrState, Sender, SenderState};
pub use tcp_bits::{SynOffers, TcpBits};

use units::{FlowId, HostId, Instant};

/// The host and flow of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EventSource {
    /// Host on which the event occurred.
    pub host: HostId,
    /// Connection that the event belongs to.
    pub flow: FlowId,
}

/// Receives the events of a run.
pub trait Recorder {
    /// If false, the compiler removes every call.
    const ON: bool;

    /// If true, events of single packets are recorded too.
    const PACKETS: bool = false;

    /// If false, [`Recorder::record`] needs no state of senders, and none is read.
    const STATES: bool = true;

    /// The shortened paths that the engine may take; they change no result.
    const SHORTCUTS: Shortcuts = Shortcuts::ALL;

    /// Records an event, with the sender's state after it if the event concerns a sender.
    fn record(
        &mut self,
        at: Instant,
        source: EventSource,
        event: Event,
        state: Option<&SenderState>,
    );

    /// Records an event of a sender, whose state after it can be read from `sender`: all of it, or
    /// nothing without [`Recorder::STATES`]. Override this to read only some fields; `event` is
    /// evaluated only when called.
    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        source: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        let state = if Self::STATES { Some(sender.snapshot()) } else { None };
        self.record(at, source, event(), state.as_ref());
    }

    /// Records a packet event; called only if [`Recorder::PACKETS`] is true.
    #[inline(always)]
    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        let _ = (at, movement);
    }
}

/// A borrowed recorder.
impl<R: Recorder> Recorder for &mut R {
    const ON: bool = R::ON;
    const PACKETS: bool = R::PACKETS;
    const STATES: bool = R::STATES;
    const SHORTCUTS: Shortcuts = R::SHORTCUTS;

    #[inline]
    fn record(
        &mut self,
        at: Instant,
        source: EventSource,
        event: Event,
        state: Option<&SenderState>,
    ) {
        (**self).record(at, source, event, state);
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        source: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        (**self).record_sender(at, source, event, sender);
    }

    #[inline]
    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        (**self).record_packet(at, movement);
    }
}

/// A recorder that discards everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullRecorder;

impl Recorder for NullRecorder {
    const ON: bool = false;

    #[inline(always)]
    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}
}
