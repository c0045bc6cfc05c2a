//! A fixed delay.

use std::collections::VecDeque;

use machine::{Element, PacketId, Verdict, View};
use units::{Duration, Instant};

/// Holds every packet for the same time; order is kept.
#[derive(Debug, Clone)]
pub struct Delay {
    span: Duration,
    held: VecDeque<(Instant, PacketId)>,
}

impl Delay {
    /// An empty delay of `span`.
    pub const fn new(span: Duration) -> Self {
        Self { span, held: VecDeque::new() }
    }

    /// Takes a packet.
    #[inline]
    pub fn take(&mut self, now: Instant, packet: PacketId) {
        self.held.push_back((now + self.span, packet));
    }
}

impl Element for Delay {
    #[inline]
    fn accept(&mut self, now: Instant, packet: PacketId, _: &View) -> Verdict {
        self.take(now, packet);
        Verdict::Taken
    }

    #[inline]
    fn next_wake(&self) -> Option<Instant> {
        self.held.front().map(|&(at, _)| at)
    }

    #[inline]
    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        if self.next_wake()? > now {
            return None;
        }
        self.held.pop_front().map(|(_, packet)| packet)
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
