//! Times at which packets entered the queues that they are in.

use std::collections::VecDeque;

use record::PacketNumber;
use units::Instant;

/// Arrivals by packet number. A packet is in one queue at a time, so that one table serves all links, and finding a
/// packet takes as long in a long queue as in a short one.
#[derive(Debug, Clone, Default)]
pub(super) struct QueueArrivals {
    /// Number of the first entry.
    first: u64,
    packets: VecDeque<PacketPosition>,
}

/// Where a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PacketPosition {
    /// Not known yet, or received or dropped.
    Outside,
    /// Between queues.
    OnPath,
    /// In a queue since then.
    Queued(Instant),
}

impl QueueArrivals {
    /// The packet left its host, or an element made it: it is kept until its end, so that a packet of a long path does
    /// not move the table back and forth.
    pub(super) fn begin(&mut self, packet: PacketNumber) {
        self.put(packet, PacketPosition::OnPath);
    }

    /// The packet enters a queue.
    pub(super) fn enter(&mut self, packet: PacketNumber, at: Instant) {
        self.put(packet, PacketPosition::Queued(at));
    }

    fn put(&mut self, packet: PacketNumber, position: PacketPosition) {
        if self.packets.is_empty() {
            self.first = packet.0;
        }
        let Some(index) = packet.0.checked_sub(self.first) else { return };
        let index = index as usize;
        if self.packets.len() <= index {
            self.packets.resize(index + 1, PacketPosition::Outside);
        }
        self.packets[index] = position;
    }

    /// The packet leaves its queue and goes on; returns when it entered.
    pub(super) fn leave(&mut self, packet: PacketNumber) -> Option<Instant> {
        self.replace(packet, PacketPosition::OnPath)
    }

    /// The packet was received or dropped; returns when it entered the queue that it was in.
    pub(super) fn end(&mut self, packet: PacketNumber) -> Option<Instant> {
        let arrived = self.replace(packet, PacketPosition::Outside);
        while let Some(PacketPosition::Outside) = self.packets.front() {
            self.packets.pop_front();
            self.first += 1;
        }
        arrived
    }

    fn replace(&mut self, packet: PacketNumber, by: PacketPosition) -> Option<Instant> {
        let index = packet.0.checked_sub(self.first)? as usize;
        match core::mem::replace(self.packets.get_mut(index)?, by) {
            PacketPosition::Queued(arrived) => Some(arrived),
            PacketPosition::Outside | PacketPosition::OnPath => None,
        }
    }
}
