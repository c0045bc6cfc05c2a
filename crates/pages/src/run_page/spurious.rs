//! Detection of spurious retransmissions: an earlier packet with the bytes was not lost. The
//! simulator knows this; a sender learns it from a D-SACK, if at all.

use std::collections::{BTreeMap, BTreeSet};

use record::PacketNumber;

/// The packets in flight of all flows.
#[derive(Debug)]
pub(super) struct SpuriousDetector {
    flows: Vec<FlowPackets>,
    /// Packets whose bytes were retransmitted, with the index of the retransmission in its flow.
    retransmitted: BTreeMap<PacketNumber, (usize, usize)>,
    /// Lost packets that are still tracked.
    lost: BTreeSet<PacketNumber>,
}

#[derive(Debug, Default)]
struct FlowPackets {
    /// Ranges by their first byte: end, and the last packet that carried them.
    sent: BTreeMap<u64, (u64, PacketNumber)>,
    /// Retransmissions in the order of sending.
    retransmissions: Vec<RetransmittedRange>,
    /// End of the data ever sent.
    end: u64,
}

/// A retransmitted range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetransmittedRange {
    /// Send time in nanoseconds.
    pub(super) at: i64,
    /// First byte.
    pub(super) from: u64,
    /// End.
    pub(super) to: u64,
    /// Was every earlier packet with some of these bytes lost?
    pub(super) was_lost: bool,
}

/// Limit of the retransmissions kept per flow.
const COPIES: usize = 200_000;

impl SpuriousDetector {
    pub(super) fn new(flows: usize) -> Self {
        let flows = (0..flows).map(|_| FlowPackets::default()).collect();
        Self { flows, retransmitted: BTreeMap::new(), lost: BTreeSet::new() }
    }

    /// Processes a sent packet with `len` payload bytes from offset `from`.
    pub(super) fn on_departed(
        &mut self,
        flow: usize,
        at: i64,
        packet: PacketNumber,
        from: u64,
        len: u64,
    ) {
        let Some(packets) = self.flows.get_mut(flow).filter(|_| len > 0) else { return };
        let to = from + len;
        if from >= packets.end {
            packets.end = to;
            packets.sent.insert(from, (to, packet));
            return;
        }
        packets.end = packets.end.max(to);
        let first = packets.sent.range(..=from).next_back().map_or(from, |(&start, _)| start);
        let before: Vec<(u64, u64, PacketNumber)> = packets
            .sent
            .range(first..to)
            .filter(|(_, (end, _))| *end > from)
            .map(|(&start, &(end, packet))| (start, end, packet))
            .collect();
        if !before.is_empty() && packets.retransmissions.len() < COPIES {
            let was_lost = before.iter().all(|(.., packet)| self.lost.contains(packet));
            packets.retransmissions.push(RetransmittedRange { at, from, to, was_lost });
            for (.., old) in &before {
                self.retransmitted.insert(*old, (flow, packets.retransmissions.len() - 1));
            }
        }
        // The rest of a partly retransmitted range stays with its packet.
        for (start, end, old) in before {
            packets.sent.remove(&start);
            if start < from {
                packets.sent.insert(start, (from, old));
            }
            if end > to {
                packets.sent.insert(to, (end, old));
            }
        }
        packets.sent.insert(from, (to, packet));
    }

    /// Processes the loss or damage of a packet.
    pub(super) fn on_lost(&mut self, packet: PacketNumber) {
        match self.retransmitted.remove(&packet) {
            Some((flow, copy)) => self.flows[flow].retransmissions[copy].was_lost = true,
            None => drop(self.lost.insert(packet)),
        }
    }

    /// Removes ranges below `una`.
    pub(super) fn on_acked(&mut self, flow: usize, una: u64) {
        let Some(packets) = self.flows.get_mut(flow) else { return };
        while let Some(entry) = packets.sent.first_entry().filter(|entry| entry.get().0 <= una) {
            let (_, packet) = entry.remove();
            self.lost.remove(&packet);
        }
    }

    /// The retransmissions of each flow.
    pub(super) fn finish(&mut self) -> Vec<Vec<RetransmittedRange>> {
        self.flows.iter_mut().map(|packets| core::mem::take(&mut packets.retransmissions)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detector(report: impl FnOnce(&mut SpuriousDetector)) -> Vec<bool> {
        let mut detector = SpuriousDetector::new(1);
        for number in 0..4 {
            detector.on_departed(0, 0, PacketNumber(number), number * 10, 10);
        }
        report(&mut detector);
        detector.finish()[0].iter().map(|copy| !copy.was_lost).collect()
    }

    #[test]
    fn a_retransmission_of_lost_bytes_is_not_spurious() {
        let retransmissions = detector(|detector| {
            detector.on_lost(PacketNumber(1));
            detector.on_departed(0, 5, PacketNumber(9), 10, 10);
            detector.on_departed(0, 6, PacketNumber(10), 20, 10);
        });
        assert_eq!(retransmissions, [false, true]);
    }

    #[test]
    fn a_packet_may_be_lost_after_its_retransmission() {
        let retransmissions = detector(|detector| {
            detector.on_departed(0, 5, PacketNumber(9), 10, 10);
            detector.on_lost(PacketNumber(1));
            // The retransmission is lost too, and retransmitted.
            detector.on_lost(PacketNumber(9));
            detector.on_departed(0, 6, PacketNumber(10), 10, 10);
        });
        assert_eq!(retransmissions, [false, false]);
    }

    #[test]
    fn acknowledged_ranges_are_dropped() {
        let mut detector = SpuriousDetector::new(1);
        detector.on_departed(0, 0, PacketNumber(0), 0, 10);
        detector.on_departed(0, 0, PacketNumber(1), 10, 10);
        detector.on_lost(PacketNumber(0));
        detector.on_acked(0, 10);
        assert!(detector.lost.is_empty());
        assert_eq!(detector.flows[0].sent.len(), 1);
    }
}
