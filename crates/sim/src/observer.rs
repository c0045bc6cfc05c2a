//! Observers of a run.

use core::ops::ControlFlow;

use packet::{PacketTooBig, Segment};
use record::{Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use units::Instant;

/// Event-loop steps between two calls of [`Observer::progress`].
pub const PROGRESS_EVERY: u64 = 1 << 16;

/// A recorder that also receives the packets at the scenario's capture points.
pub trait Observer: Recorder {
    /// Called for a segment at capture point number `tap` of the scenario; `outbound`: it leaves
    /// the host.
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        let _ = (at, tap, outbound, segment);
    }

    /// Called for a QUIC packet at a capture point.
    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        let _ = (at, tap, outbound, packet);
    }

    /// Called for an ICMP error at a capture point.
    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        let _ = (at, tap, outbound, message);
    }

    /// Called with the current virtual time once in [`PROGRESS_EVERY`] steps, for progress bars.
    /// [`ControlFlow::Break`] ends the run with [`RunError::Stopped`](crate::RunError::Stopped).
    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        let _ = now;
        ControlFlow::Continue(())
    }
}

impl Observer for record::NullRecorder {}
impl Observer for record::Digest {}

impl<O: Observer, const WITHOUT: u8> Observer for record::LongWay<O, WITHOUT> {
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
        self.0.progress(now)
    }
}

impl<O: Observer> Observer for &mut O {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        (**self).tap(at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        (**self).datagram(at, tap, outbound, packet);
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        (**self).icmp(at, tap, outbound, message);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        (**self).progress(now)
    }
}

/// Two observers of one run.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObserverPair<A, B>(
    /// Called first.
    pub A,
    /// Called second.
    pub B,
);

impl<A: Recorder, B: Recorder> Recorder for ObserverPair<A, B> {
    const ON: bool = A::ON || B::ON;
    const PACKETS: bool = A::PACKETS || B::PACKETS;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
        self.1.record(at, who, event, state);
    }

    #[inline]
    fn record_sender(
        &mut self,
        at: Instant,
        who: EventSource,
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

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        self.0.record_packet(at, movement);
        self.1.record_packet(at, movement);
    }
}

impl<A: Observer, B: Observer> Observer for ObserverPair<A, B> {
    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        self.0.tap(at, tap, outbound, segment);
        self.1.tap(at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        self.0.datagram(at, tap, outbound, packet);
        self.1.datagram(at, tap, outbound, packet);
    }

    fn icmp(&mut self, at: Instant, tap: usize, outbound: bool, message: &PacketTooBig) {
        self.0.icmp(at, tap, outbound, message);
        self.1.icmp(at, tap, outbound, message);
    }

    fn progress(&mut self, now: Instant) -> ControlFlow<()> {
        let first = self.0.progress(now);
        let second = self.1.progress(now);
        if first.is_break() { first } else { second }
    }
}
