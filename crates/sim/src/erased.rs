//! Observers behind one type.
//!
//! The compiler makes an engine for each type of observer, of about 170 kB. Most runs share three of
//! them: with the events of single packets, without those, and without any events, which is as fast
//! as an engine of its own.

use core::ops::ControlFlow;

use packet::{PacketTooBig, Segment};
use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use units::Instant;

use crate::{Observer, RunError, RunOutcome, Scenario, run};

/// Runs a scenario like [`run`], with an engine that all observers share: the same events and the
/// same outcome, more slowly if the observer wants events.
///
/// # Errors
/// Those of [`run`].
pub fn run_shared<O: Observer>(
    scenario: &Scenario,
    observer: &mut O,
) -> Result<RunOutcome, RunError> {
    match (O::ON, O::PACKETS) {
        (_, true) => run_with_packets(scenario, ErasedObserver::new(observer)),
        (true, false) => run_with_events(scenario, ErasedObserver::new(observer)),
        (false, false) => run_without_events(scenario, ErasedObserver::new(observer)),
    }
}

/// Not generic, so that optimised builds have its engine once, and not once for each crate.
fn run_with_packets(
    scenario: &Scenario,
    mut observer: ErasedObserver<'_, true, true>,
) -> Result<RunOutcome, RunError> {
    run(scenario, &mut observer)
}

fn run_with_events(
    scenario: &Scenario,
    mut observer: ErasedObserver<'_, true, false>,
) -> Result<RunOutcome, RunError> {
    run(scenario, &mut observer)
}

fn run_without_events(
    scenario: &Scenario,
    mut observer: ErasedObserver<'_, false, false>,
) -> Result<RunOutcome, RunError> {
    run(scenario, &mut observer)
}

/// An observer whose type is known at run time only. It receives events if `ON` is true, and those of
/// single packets if `PACKETS` is true, if the observer wants them; always taps and progress.
#[expect(missing_debug_implementations, reason = "the observer may have none")]
pub struct ErasedObserver<'a, const ON: bool, const PACKETS: bool>(&'a mut dyn AnyObserver);

impl<'a, const ON: bool, const PACKETS: bool> ErasedObserver<'a, ON, PACKETS> {
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
    fn any_icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig);
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

    fn any_icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        self.icmp(at, tap, outbound, message);
    }

    fn any_progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.progress(now)
    }
}

impl<const ON: bool, const PACKETS: bool> Recorder for ErasedObserver<'_, ON, PACKETS> {
    const ON: bool = ON;
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

impl<const ON: bool, const PACKETS: bool> Observer for ErasedObserver<'_, ON, PACKETS> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.0.any_tap(at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        self.0.any_datagram(at, tap, outbound, packet);
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        self.0.any_icmp(at, tap, outbound, message);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        self.0.any_progress(now)
    }
}
