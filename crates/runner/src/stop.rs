//! Stopping a run from another thread.

use core::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use packet::{PacketTooBig, Segment};
use record::{Event, EventSource, NullRecorder, PacketEvent, Recorder, Sender, SenderState};
use sim::{Observer, RunError, RunOutcome, Scenario};
use units::Instant;

use crate::sharing::{self, Sharing};

/// Once set, runs end with [`RunError::Stopped`].
pub type StopFlag<'a> = &'a AtomicBool;

/// A flag that is never set.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// Runs a scenario with an observer until its end or until `stop` is set, with an engine that
/// observers share. The flag is also checked before the run, which may be too short to check it.
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

/// Runs a scenario like [`run_shared`] and measures fairness and queue delays, with the engine of
/// [`sharing::run`].
///
/// # Errors
/// Those of [`sim::run`].
pub fn run_sharing(
    scenario: &Scenario,
    sharing: &mut Sharing,
    stop: StopFlag<'_>,
) -> Result<RunOutcome, RunError> {
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Stopped);
    }
    sharing::run(scenario, sharing, &mut Stoppable(&mut NullRecorder, stop))
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

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        self.0.datagram(at, tap, outbound, packet);
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        self.0.icmp(at, tap, outbound, message);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        if self.1.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        self.0.progress(now)
    }
}
