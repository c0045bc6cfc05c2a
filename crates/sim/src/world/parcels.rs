//! Packets that travel: what their way asks for, and what they carry, which only their ends and a
//! few elements look at.

use machine::{Ack, PacketId, View};
use net::pool::{Pool, make_room};
use packet::{Dir, Flags, Segment};
use record::PacketNumber;
use units::{Bytes, FlowId, SeqNum};

use super::carried::Carried;

/// A packet's way.
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
struct Parcel {
    way: Way,
    carried: Carried,
}

/// All packets that travel, by number; freed numbers are used again, the last freed first.
#[derive(Debug)]
pub(super) struct Parcels {
    slots: Vec<Parcel>,
    /// The number that the next packet gets, [`NONE`] if none is free.
    free: u32,
    /// Segments that have more than most, by numbers of their own.
    apart: Pool<Segment>,
}

const NONE: u32 = u32::MAX;

impl Parcels {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, apart: Pool::new() }
    }

    /// Makes room for another packet.
    #[cold]
    #[inline(never)]
    fn add(&mut self) {
        make_room(&mut self.slots);
        self.free = self.slots.len() as u32;
        let way = Way { next: NONE, ..Way::default() };
        self.slots.push(Parcel { way, carried: Carried::default() });
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
        if !slot.carried.write(segment) {
            self.put_apart(id, segment);
        }
        id
    }

    #[inline(never)]
    fn put_apart(&mut self, id: PacketId, segment: &Segment) {
        let number = self.apart.put(*segment).0;
        self.slots[id.0 as usize].carried = Carried::apart(segment, number);
    }

    /// Stores a segment that carries the same as `model`, but for its place.
    #[inline(always)]
    pub(super) fn put_alike(&mut self, model: &Carried, seq: SeqNum) -> PacketId {
        if self.free as usize >= self.slots.len() {
            self.add();
        }
        let id = PacketId(self.free);
        let slot = &mut self.slots[id.0 as usize];
        self.free = slot.way.next;
        slot.carried = *model;
        slot.carried.seq = seq;
        id
    }

    /// The most packets that were stored at once.
    pub(super) const fn most(&self) -> usize {
        self.slots.len()
    }

    /// A copy, which has a number of its own.
    pub(super) fn copy(&mut self, id: PacketId, number: PacketNumber) -> PacketId {
        let copy = self.put(&self.segment(id));
        *self.way_mut(copy) = Way { number, ..*self.way(id) };
        copy
    }

    #[inline(always)]
    pub(super) fn release(&mut self, id: PacketId) {
        let slot = &mut self.slots[id.0 as usize];
        slot.way.next = self.free;
        self.free = id.0;
        if slot.carried.apart {
            self.apart.release(PacketId(slot.carried.stamps.val));
        }
    }

    /// Takes a packet off its way of which nothing stands apart.
    #[inline(always)]
    pub(super) fn release_plain(&mut self, id: PacketId) {
        self.slots[id.0 as usize].way.next = self.free;
        self.free = id.0;
    }

    /// Takes a packet off its way whose segment stands apart, and shows that: it stays until the next one
    /// is put there.
    #[inline(always)]
    pub(super) fn take_apart(&mut self, id: PacketId) -> &Segment {
        let number = self.carried(id).stamps.val;
        self.release(id);
        self.apart.get(PacketId(number))
    }

    #[inline]
    pub(super) fn way(&self, id: PacketId) -> &Way {
        &self.slots[id.0 as usize].way
    }

    #[inline]
    pub(super) fn way_mut(&mut self, id: PacketId) -> &mut Way {
        &mut self.slots[id.0 as usize].way
    }

    /// What it carries, or what of that stations ask for.
    #[inline(always)]
    pub(super) fn carried(&self, id: PacketId) -> &Carried {
        &self.slots[id.0 as usize].carried
    }

    /// The segment.
    #[inline(always)]
    pub(super) fn segment(&self, id: PacketId) -> Segment {
        let carried = self.carried(id);
        if carried.apart { self.segment_apart(carried) } else { carried.segment() }
    }

    #[inline(never)]
    fn segment_apart(&self, carried: &Carried) -> Segment {
        *self.apart.get(PacketId(carried.stamps.val))
    }

    /// Connection that a packet belongs to, and the way it travels there.
    #[inline(always)]
    pub(super) fn flow(&self, id: PacketId) -> (FlowId, Dir) {
        let carried = self.carried(id);
        (carried.flow, carried.dir)
    }

    /// The number of the QUIC packet for which a segment stands in; `None` for one of TCP.
    #[inline(always)]
    pub(super) fn number(&self, id: PacketId) -> Option<u32> {
        let carried = self.carried(id);
        (carried.flags == Flags::NONE).then_some(carried.ack.0)
    }

    /// Another QUIC packet is that for which it stands in.
    pub(super) fn stand_in_for(&mut self, id: PacketId, number: u32) {
        self.slots[id.0 as usize].carried.ack = SeqNum(number);
    }

    /// It has met congestion.
    pub(super) fn mark(&mut self, id: PacketId) {
        let carried = &mut self.slots[id.0 as usize].carried;
        carried.ecn = packet::ECN_CE;
        if carried.apart {
            self.apart.get_mut(PacketId(carried.stamps.val)).ecn = packet::ECN_CE;
        }
    }

    #[inline(never)]
    fn has_blocks(&self, carried: &Carried) -> bool {
        !self.segment_apart(carried).sack_blocks().is_empty()
    }

    /// What elements may know of a packet of `size`. Inlined so that what an element does not ask for
    /// is not worked out.
    #[inline(always)]
    pub(super) fn view(&self, id: PacketId, size: Bytes) -> View {
        let carried = self.carried(id);
        let flags = carried.flags;
        let bare = flags == Flags::ACK
            && carried.payload == 0
            && !(carried.apart && self.has_blocks(carried));
        View {
            size,
            payload: carried.payload,
            flow: carried.flow,
            seq: carried.seq,
            syn: flags.has(Flags::SYN),
            back: carried.dir == Dir::Reverse,
            ack: match flags.has(Flags::ACK) {
                true if bare => Ack::Bare(carried.ack),
                true => Ack::Along(carried.ack),
                false => Ack::None,
            },
            capable: carried.ecn != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut parcels = Parcels::new();
        let put: Vec<_> = all().iter().map(|segment| (parcels.put(segment), *segment)).collect();
        for &(id, segment) in &put {
            assert_eq!(parcels.segment(id), segment);
            assert_eq!(parcels.flow(id), (FlowId(3), Dir::Reverse));
        }
        for &(id, _) in &put {
            parcels.release(id);
        }
        // The last freed comes first.
        for (&(id, _), segment) in put.iter().rev().zip(all()) {
            assert_eq!(parcels.put(&segment), id);
            assert_eq!(parcels.segment(id), segment);
        }
        assert_eq!((parcels.slots.len(), parcels.apart.len()), (7, 5));
    }

    #[test]
    fn copies_and_marks_are_their_own() {
        let mut parcels = Parcels::new();
        for segment in all() {
            let id = parcels.put(&segment);
            let copy = parcels.copy(id, PacketNumber(1));
            parcels.mark(id);
            assert_eq!(parcels.segment(id), Segment { ecn: packet::ECN_CE, ..segment });
            parcels.release(id);
            assert_eq!(parcels.segment(copy), segment);
        }
    }

    #[test]
    fn only_an_ack_without_blocks_is_bare() {
        let mut parcels = Parcels::new();
        let ack = Segment { flags: Flags::ACK, ..Segment::default() };
        let mut seen = |segment: Segment| {
            let id = parcels.put(&segment);
            parcels.view(id, Bytes(40)).ack
        };
        assert_eq!(seen(ack), Ack::Bare(SeqNum(0)));
        assert_eq!(seen(Segment { options: sack(), ..ack }), Ack::Along(SeqNum(0)));
        assert_eq!(seen(Segment { payload: 1, ..ack }), Ack::Along(SeqNum(0)));
        assert_eq!(seen(Segment { flags: Flags::SYN, ..ack }), Ack::None);
    }
}
