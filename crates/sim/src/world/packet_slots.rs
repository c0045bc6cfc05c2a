//! The slots of packets on the network: the route cursor of each, and its contents, which only
//! hosts and a few elements read.

use machine::{PacketAck, PacketId, PacketView};
use net::pool::{Pool, reserve_one};
use packet::{Dir, Flags, Options, PacketTooBig, Segment, SynOptions};
use record::{PacketNumber, SynOffers, TcpBits};
use units::{Bytes, Ecn, FlowId, SeqNum};

use super::contents::{PacketContents, TransportHeader};
use crate::datagrams::Datagrams;

/// The cursor of a packet on its route.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RouteCursor {
    pub(super) number: PacketNumber,
    /// IP bytes, and in the highest bit whether the checksum is wrong.
    size: u32,
    /// Index of its next hop; in a free slot, the next free slot.
    pub(super) next: u32,
}

/// Every element reads and writes one for each packet.
const _: () = assert!(size_of::<RouteCursor>() <= 16);

const DAMAGED: u32 = 1 << 31;

impl RouteCursor {
    /// Creates the cursor of a packet of `size` IP bytes at the start of its route.
    pub(super) fn new(number: PacketNumber, size: Bytes, route: u32) -> Self {
        Self { number, size: size.get() as u32 & !DAMAGED, next: route }
    }

    /// IP bytes.
    #[inline]
    pub(super) fn size(&self) -> u32 {
        self.size & !DAMAGED
    }

    /// Sets the IP bytes.
    fn resize(&mut self, size: u32) {
        self.size = self.size & DAMAGED | size;
    }

    /// Marks the checksum as wrong.
    pub(super) fn damage(&mut self) {
        self.size |= DAMAGED;
    }

    /// Returns whether the checksum is wrong.
    #[inline]
    pub(super) fn damaged(&self) -> bool {
        self.size & DAMAGED != 0
    }
}

/// Slot of one packet.
#[derive(Debug, Clone, Copy, Default)]
struct PacketSlot {
    way: RouteCursor,
    contents: PacketContents,
}

/// All packets on the network, by slot number; freed slots are reused, the last freed first.
#[derive(Debug)]
pub(super) struct PacketSlots {
    slots: Vec<PacketSlot>,
    /// The first free slot, [`NONE`] if there is none.
    free: u32,
    /// Segments whose contents do not fit in a slot, by pool index.
    cold: Pool<Segment>,
    /// Packets of QUIC models, by number.
    pub(super) datagrams: Datagrams<quic::QuicPacket>,
    /// Packets of real implementations, by number.
    pub(super) real: Datagrams<quic::real::Datagram>,
}

const NONE: u32 = u32::MAX;

impl PacketSlots {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            cold: Pool::new(),
            datagrams: Datagrams::default(),
            real: Datagrams::default(),
        }
    }

    /// Adds a free slot.
    #[cold]
    fn add(&mut self) {
        reserve_one(&mut self.slots);
        self.free = self.slots.len() as u32;
        let way = RouteCursor { next: NONE, ..RouteCursor::default() };
        self.slots.push(PacketSlot { way, contents: PacketContents::default() });
    }

    #[cold]
    fn put_added(&mut self, segment: &Segment) -> PacketId {
        self.add();
        self.put(segment)
    }

    /// Stores a segment; its cursor is written separately.
    #[inline(always)]
    pub(super) fn put(&mut self, segment: &Segment) -> PacketId {
        let id = PacketId(self.free);
        let Some(slot) = self.slots.get_mut(id.0 as usize) else { return self.put_added(segment) };
        self.free = slot.way.next;
        match PacketContents::inline(segment) {
            Some(contents) => slot.contents = contents,
            None => self.put_cold(id, segment),
        }
        id
    }

    fn put_cold(&mut self, id: PacketId, segment: &Segment) {
        let number = self.cold.put(*segment).0;
        self.slots[id.0 as usize].contents = PacketContents::cold(segment, number);
    }

    /// Stores a packet with those contents; its cursor is written separately.
    pub(super) fn put_contents(&mut self, contents: PacketContents) -> PacketId {
        self.put_like(&contents, contents.seq)
    }

    /// Stores a packet with the contents of `template` except for its sequence number; its cursor
    /// is written separately.
    #[inline(always)]
    pub(super) fn put_like(&mut self, template: &PacketContents, seq: SeqNum) -> PacketId {
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

    /// Largest number of packets stored at once.
    pub(super) const fn most(&self) -> usize {
        self.slots.len()
    }

    /// Returns the cursors of the packets that are stored.
    pub(super) fn in_use(&self) -> impl Iterator<Item = &RouteCursor> {
        let mut is_free = vec![false; self.slots.len()];
        let mut next = self.free as usize;
        while let Some(slot) = self.slots.get(next) {
            is_free[next] = true;
            next = slot.way.next as usize;
        }
        self.slots.iter().zip(is_free).filter(|(_, free)| !free).map(|(slot, _)| &slot.way)
    }

    /// Copies a packet, with a number of its own.
    pub(super) fn copy(&mut self, id: PacketId, number: PacketNumber) -> PacketId {
        let contents = *self.contents(id);
        let copy = match contents.transport {
            TransportHeader::Tcp(header) => match header.cold() {
                Some(number) => {
                    let segment = *self.cold_segment(number);
                    self.put(&segment)
                }
                None => self.put_contents(contents),
            },
            TransportHeader::Udp | TransportHeader::TooBig { .. } => self.put_contents(contents),
            TransportHeader::Quic(datagram) => {
                let transport = TransportHeader::Quic(self.datagrams.copy(datagram));
                self.put_contents(PacketContents { transport, ..contents })
            }
            TransportHeader::Real(datagram) => {
                let transport = TransportHeader::Real(self.real.copy(datagram));
                self.put_contents(PacketContents { transport, ..contents })
            }
        };
        *self.cursor_mut(copy) = RouteCursor { number, ..*self.way(id) };
        copy
    }

    /// Frees the slot of a packet.
    #[inline(always)]
    pub(super) fn release(&mut self, id: PacketId) {
        self.release_inline(id);
        match self.contents(id).transport {
            TransportHeader::Tcp(header) => {
                if let Some(number) = header.cold() {
                    self.cold.release(PacketId(number));
                }
            }
            TransportHeader::Quic(datagram) => self.datagrams.release(datagram),
            TransportHeader::Real(datagram) => self.real.release(datagram),
            TransportHeader::Udp | TransportHeader::TooBig { .. } => {}
        }
    }

    /// Frees the slot of a segment whose contents fit in it; see [`PacketSlots::release`].
    #[inline(always)]
    pub(super) fn release_inline(&mut self, id: PacketId) {
        self.slots[id.0 as usize].way.next = self.free;
        self.free = id.0;
    }

    /// Frees the slot of a packet and returns its segment, which is in the cold pool at that index:
    /// it stays until the index is reused.
    #[inline(always)]
    pub(super) fn take_cold(&mut self, id: PacketId, number: u32) -> &Segment {
        self.release(id);
        self.cold.get(PacketId(number))
    }

    #[inline]
    pub(super) fn way(&self, id: PacketId) -> &RouteCursor {
        &self.slots[id.0 as usize].way
    }

    /// Has the cursor of a packet fetched into the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, id: PacketId) {
        if let Some(slot) = self.slots.get(id.0 as usize) {
            units::prefetch(&slot.way);
        }
    }

    #[inline]
    pub(super) fn cursor_mut(&mut self, id: PacketId) -> &mut RouteCursor {
        &mut self.slots[id.0 as usize].way
    }

    /// Returns the contents of a packet.
    #[inline(always)]
    pub(super) fn contents(&self, id: PacketId) -> &PacketContents {
        &self.slots[id.0 as usize].contents
    }

    /// Returns the TCP segment or the QUIC packet.
    pub(super) fn packet(&self, id: PacketId) -> StoredPacket<'_> {
        let contents = self.contents(id);
        match &contents.transport {
            TransportHeader::Tcp(header) => StoredPacket::Tcp(match header.cold() {
                Some(number) => *self.cold_segment(number),
                None => contents.segment(header),
            }),
            TransportHeader::Quic(datagram) => StoredPacket::Quic(self.datagrams.get(*datagram)),
            TransportHeader::Real(datagram) => {
                StoredPacket::Real { bytes: &self.real.get(*datagram).bytes, ecn: contents.ecn }
            }
            TransportHeader::Udp => StoredPacket::Udp { number: contents.seq.0 },
            TransportHeader::TooBig { size, mtu } => StoredPacket::TooBig(PacketTooBig {
                flow: contents.flow,
                dir: contents.dir,
                ip: contents.ip,
                seq: contents.seq,
                size: u32::from(*size),
                mtu: u32::from(*mtu),
            }),
        }
    }

    fn cold_segment(&self, number: u32) -> &Segment {
        self.cold.get(PacketId(number))
    }

    /// Returns the flow of a packet, and its direction.
    #[inline(always)]
    pub(super) fn flow(&self, id: PacketId) -> (FlowId, Dir) {
        let contents = self.contents(id);
        (contents.flow, contents.dir)
    }

    /// Sets the CE mark of a packet.
    pub(super) fn mark(&mut self, id: PacketId) {
        let contents = &mut self.slots[id.0 as usize].contents;
        contents.ecn = packet::ECN_CE;
        match contents.transport {
            TransportHeader::Tcp(header) => {
                if let Some(number) = header.cold() {
                    self.cold.get_mut(PacketId(number)).ecn = packet::ECN_CE;
                }
            }
            TransportHeader::Quic(datagram) => {
                self.datagrams.get_mut(datagram).ecn = packet::ECN_CE;
            }
            _ => {}
        }
    }

    /// Removes what a SYN offers; returns its new size.
    pub(super) fn strip(&mut self, id: PacketId, offers: SynOffers) -> u32 {
        let StoredPacket::Tcp(mut segment) = self.packet(id) else { return self.way(id).size() };
        if let Options::Syn(options) = &mut segment.options {
            if offers.has(SynOffers::WINDOW_SCALE) {
                options.window_scale = None;
            }
            options.sack_permitted &= !offers.has(SynOffers::SACK);
        }
        segment.timestamps = segment.timestamps.filter(|_| !offers.has(SynOffers::TIMESTAMPS));
        if offers.has(SynOffers::ECN) {
            segment.flags = segment.flags.without(Flags::ECE | Flags::CWR);
        }
        let slot = &mut self.slots[id.0 as usize];
        slot.contents = match slot.contents.transport {
            TransportHeader::Tcp(header) => match header.cold() {
                Some(number) => {
                    *self.cold.get_mut(PacketId(number)) = segment;
                    PacketContents::cold(&segment, number)
                }
                None => PacketContents::inline(&segment).unwrap_or(slot.contents),
            },
            _ => slot.contents,
        };
        let size = segment.packet_len().get() as u32;
        slot.way.resize(size);
        size
    }

    fn has_blocks(&self, number: u32) -> bool {
        !self.cold_segment(number).sack_blocks().is_empty()
    }

    /// Returns the control bits of a segment, and what it offers if it is a SYN.
    pub(super) fn tcp_bits(&self, id: PacketId) -> TcpBits {
        let contents = self.contents(id);
        let TransportHeader::Tcp(header) = contents.transport else { return TcpBits::default() };
        let mut offers = SynOffers::NONE;
        let cold = header.cold().map(|number| self.cold_segment(number));
        if let Some(segment) = cold.filter(|segment| segment.flags.has(Flags::SYN)) {
            let options = match segment.options {
                Options::Syn(options) => options,
                _ => SynOptions::default(),
            };
            let given = [
                (options.window_scale.is_some(), SynOffers::WINDOW_SCALE),
                (options.sack_permitted, SynOffers::SACK),
                (segment.timestamps.is_some(), SynOffers::TIMESTAMPS),
            ];
            for (_, offer) in given.into_iter().filter(|(given, _)| *given) {
                offers |= offer;
            }
        }
        TcpBits { flags: contents.flags.0, offers }
    }

    /// Returns the elements' view of a packet of `size`. Inlined so that fields which an element
    /// does not read are not computed.
    #[inline(always)]
    pub(super) fn view(&self, id: PacketId, size: Bytes) -> PacketView {
        let contents = self.contents(id);
        let (flags, ack) = match contents.transport {
            TransportHeader::Tcp(header) => {
                let flags = contents.flags;
                let bare = flags == Flags::ACK
                    && contents.payload == 0
                    && !header.cold().is_some_and(|number| self.has_blocks(number));
                let ack = match flags.has(Flags::ACK) {
                    true if bare => PacketAck::Pure(header.ack),
                    true => PacketAck::Piggybacked(header.ack),
                    false => PacketAck::None,
                };
                (flags, ack)
            }
            TransportHeader::Quic(_)
            | TransportHeader::Real(_)
            | TransportHeader::Udp
            | TransportHeader::TooBig { .. } => (Flags::NONE, PacketAck::None),
        };
        PacketView {
            size,
            payload: contents.payload,
            flow: contents.flow,
            seq: contents.seq,
            syn: flags.has(Flags::SYN),
            ecn_syn: asks_for_ecn(flags),
            dir: contents.dir,
            ack,
            ecn: Ecn::from_bits(contents.ecn),
        }
    }
}

/// Returns whether these are the control bits of a SYN without ACK that asks for ECN.
const fn asks_for_ecn(flags: Flags) -> bool {
    let asks = flags.has(Flags::SYN) && flags.has(Flags::ECE) && flags.has(Flags::CWR);
    asks && !flags.has(Flags::ACK)
}

/// A packet as hosts receive it.
#[derive(Debug, PartialEq)]
pub(super) enum StoredPacket<'a> {
    Tcp(Segment),
    Quic(&'a quic::QuicPacket),
    /// A packet of a real implementation of QUIC.
    Real {
        /// UDP payload.
        bytes: &'a [u8],
        /// The two ECN bits of the IP header.
        ecn: u8,
    },
    /// A UDP datagram.
    Udp {
        /// Its number in its flow.
        number: u32,
    },
    /// An ICMP error.
    TooBig(PacketTooBig),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::DatagramId;

    use packet::{SackBlock, SackBlocks, Timestamps};

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
    fn packets_are_stored_and_their_numbers_reused() {
        let mut slots = PacketSlots::new();
        let put: Vec<_> = all().iter().map(|segment| (slots.put(segment), *segment)).collect();
        for &(id, segment) in &put {
            assert_eq!(slots.packet(id), StoredPacket::Tcp(segment));
            assert_eq!(slots.flow(id), (FlowId(3), Dir::Reverse));
        }
        for &(id, _) in &put {
            slots.release(id);
        }
        // The last freed is reused first.
        for (&(id, _), segment) in put.iter().rev().zip(all()) {
            assert_eq!(slots.put(&segment), id);
            assert_eq!(slots.packet(id), StoredPacket::Tcp(segment));
        }
        assert_eq!((slots.slots.len(), slots.cold.len()), (7, 5));
    }

    #[test]
    fn copies_and_marks_are_independent() {
        let mut slots = PacketSlots::new();
        for segment in all() {
            let id = slots.put(&segment);
            let copy = slots.copy(id, PacketNumber(1));
            slots.mark(id);
            let marked = Segment { ecn: packet::ECN_CE, ..segment };
            assert_eq!(slots.packet(id), StoredPacket::Tcp(marked));
            slots.release(id);
            assert_eq!(slots.packet(copy), StoredPacket::Tcp(segment));
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
        assert_eq!(seen(ack), PacketAck::Pure(SeqNum(0)));
        assert_eq!(seen(Segment { options: sack(), ..ack }), PacketAck::Piggybacked(SeqNum(0)));
        assert_eq!(seen(Segment { payload: 1, ..ack }), PacketAck::Piggybacked(SeqNum(0)));
        assert_eq!(seen(Segment { flags: Flags::SYN, ..ack }), PacketAck::None);
    }

    /// A QUIC packet has no TCP fields: no SYN or ACK for an element, and no TCP sequence number in
    /// its slot.
    #[test]
    fn quic_packets_are_stored_once_and_copied_completely() {
        let mut slots = PacketSlots::new();
        let stream = Some(quic::packet::Chunk { offset: 11, len: 13, fin: false });
        let packet = quic::QuicPacket { flow: FlowId(3), number: 7, stream, ..Default::default() };
        let datagram = slots.datagrams.reserve();
        slots.datagrams.get_mut(datagram).clone_from(&packet);
        let id = slots.put_contents(PacketContents::quic(&packet, datagram));
        let view = slots.view(id, Bytes(100));
        assert_eq!((view.syn, view.ack), (false, PacketAck::None));
        assert_eq!((view.flow, view.seq, view.payload), (FlowId(3), SeqNum(11), 13));
        let copy = slots.copy(id, PacketNumber(1));
        slots.release(id);
        assert_eq!(slots.packet(copy), StoredPacket::Quic(&packet));
        slots.release(copy);
        assert_eq!(
            (slots.datagrams.reserve(), slots.datagrams.reserve()),
            (DatagramId(1), DatagramId(0))
        );
    }
}
