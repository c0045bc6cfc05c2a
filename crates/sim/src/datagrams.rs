//! QUIC packets on their way.
//!
//! In the pool a QUIC packet lies as a segment without any flag, which no TCP sends: flow, way and
//! payload are those of the packet, so that stations treat it like any other, its acknowledgment
//! field is the packet's number here. So nothing that carries TCP has to know of it.

use packet::{Flags, Segment};
use quic::Packet;
use units::SeqNum;

/// QUIC packets by number; freed numbers are used again, with what their lists have allocated.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    slots: Vec<Packet>,
    free: Vec<u32>,
}

impl Datagrams {
    /// A number for a packet that is still to be written.
    pub(crate) fn reserve(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Packet::default());
            self.free.reserve(self.slots.len());
            (self.slots.len() - 1) as u32
        })
    }

    pub(crate) fn get(&self, number: u32) -> &Packet {
        &self.slots[number as usize]
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Packet {
        &mut self.slots[number as usize]
    }

    /// A second packet like this one.
    pub(crate) fn copy(&mut self, number: u32) -> u32 {
        let copy = self.reserve();
        let packet = self.slots[number as usize].clone();
        self.slots[copy as usize] = packet;
        copy
    }

    pub(crate) fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    /// What lies in the pool for a packet.
    pub(crate) fn stand_in(&self, number: u32) -> Segment {
        let packet = self.get(number);
        Segment {
            flow: packet.flow,
            dir: packet.dir,
            ip: packet.ip,
            seq: SeqNum(packet.stream.map_or(0, |chunk| chunk.offset) as u32),
            ack: SeqNum(number),
            flags: Flags::NONE,
            payload: packet.payload(),
            ..Segment::default()
        }
    }
}

/// The number of the QUIC packet for which a segment stands in; `None` for one of TCP.
#[inline]
pub(crate) fn number_of(segment: &Segment) -> Option<u32> {
    (segment.flags == Flags::NONE).then_some(segment.ack.0)
}
