//! The slots of packets on the network: the cursor of each on its route, and its contents, which only
//! hosts and a few elements read.

use machine::{Ack, PacketId, View};
use net::pool::{Pool, make_room};
use packet::{Dir, Flags, Segment};
use record::PacketNumber;
use units::{Bytes, FlowId, SeqNum};

use super::contents::{Contents, Header};
use crate::datagrams::Datagrams;

/// The cursor of a packet on its route.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Way {
    pub(super) number: PacketNumber,
    /// IP bytes, and in the highest bit whether the checksum is wrong.
    size: u32,
    /// The stop that it comes to next; where no packet is, the next number without one.
    pub(super) next: u32,
}

/// Every station on the road of every packet reads and writes one.
const _: () = assert!(size_of::<Way>() <= 16);

const DAMAGED: u32 = 1 << 31;

impl Way {
    /// A packet of `size` IP bytes stands at the beginning of its road.
    pub(super) fn new(number: PacketNumber, size: Bytes, road: u32) -> Self {
        Self { number, size: size.get() as u32 & !DAMAGED, next: road }
    }

    /// IP bytes.
    #[inline]
    pub(super) fn size(&self) -> u32 {
        self.size & !DAMAGED
    }

    /// Its checksum becomes wrong.
    pub(super) fn damage(&mut self) {
        self.size |= DAMAGED;
    }

    /// Is its checksum wrong?
    #[inline]
    pub(super) fn damaged(&self) -> bool {
        self.size & DAMAGED != 0
    }
}

/// A packet.
#[derive(Debug, Clone, Copy, Default)]
struct PacketSlot {
    way: Way,
    contents: Contents,
}

/// All packets on the network, by slot number; freed slots are used again, the last freed first.
#[derive(Debug)]
pub(super) struct PacketSlots {
    slots: Vec<PacketSlot>,
    /// The slot of the next packet, [`NONE`] if none is free.
    free: u32,
    /// Segments whose contents do not fit in a slot, by numbers of their own.
    cold: Pool<Segment>,
    /// QUIC packets, by numbers of their own.
    pub(super) datagrams: Datagrams,
}

const NONE: u32 = u32::MAX;

impl PacketSlots {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, cold: Pool::new(), datagrams: Datagrams::default() }
    }

    /// Adds a free slot.
    #[cold]
    #[inline(never)]
    fn add(&mut self) {
        make_room(&mut self.slots);
        self.free = self.slots.len() as u32;
        let way = Way { next: NONE, ..Way::default() };
        self.slots.push(PacketSlot { way, contents: Contents::default() });
    }

    #[cold]
    #[inline(never)]
    fn put_added(&mut self, segment: &Segment) -> PacketId {
        self.add();
        self.put(segment)
    }

    /// Stores a segment; its way is still to be written.
    #[inline(always)]
    pub(super) fn put(&mut self, segment: &Segment) -> PacketId {
        let id = PacketId(self.free);
        let Some(slot) = self.slots.get_mut(id.0 as usize) else { return self.put_added(segment) };
        self.free = slot.way.next;
        match Contents::inline(segment) {
            Some(contents) => slot.contents = contents,
            None => self.put_cold(id, segment),
        }
        id
    }

    #[inline(never)]
    fn put_cold(&mut self, id: PacketId, segment: &Segment) {
        let number = self.cold.put(*segment).0;
        self.slots[id.0 as usize].contents = Contents::cold(segment, number);
    }

    /// Stores a packet with those contents; its way is still to be written.
    pub(super) fn put_contents(&mut self, contents: Contents) -> PacketId {
        self.put_like(&contents, contents.seq)
    }

    /// Stores a packet with the contents of `template` but its sequence number; its way is still to be
    /// written.
    #[inline(always)]
    pub(super) fn put_like(&mut self, template: &Contents, seq: SeqNum) -> PacketId {
        if self.free as usize >= self.slots.len() {
            self.add();
        }
        let id = PacketId(self.free);
        let slot = &mut self.slots[id.0 as usize];
        self.free = slot.way.next;
        slot.contents = *template;
        slot.contents.seq = seq;
        id
    }

    /// The largest number of packets stored at once.
    pub(super) const fn most(&self) -> usize {
        self.slots.len()
    }

    /// A copy, which has a number of its own.
    pub(super) fn copy(&mut self, id: PacketId, number: PacketNumber) -> PacketId {
        let contents = *self.contents(id);
        let copy = match contents.transport {
            Header::Tcp(header) => match header.cold() {
                Some(number) => {
                    let segment = *self.cold_segment(number);
                    self.put(&segment)
                }
                None => self.put_contents(contents),
            },
            Header::Quic(datagram) => {
                let transport = Header::Quic(self.datagrams.copy(datagram));
                self.put_contents(Contents { transport, ..contents })
            }
        };
        *self.way_mut(copy) = Way { number, ..*self.way(id) };
        copy
    }

    /// Frees the slot of a packet.
    #[inline(always)]
    pub(super) fn release(&mut self, id: PacketId) {
        self.release_inline(id);
        match self.contents(id).transport {
            Header::Tcp(header) => {
                if let Some(number) = header.cold() {
                    self.cold.release(PacketId(number));
                }
            }
            Header::Quic(datagram) => self.datagrams.release(datagram),
        }
    }

    /// As [`PacketSlots::release`], for a segment whose contents fit in its slot.
    #[inline(always)]
    pub(super) fn release_inline(&mut self, id: PacketId) {
        self.slots[id.0 as usize].way.next = self.free;
        self.free = id.0;
    }

    /// Frees the slot of a packet and shows its segment, which is in the cold pool under that number: it
    /// stays until another is stored there.
    #[inline(always)]
    pub(super) fn take_cold(&mut self, id: PacketId, number: u32) -> &Segment {
        self.release(id);
        self.cold.get(PacketId(number))
    }

    #[inline]
    pub(super) fn way(&self, id: PacketId) -> &Way {
        &self.slots[id.0 as usize].way
    }

    #[inline]
    pub(super) fn way_mut(&mut self, id: PacketId) -> &mut Way {
        &mut self.slots[id.0 as usize].way
    }

    /// The contents of a packet.
    #[inline(always)]
    pub(super) fn contents(&self, id: PacketId) -> &Contents {
        &self.slots[id.0 as usize].contents
    }

    /// The segment of TCP, or the packet of QUIC.
    pub(super) fn packet(&self, id: PacketId) -> Packet<'_> {
        let contents = self.contents(id);
        match &contents.transport {
            Header::Tcp(header) => Packet::Tcp(match header.cold() {
                Some(number) => *self.cold_segment(number),
                None => contents.segment(header),
            }),
            Header::Quic(datagram) => Packet::Quic(self.datagrams.get(*datagram)),
        }
    }

    #[inline(never)]
    fn cold_segment(&self, number: u32) -> &Segment {
        self.cold.get(PacketId(number))
    }

    /// Connection that a packet belongs to, and its direction there.
    #[inline(always)]
    pub(super) fn flow(&self, id: PacketId) -> (FlowId, Dir) {
        let contents = self.contents(id);
        (contents.flow, contents.dir)
    }

    /// Marks a packet: it has met congestion.
    pub(super) fn mark(&mut self, id: PacketId) {
        let contents = &mut self.slots[id.0 as usize].contents;
        contents.ecn = packet::ECN_CE;
        if let Header::Tcp(header) = contents.transport
            && let Some(number) = header.cold()
        {
            self.cold.get_mut(PacketId(number)).ecn = packet::ECN_CE;
        }
    }

    #[inline(never)]
    fn has_blocks(&self, number: u32) -> bool {
        !self.cold_segment(number).sack_blocks().is_empty()
    }

    /// The view that elements have of a packet of `size`. Inlined so that fields which an element does
    /// not read are not computed.
    #[inline(always)]
    pub(super) fn view(&self, id: PacketId, size: Bytes) -> View {
        let contents = self.contents(id);
        let (syn, ack) = match contents.transport {
            Header::Tcp(header) => {
                let flags = contents.flags;
                let bare = flags == Flags::ACK
                    && contents.payload == 0
                    && !header.cold().is_some_and(|number| self.has_blocks(number));
                let ack = match flags.has(Flags::ACK) {
                    true if bare => Ack::Bare(header.ack),
                    true => Ack::Along(header.ack),
                    false => Ack::None,
                };
                (flags.has(Flags::SYN), ack)
            }
            Header::Quic(_) => (false, Ack::None),
        };
        View {
            size,
            payload: contents.payload,
            flow: contents.flow,
            seq: contents.seq,
            syn,
            back: contents.dir == Dir::Reverse,
            ack,
            capable: contents.ecn != 0,
        }
    }
}

/// What a packet is to its hosts.
#[derive(Debug, PartialEq)]
pub(super) enum Packet<'a> {
    Tcp(Segment),
    Quic(&'a quic::Packet),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::DatagramId;

    use packet::{Options, SackBlock, SackBlocks, SynOptions, Timestamps};

    fn sack() -> Options {
        let mut blocks = SackBlocks::EMPTY;
        blocks.push(SackBlock { left: SeqNum(7), right: SeqNum(9) });
        blocks.into()
    }

    /// Segments of all forms.
    fn all() -> Vec<Segment> {
        let plain = Segment {
            flow: FlowId(3),
            dir: Dir::Reverse,
            ip: packet::IpVersion::V6,
            ecn: 2,
            flags: Flags::ACK | Flags::PSH,
            seq: SeqNum(11),
            ack: SeqNum(12),
            payload: 13,
            window: 14,
            ..Segment::default()
        };
        let stamps = Some(Timestamps { val: 15, ecr: 16 });
        let syn = Options::Syn(SynOptions { mss: 1_460, ..SynOptions::default() });
        vec![
            plain,
            Segment { timestamps: stamps, ..plain },
            Segment { options: sack(), ..plain },
            Segment { timestamps: stamps, options: sack(), ..plain },
            Segment { timestamps: stamps, options: syn, ..plain },
            Segment { gso_size: 5, ..plain },
            Segment { nsegs: 2, timestamps: stamps, ..plain },
        ]
    }

    #[test]
    fn what_is_put_is_there_and_its_numbers_are_used_again() {
        let mut slots = PacketSlots::new();
        let put: Vec<_> = all().iter().map(|segment| (slots.put(segment), *segment)).collect();
        for &(id, segment) in &put {
            assert_eq!(slots.packet(id), Packet::Tcp(segment));
            assert_eq!(slots.flow(id), (FlowId(3), Dir::Reverse));
        }
        for &(id, _) in &put {
            slots.release(id);
        }
        // The last freed comes first.
        for (&(id, _), segment) in put.iter().rev().zip(all()) {
            assert_eq!(slots.put(&segment), id);
            assert_eq!(slots.packet(id), Packet::Tcp(segment));
        }
        assert_eq!((slots.slots.len(), slots.cold.len()), (7, 5));
    }

    #[test]
    fn copies_and_marks_are_their_own() {
        let mut slots = PacketSlots::new();
        for segment in all() {
            let id = slots.put(&segment);
            let copy = slots.copy(id, PacketNumber(1));
            slots.mark(id);
            let marked = Segment { ecn: packet::ECN_CE, ..segment };
            assert_eq!(slots.packet(id), Packet::Tcp(marked));
            slots.release(id);
            assert_eq!(slots.packet(copy), Packet::Tcp(segment));
        }
    }

    #[test]
    fn only_an_ack_without_blocks_is_bare() {
        let mut slots = PacketSlots::new();
        let ack = Segment { flags: Flags::ACK, ..Segment::default() };
        let mut seen = |segment: Segment| {
            let id = slots.put(&segment);
            slots.view(id, Bytes(40)).ack
        };
        assert_eq!(seen(ack), Ack::Bare(SeqNum(0)));
        assert_eq!(seen(Segment { options: sack(), ..ack }), Ack::Along(SeqNum(0)));
        assert_eq!(seen(Segment { payload: 1, ..ack }), Ack::Along(SeqNum(0)));
        assert_eq!(seen(Segment { flags: Flags::SYN, ..ack }), Ack::None);
    }

    /// A QUIC packet is none of TCP: no SYN, no ACK for an element, and no number of TCP's in its slot.
    #[test]
    fn quic_packets_are_stored_once_and_copied_whole() {
        let mut slots = PacketSlots::new();
        let stream = Some(quic::packet::Chunk { offset: 11, len: 13, fin: false });
        let packet = quic::Packet { flow: FlowId(3), number: 7, stream, ..Default::default() };
        let datagram = slots.datagrams.reserve();
        slots.datagrams.get_mut(datagram).clone_from(&packet);
        let id = slots.put_contents(Contents::quic(&packet, datagram));
        let view = slots.view(id, Bytes(100));
        assert_eq!((view.syn, view.ack), (false, Ack::None));
        assert_eq!((view.flow, view.seq, view.payload), (FlowId(3), SeqNum(11), 13));
        let copy = slots.copy(id, PacketNumber(1));
        slots.release(id);
        assert_eq!(slots.packet(copy), Packet::Quic(&packet));
        slots.release(copy);
        assert_eq!(
            (slots.datagrams.reserve(), slots.datagrams.reserve()),
            (DatagramId(1), DatagramId(0))
        );
    }
}
