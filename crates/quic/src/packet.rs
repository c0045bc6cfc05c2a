//! The model of a QUIC packet: its frames and its size. Payload bytes and cryptography are not
//! modelled, only their sizes.
//!
//! A packet has at most one frame of each type and is sent in its own datagram, except for some packets of the handshake.

use packet::{Dir, IpVersion};
use units::{Bytes, FlowId};

/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;

/// A packet number space (RFC 9000 section 12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Space {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 1-RTT packets: application data.
    #[default]
    Application,
}

impl Space {
    /// All spaces, in the order of use.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Application];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A range of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Chunk {
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// FIN bit: the stream ends here.
    pub fin: bool,
}

impl Chunk {
    /// Offset after its last byte.
    pub const fn end(&self) -> u64 {
        self.offset + self.len as u64
    }
}

/// An ACK frame (RFC 9000 section 19.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AckFrame {
    /// First and last packet number of each range, the highest range first. Empty: no ACK frame.
    pub ranges: Vec<(u64, u64)>,
    /// The ACK Delay field: microseconds, shifted right by the exponent.
    pub delay: u64,
    /// ECN counts; absent if all are 0.
    pub ecn: EcnCounts,
}

/// Packets received with each ECN field (RFC 9000 section 19.3.2). Nothing here sends ECT(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u64,
    /// With CE.
    pub ce: u64,
}

impl EcnCounts {
    /// No packet.
    pub const NONE: Self = Self { ect0: 0, ce: 0 };
}

impl AckFrame {
    /// The largest packet number acknowledged.
    pub fn largest(&self) -> Option<u64> {
        self.ranges.first().map(|&(_, last)| last)
    }
}

/// An ACK_FREQUENCY frame (draft-ietf-quic-ack-frequency section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AckFrequency {
    /// Ack-Eliciting Threshold: packets that may go unacknowledged; the next one triggers an ACK.
    pub threshold: u32,
    /// Requested Max Ack Delay, in microseconds.
    pub max_delay_us: u64,
    /// Reordering Threshold: a gap triggers an immediate ACK once a packet is missing by this
    /// number; 0: never.
    pub reordering: u32,
}

/// A QUIC packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct QuicPacket {
    /// Connection it belongs to.
    pub flow: FlowId,
    /// Direction.
    pub dir: Dir,
    /// IP version.
    pub ip: IpVersion,
    /// ECN field of the IP header.
    pub ecn: u8,
    /// Packet number space.
    pub space: Space,
    /// Packet number.
    pub number: u64,
    /// UDP payload: header, frames, padding and AEAD tag.
    pub size: u32,
    /// ACK frame.
    pub ack: AckFrame,
    /// STREAM frame of the connection's stream.
    pub stream: Option<Chunk>,
    /// CRYPTO frame.
    pub crypto: Option<Chunk>,
    /// MAX_DATA frame.
    pub max_data: Option<u64>,
    /// MAX_STREAM_DATA frame.
    pub max_stream_data: Option<u64>,
    /// ACK_FREQUENCY frame.
    pub ack_frequency: Option<AckFrequency>,
    /// HANDSHAKE_DONE frame.
    pub handshake_done: bool,
    /// Bytes of NEW_CONNECTION_ID frames.
    pub connection_ids: u32,
    /// PING frame.
    pub ping: bool,
    /// IMMEDIATE_ACK frame (draft-ietf-quic-ack-frequency section 5), beside others.
    pub immediate_ack: bool,
    /// CONNECTION_CLOSE frame.
    pub close: bool,
    /// The next packet in the same datagram (RFC 9000 section 12.2).
    pub coalesced: Option<Box<QuicPacket>>,
}

impl QuicPacket {
    /// Is it ack-eliciting (RFC 9002 section 2: any frame but ACK, PADDING and CONNECTION_CLOSE)?
    pub const fn is_ack_eliciting(&self) -> bool {
        self.stream.is_some()
            || self.crypto.is_some()
            || self.max_data.is_some()
            || self.max_stream_data.is_some()
            || self.ack_frequency.is_some()
            || self.handshake_done
            || self.connection_ids > 0
            || self.ping
    }

    /// Size of the IP packet.
    pub const fn wire_len(&self) -> Bytes {
        Bytes((self.ip.header_len() + UDP_HEADER + self.datagram_len()) as u64)
    }

    /// UDP payload: the sizes of its packets.
    const fn datagram_len(&self) -> u32 {
        let coalesced = match &self.coalesced {
            Some(packet) => packet.datagram_len(),
            None => 0,
        };
        self.size + coalesced
    }

    /// Stream bytes in it.
    pub const fn payload(&self) -> u32 {
        match self.stream {
            Some(chunk) => chunk.len,
            None => 0,
        }
    }

    /// Empties the packet; keeps the allocation of its lists.
    pub(crate) fn reset(&mut self, flow: FlowId, dir: Dir, ip: IpVersion) {
        let mut ack = core::mem::take(&mut self.ack);
        ack.ranges.clear();
        ack.delay = 0;
        ack.ecn = EcnCounts::NONE;
        *self = Self { flow, dir, ip, ack, ..Self::default() };
    }
}

/// Largest UDP payload in an IP packet of `mtu` bytes.
pub const fn max_datagram(mtu: u32, ip: IpVersion) -> u32 {
    mtu.saturating_sub(ip.header_len() + UDP_HEADER)
}
