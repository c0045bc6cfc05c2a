//! The packets of the retransmission queue, as far as they matter for memory.

use std::collections::VecDeque;

use units::Offset;

/// Where a packet of the retransmission queue ends, and in the lowest bit whether the peer has SACKed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
struct FlightPacket(u64);

impl FlightPacket {
    const fn new(end: Offset) -> Self {
        Self(end.0 << 1)
    }

    const fn end(self) -> Offset {
        Offset(self.0 >> 1)
    }

    const fn is_sacked(self) -> bool {
        self.0 & 1 == 1
    }

    const fn sacked(self) -> Self {
        Self(self.0 | 1)
    }
}

/// The packets of the retransmission queue, one after the other.
#[derive(Debug, Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct FlightPackets {
    packets: VecDeque<FlightPacket>,
    /// Start of the queue.
    una: Offset,
}

impl FlightPackets {
    pub(super) const fn new() -> Self {
        Self { packets: VecDeque::new(), una: Offset(1) }
    }

    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Where the packets end.
    #[cfg(test)]
    pub(super) fn ends(&self) -> Vec<Offset> {
        self.packets.iter().map(|packet| packet.end()).collect()
    }

    /// Number of packets from `begin` on.
    pub(super) fn len_from(&self, begin: Offset) -> u64 {
        self.packets.iter().rev().take_while(|packet| packet.end() > begin).count() as u64
    }

    /// Appends a packet that ends at `end`.
    #[inline]
    pub(super) fn push(&mut self, end: Offset) {
        self.packets.push_back(FlightPacket::new(end));
    }

    /// Removes what is acknowledged: everything before `una`.
    #[inline]
    pub(super) fn acknowledge(&mut self, una: Offset) {
        if self.packets.is_empty() {
            return;
        }
        self.una = una;
        while self.packets.front().is_some_and(|packet| packet.end() <= una) {
            self.packets.pop_front();
        }
    }

    /// The end of the packet that contains `at`.
    pub(super) fn end_of(&self, at: Offset) -> Option<Offset> {
        let index = self.packets.partition_point(|packet| packet.end() <= at);
        self.packets.get(index).map(|packet| packet.end())
    }

    /// The peer has SACKed the bytes from `left` to `right` (tcp_sacktag_walk, tcp_shift_skb_data).
    pub(super) fn report(&mut self, left: Offset, right: Offset) {
        if self.packets.is_empty() {
            return;
        }
        self.split(left);
        self.split(right);
        let mut index = self.packets.partition_point(|packet| packet.end() <= left);
        while let Some(&packet) = self.packets.get(index)
            && packet.end() <= right
        {
            if packet.is_sacked() {
                index += 1;
                continue;
            }
            let before = index.checked_sub(1).filter(|&at| self.packets[at].is_sacked());
            let Some(before) = before else {
                self.packets[index] = packet.sacked();
                index += 1;
                continue;
            };
            self.packets.remove(index);
            // A filled hole lets the one behind it join, too.
            let next = self.packets.get(index).copied().filter(|next| next.is_sacked());
            if next.is_some() {
                self.packets.remove(index);
            }
            self.packets[before] = next.unwrap_or(packet.sacked());
        }
    }

    /// Splits the packet that has `at` inside, unless it is SACKed (tcp_fragment).
    pub(super) fn split(&mut self, at: Offset) {
        let index = self.packets.partition_point(|packet| packet.end() < at);
        let is_inside =
            |packet: &&FlightPacket| at > self.una && packet.end() > at && !packet.is_sacked();
        if self.packets.get(index).filter(is_inside).is_some() {
            self.packets.insert(index, FlightPacket::new(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(flight: &FlightPackets) -> Vec<u64> {
        flight.ends().iter().map(|end| end.0).collect()
    }

    /// tcp_shift_skb_data: into the one before; one behind it only where a hole is filled.
    #[test]
    fn a_sacked_packet_joins_the_one_before_and_a_filled_hole_the_one_behind() {
        let mut flight = FlightPackets::new();
        (1..=8).for_each(|n| flight.push(Offset(1 + 10 * n)));
        flight.report(Offset(51), Offset(71));
        assert_eq!(ends(&flight), [11, 21, 31, 41, 51, 71, 81]);
        // Before the block, with an unreported packet in front: it joins neither.
        flight.report(Offset(41), Offset(71));
        assert_eq!(ends(&flight), [11, 21, 31, 41, 51, 71, 81]);
        flight.report(Offset(21), Offset(31));
        // The hole between 31 and 41 is filled: one more joins, the block beyond does not.
        flight.report(Offset(21), Offset(71));
        assert_eq!(ends(&flight), [11, 21, 51, 71, 81]);
        flight.acknowledge(Offset(51));
        assert_eq!(ends(&flight), [71, 81]);
    }
}
