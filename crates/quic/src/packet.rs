//! A QUIC packet as the model carries it: what its frames say, and how large it is. Payload bytes
//! and cryptography do not exist, their sizes do.
//!
//! A packet has at most one frame of a kind. Each travels in a datagram of its own.

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
    /// All, in the order in which they are used.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Application];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A piece of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Chunk {
    /// Place of its first byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Nothing follows.
    pub fin: bool,
}

impl Chunk {
    /// Behind its last byte.
    pub const fn end(&self) -> u64 {
        self.offset + self.len as u64
    }
}

/// An ACK frame (RFC 9000 section 19.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ack {
    /// First and last packet number of each range, the highest range first. Empty: no ACK frame.
    pub ranges: Vec<(u64, u64)>,
    /// The ACK Delay field: microseconds, shifted right by the exponent.
    pub delay: u64,
}

impl Ack {
    /// The largest packet number acknowledged.
    pub fn largest(&self) -> Option<u64> {
        self.ranges.first().map(|&(_, last)| last)
    }
}

/// An ACK_FREQUENCY frame (draft-ietf-quic-ack-frequency section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AckFrequency {
    /// Ack-eliciting packets that may stay without an acknowledgment: the one after them draws it.
    pub threshold: u32,
    /// Longest delay asked for, in microseconds.
    pub max_delay_us: u64,
    /// Packets by which one must be missing before a gap draws an acknowledgment; 0: never.
    pub reordering: u32,
}

/// A QUIC packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Packet {
    /// Connection it belongs to.
    pub flow: FlowId,
    /// Its way.
    pub dir: Dir,
    /// Version of the internet protocol below it.
    pub ip: IpVersion,
    /// Whose number it has.
    pub space: Space,
    /// Packet number.
    pub number: u64,
    /// UDP payload: header, frames, padding and AEAD tag.
    pub size: u32,
    /// ACK frame.
    pub ack: Ack,
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
    /// PING frame.
    pub ping: bool,
    /// CONNECTION_CLOSE frame.
    pub close: bool,
}

impl Packet {
    /// Does it oblige the peer to answer (RFC 9002 section 2: any frame but ACK, PADDING and
    /// CONNECTION_CLOSE)?
    pub const fn is_ack_eliciting(&self) -> bool {
        self.stream.is_some()
            || self.crypto.is_some()
            || self.max_data.is_some()
            || self.max_stream_data.is_some()
            || self.ack_frequency.is_some()
            || self.handshake_done
            || self.ping
    }

    /// IP bytes.
    pub const fn wire_len(&self) -> Bytes {
        Bytes((self.ip.header_len() + UDP_HEADER + self.size) as u64)
    }

    /// Bytes of the stream in it.
    pub const fn payload(&self) -> u32 {
        match self.stream {
            Some(chunk) => chunk.len,
            None => 0,
        }
    }

    /// Makes an empty packet of it; what its lists have allocated is kept.
    pub(crate) fn reset(&mut self, flow: FlowId, dir: Dir, ip: IpVersion) {
        let mut ack = core::mem::take(&mut self.ack);
        ack.ranges.clear();
        ack.delay = 0;
        *self = Self { flow, dir, ip, ack, ..Self::default() };
    }
}

/// Largest UDP payload in an IP packet of `mtu` bytes.
pub const fn max_datagram(mtu: u32, ip: IpVersion) -> u32 {
    mtu.saturating_sub(ip.header_len() + UDP_HEADER)
}
