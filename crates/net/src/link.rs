//! A drop-tail queue in front of a line.

use core::num::NonZeroU64;
use machine::{Element, PacketId, PacketVerdict, PacketView};
use units::{Bytes, Duration, Instant, Rate};

use crate::ring_buffer::RingBuffer;

/// Capacity of a queue, excluding the packet in transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueLimit {
    /// IP bytes.
    Bytes(Bytes),
    /// Packets of any size.
    Packets(u32),
}

/// A line of a fixed rate with a first-in first-out queue; drops packets that do not fit.
#[derive(Debug, Clone)]
pub struct Link {
    rate: Rate,
    /// Nanoseconds per byte, where that is a whole number.
    per_byte: Option<NonZeroU64>,
    limit: QueueLimit,
    carry: u64,
    /// The packet in transmission and when its last bit leaves.
    sending: Option<(PacketId, Instant)>,
    queue: RingBuffer<(PacketId, u32)>,
    queued: Bytes,
}

impl Link {
    /// Creates an idle line.
    pub const fn new(rate: Rate, limit: QueueLimit) -> Self {
        Self {
            rate,
            per_byte: rate.nanos_per_byte(),
            limit,
            carry: 0,
            sending: None,
            queue: RingBuffer::new(),
            queued: Bytes::ZERO,
        }
    }

    /// Returns the transmission time of a packet.
    #[inline]
    fn time_to_send(&mut self, size: Bytes) -> Duration {
        match self.per_byte {
            // There is no fraction to carry and nothing to divide.
            Some(nanos) => Duration::from_nanos(size.get() * nanos.get()),
            None => self.time_with_carry(size),
        }
    }

    fn time_with_carry(&mut self, size: Bytes) -> Duration {
        self.rate.time_to_send(size, &mut self.carry)
    }

    #[inline]
    fn has_room(&self, size: Bytes) -> bool {
        match self.limit {
            QueueLimit::Bytes(limit) => self.queued + size <= limit,
            QueueLimit::Packets(limit) => self.queue.len() < limit as usize,
        }
    }

    /// Takes a packet of `size` IP bytes; returns false if the queue is full and the packet is
    /// dropped.
    #[inline]
    pub fn take(&mut self, now: Instant, packet: PacketId, size: Bytes) -> bool {
        if self.sending.is_none() {
            // The line was idle: the fraction of the last nanosecond expires.
            self.carry = 0;
            self.sending = Some((packet, now + self.time_to_send(size)));
            return true;
        }
        if !self.has_room(size) {
            return false;
        }
        self.queue.push((packet, size.get() as u32));
        self.queued += size;
        true
    }

    /// Returns the packet that leaves next, and when.
    #[inline(always)]
    pub fn first(&self) -> Option<(Instant, PacketId)> {
        self.sending.map(|(packet, at)| (at, packet))
    }
}

impl Element for Link {
    #[inline]
    fn accept(&mut self, now: Instant, packet: PacketId, view: &PacketView) -> PacketVerdict {
        if self.take(now, packet, view.size) {
            PacketVerdict::Queued
        } else {
            PacketVerdict::Dropped
        }
    }

    #[inline]
    fn next_wake(&self) -> Option<Instant> {
        self.sending.map(|(_, at)| at)
    }

    #[inline]
    fn wake(&mut self, now: Instant) -> Option<PacketId> {
        let (packet, left_at) = self.sending.filter(|&(_, at)| at <= now)?;
        self.sending = self.queue.pop().map(|(next, size)| {
            let size = Bytes(u64::from(size));
            self.queued -= size;
            (next, left_at + self.time_to_send(size))
        });
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn gigabit(limit: QueueLimit) -> Link {
        Link::new(Rate::from_bits_per_second(1_000_000_000).unwrap(), limit)
    }

    #[test]
    fn packets_leave_one_after_the_other() {
        let mut link = gigabit(QueueLimit::Packets(10));
        for n in 0..3 {
            assert_eq!(link.accept(at(0), PacketId(n), &data(1_500)), PacketVerdict::Queued);
        }
        for n in 0..3 {
            let when = at(12_000 * (u64::from(n) + 1));
            assert_eq!(link.next_wake(), Some(when));
            assert_eq!(link.wake(when), Some(PacketId(n)));
        }
        assert_eq!(link.next_wake(), None);
    }

    #[test]
    fn a_late_call_does_not_delay_the_next_packet() {
        let mut link = gigabit(QueueLimit::Packets(10));
        link.accept(at(0), PacketId(0), &data(1_500));
        link.accept(at(0), PacketId(1), &data(1_500));
        assert_eq!(link.wake(at(30_000)), Some(PacketId(0)));
        assert_eq!(link.wake(at(30_000)), Some(PacketId(1)));
        assert_eq!(link.wake(at(30_000)), None);
    }

    #[test]
    fn packets_that_do_not_fit_are_dropped() {
        let mut bytes = gigabit(QueueLimit::Bytes(Bytes(3_000)));
        let mut packets = gigabit(QueueLimit::Packets(2));
        for n in 0..3 {
            assert_eq!(bytes.accept(at(0), PacketId(n), &data(1_500)), PacketVerdict::Queued);
            assert_eq!(packets.accept(at(0), PacketId(n), &data(1_500)), PacketVerdict::Queued);
        }
        assert_eq!(bytes.accept(at(0), PacketId(3), &data(40)), PacketVerdict::Dropped);
        assert_eq!(packets.accept(at(0), PacketId(3), &data(40)), PacketVerdict::Dropped);
        bytes.wake(at(12_000));
        assert_eq!(bytes.accept(at(12_000), PacketId(3), &data(1_500)), PacketVerdict::Queued);
        assert_eq!(bytes.accept(at(12_000), PacketId(4), &data(1)), PacketVerdict::Dropped);
    }

    #[test]
    fn a_busy_line_loses_no_part_of_a_nanosecond() {
        let rate = Rate::from_bits_per_second(100_000_000_000).unwrap();
        let mut link = Link::new(rate, QueueLimit::Packets(1_000));
        for n in 0..100 {
            link.accept(at(0), PacketId(n), &data(64));
        }
        let mut last = None;
        while let Some(when) = link.next_wake() {
            last = Some(when);
            link.wake(when);
        }
        assert_eq!(last, Some(at(512)));
    }
}
