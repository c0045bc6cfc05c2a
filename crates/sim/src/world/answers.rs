//! Packets that elements send because of packets that they do not pass.

use machine::{BoxAnswer, PacketId};
use packet::{Flags, PacketTooBig, Segment};
use record::{ElementId, PacketEvent, PacketNumber};
use units::{Bytes, SeqNum};

use super::contents::PacketContents;
use super::network::Network;
use super::packet_slots::{RouteCursor, StoredPacket};
use crate::observer::Observer;

impl<O: Observer> Network<'_, O> {
    /// Drops a packet at an element, and sends what the element answers. Packets of other protocols
    /// than TCP have no answer.
    #[cold]
    pub(super) fn reject(&mut self, hop_index: ElementId, id: PacketId, answer: BoxAnswer) {
        let way = *self.slots.way(id);
        let about = match self.slots.packet(id) {
            StoredPacket::Tcp(segment) => Some(segment),
            _ => None,
        };
        self.lose(hop_index, id);
        let Some(about) = about else { return };
        let back = self.routes.way_back(way.next - 1);
        match answer {
            BoxAnswer::TooBig { mtu } => {
                let message = PacketTooBig {
                    flow: about.flow,
                    dir: about.dir.reversed(),
                    ip: about.ip,
                    seq: about.seq,
                    size: way.size(),
                    mtu,
                };
                let contents = PacketContents::too_big(&message);
                let size = Bytes(u64::from(message.packet_len()));
                let id = self.slots.put_contents(contents);
                self.inject_packet(hop_index, id, size, back);
            }
            BoxAnswer::Reset => self.inject_segment(hop_index, &reset_to_sender(&about), back),
            BoxAnswer::ResetBoth => {
                self.reset_flows.insert(about.flow);
                self.inject_segment(hop_index, &reset_in_place(&about), way.next);
                self.inject_segment(hop_index, &reset_to_sender(&about), back);
            }
        }
    }

    fn inject_segment(&mut self, hop_index: ElementId, segment: &Segment, next: u32) {
        let id = self.slots.put(segment);
        self.inject_packet(hop_index, id, segment.packet_len(), next);
    }

    /// Sends a packet on from the hop with index `next`.
    fn inject_packet(&mut self, hop_index: ElementId, id: PacketId, size: Bytes, next: u32) {
        let number = PacketNumber(self.packets);
        self.packets += 1;
        *self.slots.cursor_mut(id) = RouteCursor::new(number, size, next);
        self.step(|network| {
            let (flow, dir) = network.slots.flow(id);
            PacketEvent::Injected {
                hop_index,
                packet: number,
                flow,
                dir,
                size: size.get() as u32,
                tcp: network.slots.tcp_bits(id),
            }
        });
        self.copies.push(id);
    }
}

/// The RST in place of a segment, which its receiver accepts if it would accept the segment next
/// (RFC 9293 section 3.10.7.4, RFC 5961 section 3.2).
fn reset_in_place(about: &Segment) -> Segment {
    let flags = match about.flags.has(Flags::ACK) {
        true => Flags::RST | Flags::ACK,
        false => Flags::RST,
    };
    Segment {
        flow: about.flow,
        dir: about.dir,
        flags,
        seq: about.seq,
        ack: about.ack,
        ip: about.ip,
        ..Segment::default()
    }
}

/// The RST that answers a segment, as a host without the connection sends it (RFC 9293 section
/// 3.5.2): it has the number that the segment acknowledges, or acknowledges the segment.
fn reset_to_sender(about: &Segment) -> Segment {
    let end = SeqNum(about.seq.0.wrapping_add(about.seq_len()));
    let (flags, seq, ack) = match about.flags.has(Flags::ACK) {
        true => (Flags::RST, about.ack, SeqNum(0)),
        false => (Flags::RST | Flags::ACK, SeqNum(0), end),
    };
    Segment {
        flow: about.flow,
        dir: about.dir.reversed(),
        flags,
        seq,
        ack,
        ip: about.ip,
        ..Segment::default()
    }
}
