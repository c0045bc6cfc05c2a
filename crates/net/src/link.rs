//! A drop-tail queue in front of a line.

use core::num::NonZeroU64;
use machine::{Element, PacketId, Verdict, View};
use units::{Bytes, Duration, Instant, Rate};

use crate::row::Row;

/// Room of a queue, not counting the packet on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// IP bytes.
    Bytes(Bytes),
    /// Packets of any size.
    Packets(u32),
}

/// A line of a fixed rate with a first-in first-out queue; what finds no room is lost.
#[derive(Debug, Clone)]
pub struct Link {
    rate: Rate,
    /// Nanoseconds a byte takes, where that is a whole number.
    per_byte: Option<NonZeroU64>,
    limit: Limit,
    carry: u64,
    /// The packet on the line and when its last bit leaves.
    sending: Option<(PacketId, Instant)>,
    queue: Row<(PacketId, u32)>,
    queued: Bytes,
}

impl Link {
    /// An idle line.
    pub const fn new(rate: Rate, limit: Limit) -> Self {
        Self {
            rate,
            per_byte: rate.nanos_per_byte(),
            limit,
            carry: 0,
            sending: None,
            queue: Row::new(),
            queued: Bytes::ZERO,
        }
    }

    /// How long a packet is on the line.
    #[inline]
    fn time_to_send(&mut self, size: Bytes) -> Duration {
        match self.per_byte {
            // Then nothing is ever carried, and nothing has to be divided.
            Some(nanos) => Duration::from_nanos(size.get() * nanos.get()),
            None => self.time_in_parts(size),
        }
    }

    #[inline(never)]
    fn time_in_parts(&mut self, size: Bytes) -> Duration {
        self.rate.time_to_send(size, &mut self.carry)
    }

    #[inline]
    fn has_room(&self, size: Bytes) -> bool {
        match self.limit {
            Limit::Bytes(limit) => self.queued + size <= limit,
            Limit::Packets(limit) => self.queue.len() < limit as usize,
        }
    }

    /// Takes a packet of `size` IP bytes; false if it is lost for want of room.
    #[inline]
    pub fn take(&mut self, now: Instant, packet: PacketId, size: Bytes) -> bool {
        if self.sending.is_none() {
            // The line has been idle: what was left of the last nanosecond is gone.
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
}

impl Element for Link {
    #[inline]
    fn accept(&mut self, now: Instant, packet: PacketId, view: &View) -> Verdict {
        if self.take(now, packet, view.size) { Verdict::Taken } else { Verdict::Dropped }
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

    fn gigabit(limit: Limit) -> Link {
        Link::new(Rate::from_bits_per_second(1_000_000_000).unwrap(), limit)
    }

    #[test]
    fn packets_leave_one_behind_the_other() {
        let mut link = gigabit(Limit::Packets(10));
        for n in 0..3 {
            assert_eq!(link.accept(at(0), PacketId(n), &data(1_500)), Verdict::Taken);
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
        let mut link = gigabit(Limit::Packets(10));
        link.accept(at(0), PacketId(0), &data(1_500));
        link.accept(at(0), PacketId(1), &data(1_500));
        assert_eq!(link.wake(at(30_000)), Some(PacketId(0)));
        assert_eq!(link.wake(at(30_000)), Some(PacketId(1)));
        assert_eq!(link.wake(at(30_000)), None);
    }

    #[test]
    fn what_finds_no_room_is_lost() {
        let mut bytes = gigabit(Limit::Bytes(Bytes(3_000)));
        let mut packets = gigabit(Limit::Packets(2));
        for n in 0..3 {
            assert_eq!(bytes.accept(at(0), PacketId(n), &data(1_500)), Verdict::Taken);
            assert_eq!(packets.accept(at(0), PacketId(n), &data(1_500)), Verdict::Taken);
        }
        assert_eq!(bytes.accept(at(0), PacketId(3), &data(40)), Verdict::Dropped);
        assert_eq!(packets.accept(at(0), PacketId(3), &data(40)), Verdict::Dropped);
        bytes.wake(at(12_000));
        assert_eq!(bytes.accept(at(12_000), PacketId(3), &data(1_500)), Verdict::Taken);
        assert_eq!(bytes.accept(at(12_000), PacketId(4), &data(1)), Verdict::Dropped);
    }

    #[test]
    fn a_busy_line_loses_no_part_of_a_nanosecond() {
        let rate = Rate::from_bits_per_second(100_000_000_000).unwrap();
        let mut link = Link::new(rate, Limit::Packets(1_000));
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
