//! A delay, fixed or changing over time.

use std::collections::VecDeque;

use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Duration, Instant};

use crate::ring_buffer::RingBuffer;
use crate::schedule::Schedule;

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

    /// Returns the packet that leaves next, and when.
    #[inline(always)]
    pub fn first(&self) -> Option<(Instant, PacketId)> {
        self.first
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

/// Holds every packet for the delay of the instant at which it arrives; a packet that would overtake
/// leaves with the one before it instead, so order is kept.
#[derive(Debug, Clone)]
pub struct ChangingDelay {
    span: Schedule<Duration>,
    held: VecDeque<(Instant, PacketId)>,
}

impl ChangingDelay {
    /// Creates an element that holds no packet.
    pub const fn new(span: Schedule<Duration>) -> Self {
        Self { span, held: VecDeque::new() }
    }
}

impl Element for ChangingDelay {
    fn accept(&mut self, now: Instant, packet: PacketId, _: &PacketView) -> PacketVerdict {
        let due = now + self.span.at(now);
        let at = self.held.back().map_or(due, |&(before, _)| due.max(before));
        self.held.push_back((at, packet));
        PacketVerdict::Queued
    }

    fn next_wake(&self) -> Option<Instant> {
        self.held.front().map(|&(at, _)| at)
    }

    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        self.held.pop_front_if(|&mut (at, _)| at <= now).map(|(_, packet)| packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{data, drain};

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

    #[test]
    fn a_packet_has_the_delay_of_its_arrival_and_order_is_kept() {
        let at = Instant::from_nanos;
        let steps = [(0, 50), (10, 20), (100, 60)]
            .map(|(from, span)| (Duration::from_nanos(from), Duration::from_nanos(span)));
        let mut delay = ChangingDelay::new(Schedule::new(steps.to_vec(), None).unwrap());
        for (id, ns) in [0, 10, 40].into_iter().enumerate() {
            delay.accept(at(ns), PacketId(id as u32), &data(1));
        }
        // The second would leave at 30, before the first.
        assert_eq!(drain(&mut delay), [(50, 0), (50, 1), (60, 2)]);
        delay.accept(at(100), PacketId(3), &data(1));
        assert_eq!(drain(&mut delay), [(160, 3)]);
    }
}
