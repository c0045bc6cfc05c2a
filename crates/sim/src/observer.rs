//! Who watches a run.

use core::ops::ControlFlow;

use packet::Segment;
use record::{Event, Movement, Recorder, Sender, SenderState, Who};
use units::Instant;

/// Turns of a run between two calls of [`Observer::progress`].
pub const PROGRESS_EVERY: u64 = 1 << 16;

/// A recorder that may also look through the scenario's taps.
pub trait Observer: Recorder {
    /// A segment passed capture point number `tap` of the scenario; `outbound`: it leaves the
    /// host.
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        let _ = (at, tap, outbound, segment);
    }

    /// The same of a QUIC packet.
    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::Packet) {
        let _ = (at, tap, outbound, packet);
    }

    /// Called with the virtual time reached, once in [`PROGRESS_EVERY`] turns: for progress bars.
    /// [`ControlFlow::Break`] ends the run with [`RunError::Stopped`](crate::RunError::Stopped).
    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        let _ = now;
        ControlFlow::Continue(())
    }
}

impl Observer for record::Off {}
impl Observer for record::Digest {}

/// Who is lent for a run.
impl<O: Observer> Observer for &mut O {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        (**self).tap(at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::Packet) {
        (**self).datagram(at, tap, outbound, packet);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        (**self).progress(now)
    }
}

/// Two observers at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch<A, B>(
    /// Told first.
    pub A,
    /// Told second.
    pub B,
);

impl<A: Recorder, B: Recorder> Recorder for Watch<A, B> {
    const ON: bool = A::ON || B::ON;
    const PACKETS: bool = A::PACKETS || B::PACKETS;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
        self.1.record(at, who, event, state);
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: Who,
        event: impl FnOnce() -> Event,
        sender: &impl Sender,
    ) {
        let event = event();
        if A::ON {
            self.0.record_sender(at, who, || event, sender);
        }
        if B::ON {
            self.1.record_sender(at, who, || event, sender);
        }
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        self.0.moved(at, movement);
        self.1.moved(at, movement);
    }
}

impl<A: Observer, B: Observer> Observer for Watch<A, B> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.0.tap(at, tap, outbound, segment);
        self.1.tap(at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::Packet) {
        self.0.datagram(at, tap, outbound, packet);
        self.1.datagram(at, tap, outbound, packet);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        let first = self.0.progress(now);
        let second = self.1.progress(now);
        if first.is_break() { first } else { second }
    }
}
