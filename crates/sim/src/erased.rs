//! Observers behind one type.
//!
//! The compiler makes an engine for each type of observer, of about 170 kB. Runs where speed does not
//! matter share two of them: with the events of single packets, and without.

use core::ops::ControlFlow;

use packet::Segment;
use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use units::Instant;

use crate::{Observer, RunError, RunOutcome, Scenario, run};

/// Runs a scenario like [`run`], with an engine that all observers share: the same events and the
/// same outcome, more slowly.
///
/// # Errors
/// Those of [`run`].
pub fn run_shared<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
) -> Result<RunOutcome, RunError> {
    if O::PACKETS {
        run_with_packets(scenario, ErasedObserver::new(observer))
    } else {
        run_without_packets(scenario, ErasedObserver::new(observer))
    }
}

/// Not generic, so that optimised builds have its engine once, and not once for each crate.
fn run_with_packets(
    scenario: &Scenario,
    mut observer: ErasedObserver<'_, true>,
) -> Result<RunOutcome, RunError> {
    run(scenario, &mut observer)
}

fn run_without_packets(
    scenario: &Scenario,
    mut observer: ErasedObserver<'_, false>,
) -> Result<RunOutcome, RunError> {
    run(scenario, &mut observer)
}

/// An observer whose type is known at run time only. It receives events of single packets if
/// `PACKETS` is true, and if the observer wants them.
#[expect(missing_debug_implementations, reason = "the observer may have none")]
pub struct ErasedObserver<'a, const PACKETS: bool>(&'a mut dyn AnyObserver);

impl<'a, const PACKETS: bool> ErasedObserver<'a, PACKETS> {
    /// Erases the type of an observer.
    pub fn new<O: Observer>(observer: &'a mut O) -> Self {
        Self(observer)
    }
}

/// What [`Observer`] is without type parameters.
trait AnyObserver {
    fn any_record(
        &mut self,
        at: Instant,
        who: EventSource,
        event: Event,
        state: Option<&SenderState>,
    );
    fn any_record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: Event,
        sender: &dyn Sender,
    );
    fn any_record_packet(&mut self, at: Instant, movement: PacketEvent);
    fn any_tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment);
    fn any_datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket);
    fn any_progress(&mut self, now: Instant) -> ControlFlow<()>;
}

impl<O: Observer> AnyObserver for O {
    fn any_record(
        &mut self,
        at: Instant,
        who: EventSource,
        event: Event,
        state: Option<&SenderState>,
    ) {
        if O::ON {
            self.record(at, who, event, state);
        }
    }

    fn any_record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: Event,
        sender: &dyn Sender,
    ) {
        if O::ON {
            self.record_sender(at, who, || event, &sender);
        }
    }

    fn any_record_packet(&mut self, at: Instant, movement: PacketEvent) {
        if O::PACKETS {
            self.record_packet(at, movement);
        }
    }

    fn any_tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.tap(at, tap, outbound, segment);
    }

    fn any_datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        self.datagram(at, tap, outbound, packet);
    }

    fn any_progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.progress(now)
    }
}

impl<const PACKETS: bool> Recorder for ErasedObserver<'_, PACKETS> {
    const ON: bool = true;
    const PACKETS: bool = PACKETS;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.0.any_record(at, who, event, state);
    }

    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        self.0.any_record_sender(at, who, event(), sender);
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.0.any_record_packet(at, movement);
    }
}

impl<const PACKETS: bool> Observer for ErasedObserver<'_, PACKETS> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.0.any_tap(at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        self.0.any_datagram(at, tap, outbound, packet);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.0.any_progress(now)
    }
}
