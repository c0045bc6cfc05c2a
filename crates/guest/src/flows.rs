//! Converts packets of guests to segments of the world, and segments to packets for guests.
//!
//! A world stores byte counts, not bytes: the byte at offset n of every stream is n modulo 251
//! ([`packet::wire::payload_byte`]), as in captures of modelled hosts. The payload that a guest
//! sends is checked against this pattern.

use std::collections::BTreeMap;

use packet::wire::{EmitError, Endpoints, Link, emit_payload, emit_too_big, parse};
use packet::{Dir, Flags, PacketTooBig, Segment};
use units::{FlowId, Offset, SeqNum};

use crate::guest::Packet;

/// Length of the pattern of payload bytes.
const PERIOD: usize = 251;
/// Maximum payload of a burst.
const LARGEST: usize = 1 << 16;

/// Counters of packets that are not segments of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowCounters {
    /// Packets of no flow, or of another protocol than TCP.
    pub foreign: u64,
    /// Segments whose payload differs from the data that the application wrote.
    pub altered: u64,
    /// Segments that cannot be packets: longer than the length field of the IP header allows.
    pub unsendable: u64,
}

/// The flows of a world by their addresses.
#[derive(Debug)]
pub struct Flows {
    endpoints: Vec<Endpoints>,
    numbers: BTreeMap<Endpoints, (FlowId, Dir)>,
    /// Two for each flow: forward, reverse.
    streams: Vec<StreamPosition>,
    /// Bytes of any stream, from any offset modulo [`PERIOD`] on.
    pattern: Vec<u8>,
    /// The counters.
    pub counters: FlowCounters,
}

#[derive(Debug, Clone, Copy, Default)]
struct StreamPosition {
    isn: Option<SeqNum>,
    newest: Offset,
}

impl Flows {
    /// Flows with these addresses, each seen from its connecting side.
    pub fn new(endpoints: &[Endpoints]) -> Self {
        let mut numbers = BTreeMap::new();
        for (number, &endpoints) in endpoints.iter().enumerate() {
            let flow = FlowId(number as u32);
            numbers.insert(endpoints, (flow, Dir::Forward));
            numbers.insert(endpoints.reversed(), (flow, Dir::Reverse));
        }
        Self {
            endpoints: endpoints.to_vec(),
            numbers,
            streams: vec![StreamPosition::default(); 2 * endpoints.len()],
            pattern: (0..LARGEST + PERIOD).map(|n| (n % PERIOD) as u8).collect(),
            counters: FlowCounters::default(),
        }
    }

    /// Returns the segment of a packet that a guest sent; `None` if it belongs to no flow, which is
    /// counted.
    pub fn segment(&mut self, packet: &Packet<'_>) -> Option<Segment> {
        let parsed = parse(packet.bytes, Link::Raw).ok();
        let found = parsed.and_then(|parsed| Some((parsed, *self.numbers.get(&parsed.endpoints)?)));
        let Some((parsed, (flow, dir))) = found else {
            self.counters.foreign += 1;
            return None;
        };
        let mut segment = parsed.segment;
        segment.flow = flow;
        segment.dir = dir;
        if u32::from(packet.gso_size) < segment.payload {
            segment.gso_size = packet.gso_size;
        }
        let start = self.offset(&segment);
        let same = start.is_none_or(|start| parsed.payload == self.payload(start, segment.payload));
        if !same || parsed.payload.len() != segment.payload as usize {
            self.counters.altered += 1;
        }
        Some(segment)
    }

    /// Writes a segment as an IP packet into `out`, which is cleared first.
    ///
    /// # Errors
    /// [`EmitError`] if it does not fit into an IP packet.
    pub fn packet(&mut self, segment: &Segment, out: &mut Vec<u8>) -> Result<(), EmitError> {
        out.clear();
        let forward = self.endpoints[segment.flow.0 as usize];
        let endpoints = if segment.dir == Dir::Forward { forward } else { forward.reversed() };
        let start = self.offset(segment).unwrap_or_default();
        let payload = self.payload(start, segment.payload);
        emit_payload(segment, &endpoints, 0, payload, out)
    }

    /// Writes an ICMP error as an IP packet into `out`, which is cleared first.
    ///
    /// # Errors
    /// [`EmitError`] if it does not fit into an IP packet.
    pub fn too_big(&self, message: &PacketTooBig, out: &mut Vec<u8>) -> Result<(), EmitError> {
        out.clear();
        let forward = self.endpoints[message.flow.0 as usize];
        // The message is about a segment of the opposite direction.
        let about = if message.dir == Dir::Reverse { forward } else { forward.reversed() };
        emit_too_big(message, &about, out)
    }

    /// The bytes of any stream from offset `start` on.
    fn payload(&self, start: Offset, len: u32) -> &[u8] {
        let from = (start.0 % PERIOD as u64) as usize;
        self.pattern.get(from..from + len as usize).unwrap_or_default()
    }

    /// Returns the stream offset of the payload of a segment; `None` before the first SYN.
    fn offset(&mut self, segment: &Segment) -> Option<Offset> {
        let index = 2 * segment.flow.0 as usize + usize::from(segment.dir == Dir::Reverse);
        let stream = &mut self.streams[index];
        if segment.flags.has(Flags::SYN) {
            *stream = StreamPosition { isn: Some(segment.seq), newest: Offset(0) };
            return Some(Offset(0));
        }
        let first = SeqNum(stream.isn?.0.wrapping_add(1));
        let offset = segment.seq.near(first, stream.newest)?;
        stream.newest = stream.newest.max(offset);
        Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn flows() -> Flows {
        let endpoints = Endpoints {
            src: SocketAddr::from(([10, 0, 0, 1], 49_152)),
            dst: SocketAddr::from(([10, 0, 0, 2], 5_001)),
        };
        Flows::new(&[endpoints])
    }

    fn data(seq: u32, payload: u32) -> Segment {
        let flags = Flags::ACK | Flags::PSH;
        Segment { seq: SeqNum(seq), payload, flags, window: 100, ..Segment::default() }
    }

    #[test]
    fn a_segment_goes_to_a_packet_and_back() {
        let mut flows = flows();
        let mut bytes = Vec::new();
        let isn = u32::MAX - 700;
        let options = packet::Options::Syn(packet::SynOptions::default());
        let syn = Segment { seq: SeqNum(isn), flags: Flags::SYN, options, ..Segment::default() };
        for segment in [syn, data(isn.wrapping_add(1), 500), data(isn.wrapping_add(501), 1_448)] {
            flows.packet(&segment, &mut bytes).unwrap();
            let packet = Packet { bytes: &bytes, gso_size: 0 };
            assert_eq!(flows.segment(&packet), Some(segment));
        }
        // Offsets 500 to 1947: the sequence number has wrapped.
        assert_eq!(bytes[40], (500 % 251) as u8);
        let burst = Packet { bytes: &bytes, gso_size: 724 };
        assert_eq!(flows.segment(&burst).unwrap().gso_size, 724);
        let single = Packet { bytes: &bytes, gso_size: 1_448 };
        assert_eq!(flows.segment(&single).unwrap().gso_size, 0);
        assert_eq!(flows.counters, FlowCounters::default());
    }

    #[test]
    fn altered_payload_and_foreign_packets_are_counted() {
        let mut flows = flows();
        let mut bytes = Vec::new();
        let syn = Segment { flags: Flags::SYN, ..Segment::default() };
        flows.packet(&syn, &mut bytes).unwrap();
        flows.packet(&data(1, 100), &mut bytes).unwrap();
        bytes[90] ^= 1;
        assert!(flows.segment(&Packet { bytes: &bytes, gso_size: 0 }).is_some());
        assert_eq!(flows.counters.altered, 1);
        // The source port.
        bytes[20] ^= 1;
        assert_eq!(flows.segment(&Packet { bytes: &bytes, gso_size: 0 }), None);
        assert_eq!(flows.segment(&Packet { bytes: b"no packet", gso_size: 0 }), None);
        assert_eq!(flows.counters.foreign, 2);
    }
}
