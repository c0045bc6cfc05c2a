//! Which bytes went again in vain: a packet they had left in before was not lost. The simulator
//! knows; a sender learns it from a D-SACK, if at all.

use std::collections::{BTreeMap, BTreeSet};

use record::PacketNumber;

/// Packets of the flows under way.
#[derive(Debug)]
pub(super) struct Needless {
    flows: Vec<FlowPackets>,
    /// Packets that carried bytes of which a later copy left, and that copy's place among the
    /// flow's.
    copied: BTreeMap<PacketNumber, (usize, usize)>,
    /// Packets under way that were lost.
    lost: BTreeSet<PacketNumber>,
}

#[derive(Debug, Default)]
struct FlowPackets {
    /// By its first byte: the end, and the packet the bytes left in last.
    sent: BTreeMap<u64, (u64, PacketNumber)>,
    /// Copies in the order in which they left.
    copies: Vec<Copy>,
    /// What was ever sent ends here.
    end: u64,
}

/// Bytes that left again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copy {
    /// When, in nanoseconds.
    pub(super) at: i64,
    /// First byte.
    pub(super) from: u64,
    /// End.
    pub(super) to: u64,
    /// Was every packet lost that had carried some of them before?
    pub(super) was_lost: bool,
}

/// Copies that are remembered of a flow.
const COPIES: usize = 200_000;

impl Needless {
    pub(super) fn new(flows: usize) -> Self {
        let flows = (0..flows).map(|_| FlowPackets::default()).collect();
        Self { flows, copied: BTreeMap::new(), lost: BTreeSet::new() }
    }

    /// A packet with `len` payload bytes from offset `from` on left its host.
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
        if !before.is_empty() && packets.copies.len() < COPIES {
            let was_lost = before.iter().all(|(.., packet)| self.lost.contains(packet));
            packets.copies.push(Copy { at, from, to, was_lost });
            for (.., old) in &before {
                self.copied.insert(*old, (flow, packets.copies.len() - 1));
            }
        }
        // The rest of a packet that was copied in part stays its own.
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

    /// A packet was lost or damaged on its way.
    pub(super) fn on_lost(&mut self, packet: PacketNumber) {
        match self.copied.remove(&packet) {
            Some((flow, copy)) => self.flows[flow].copies[copy].was_lost = true,
            None => drop(self.lost.insert(packet)),
        }
    }

    /// All below `una` has been acknowledged.
    pub(super) fn on_acked(&mut self, flow: usize, una: u64) {
        let Some(packets) = self.flows.get_mut(flow) else { return };
        while let Some(entry) = packets.sent.first_entry().filter(|entry| entry.get().0 <= una) {
            let (_, packet) = entry.remove();
            self.lost.remove(&packet);
        }
    }

    /// The copies of each flow.
    pub(super) fn finish(&mut self) -> Vec<Vec<Copy>> {
        self.flows.iter_mut().map(|packets| core::mem::take(&mut packets.copies)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needless(tell: impl FnOnce(&mut Needless)) -> Vec<bool> {
        let mut needless = Needless::new(1);
        for number in 0..4 {
            needless.on_departed(0, 0, PacketNumber(number), number * 10, 10);
        }
        tell(&mut needless);
        needless.finish()[0].iter().map(|copy| !copy.was_lost).collect()
    }

    #[test]
    fn a_copy_of_what_was_lost_is_not_needless() {
        let copies = needless(|needless| {
            needless.on_lost(PacketNumber(1));
            needless.on_departed(0, 5, PacketNumber(9), 10, 10);
            needless.on_departed(0, 6, PacketNumber(10), 20, 10);
        });
        assert_eq!(copies, [false, true]);
    }

    #[test]
    fn a_packet_may_be_lost_after_its_copy_has_left() {
        let copies = needless(|needless| {
            needless.on_departed(0, 5, PacketNumber(9), 10, 10);
            needless.on_lost(PacketNumber(1));
            // The copy is lost too, and copied.
            needless.on_lost(PacketNumber(9));
            needless.on_departed(0, 6, PacketNumber(10), 10, 10);
        });
        assert_eq!(copies, [false, false]);
    }

    #[test]
    fn what_is_acknowledged_is_forgotten() {
        let mut needless = Needless::new(1);
        needless.on_departed(0, 0, PacketNumber(0), 0, 10);
        needless.on_departed(0, 0, PacketNumber(1), 10, 10);
        needless.on_lost(PacketNumber(0));
        needless.on_acked(0, 10);
        assert!(needless.lost.is_empty());
        assert_eq!(needless.flows[0].sent.len(), 1);
    }
}
