//! A fixed delay.

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant};

use crate::ring_buffer::RingBuffer;

/// Holds every packet for the same time; order is kept.
#[derive(Debug, Clone)]
pub struct Delay {
    span: Duration,
    /// The next packet to leave is stored separately, since it is read most often.
    first: Option<(Instant, PacketId)>,
    behind: RingBuffer<(Instant, PacketId)>,
}

impl Delay {
    /// Creates an empty delay of `span`.
    pub const fn new(span: Duration) -> Self {
        Self { span, first: None, behind: RingBuffer::new() }
    }

    /// Takes a packet.
    #[inline]
    pub fn take(&mut self, now: Instant, packet: PacketId) {
        let entry = (now + self.span, packet);
        if self.first.is_none() {
            self.first = Some(entry);
        } else {
            self.behind.push(entry);
        }
    }
}

impl Element for Delay {
    #[inline]
    fn accept(&mut self, now: Instant, packet: PacketId, _: &PacketView) -> PacketVerdict {
        self.take(now, packet);
        PacketVerdict::Queued
    }

    #[inline]
    fn next_wake(&self) -> Option<Instant> {
        self.first.map(|(at, _)| at)
    }

    #[inline]
    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        let (_, packet) = self.first.filter(|&(at, _)| at <= now)?;
        self.first = self.behind.pop();
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn every_packet_waits_the_same_time() {
        let at = Instant::from_nanos;
        let mut delay = Delay::new(Duration::from_nanos(50));
        delay.accept(at(0), PacketId(0), &data(1));
        delay.accept(at(7), PacketId(1), &data(1));
        assert_eq!(delay.wake(at(49)), None);
        assert_eq!(delay.wake(at(50)), Some(PacketId(0)));
        assert_eq!(delay.wake(at(50)), None);
        assert_eq!(delay.next_wake(), Some(at(57)));
        assert_eq!(delay.wake(at(57)), Some(PacketId(1)));
    }
}
