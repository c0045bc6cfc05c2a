//! Packets that travel: what their way asks for, and apart from it what they carry, which only
//! their ends and a few elements look at.

use machine::PacketId;
use net::pool::{Pool, make_room};
use packet::Segment;
use record::PacketNumber;
use units::Bytes;

/// A packet's way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Way {
    pub(super) number: PacketNumber,
    /// IP bytes, and in the highest bit whether the checksum is wrong.
    size: u32,
    /// The stop that it comes to next.
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

/// All packets that travel.
#[derive(Debug, Default)]
pub(super) struct Parcels {
    ways: Pool<Way>,
    /// By the same numbers.
    segments: Vec<Segment>,
}

impl Parcels {
    /// The number of the packet that comes next: its segment may be written, and is a packet with
    /// [`Parcels::take_next`], which asks for a way as well.
    #[inline(always)]
    pub(super) fn next_free(&mut self) -> PacketId {
        match self.ways.next_free() {
            Some(id) => id,
            None => self.add(),
        }
    }

    /// The number that [`Parcels::next_free`] gave is that of a packet from now on.
    #[inline(always)]
    pub(super) fn take_next(&mut self) {
        self.ways.take_next();
    }

    #[cold]
    fn add(&mut self) -> PacketId {
        make_room(&mut self.segments);
        self.segments.push(Segment::default());
        self.ways.add()
    }

    /// Stores a segment; its way is still to be written.
    pub(super) fn put(&mut self, segment: Segment) -> PacketId {
        let id = self.next_free();
        self.take_next();
        *self.segment_mut(id) = segment;
        id
    }

    /// A copy, which has a number of its own.
    pub(super) fn copy(&mut self, id: PacketId, number: PacketNumber) -> PacketId {
        let copy = self.put(*self.segment(id));
        *self.way_mut(copy) = Way { number, ..*self.way(id) };
        copy
    }

    #[inline]
    pub(super) fn release(&mut self, id: PacketId) {
        self.ways.release(id);
    }

    #[inline]
    pub(super) fn way(&self, id: PacketId) -> &Way {
        self.ways.get(id)
    }

    #[inline]
    pub(super) fn way_mut(&mut self, id: PacketId) -> &mut Way {
        self.ways.get_mut(id)
    }

    #[inline]
    pub(super) fn segment(&self, id: PacketId) -> &Segment {
        &self.segments[id.0 as usize]
    }

    #[inline]
    pub(super) fn segment_mut(&mut self, id: PacketId) -> &mut Segment {
        &mut self.segments[id.0 as usize]
    }
}
