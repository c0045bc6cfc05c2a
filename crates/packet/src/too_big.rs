//! The compact form of an ICMP message about a packet that was too large.

use units::{FlowId, SeqNum};

use crate::segment::{Dir, IpVersion};

/// A router's report that a segment was larger than the MTU of its next link: "fragmentation
/// needed" of ICMP (RFC 1191 section 4), "packet too big" of ICMPv6 (RFC 4443 section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTooBig {
    /// Connection of the segment.
    pub flow: FlowId,
    /// Direction of the message, against that of the segment.
    pub dir: Dir,
    /// IP version.
    pub ip: IpVersion,
    /// Sequence number of the segment.
    pub seq: SeqNum,
    /// IP bytes of the segment.
    pub size: u32,
    /// MTU of the next link in bytes.
    pub mtu: u32,
}

impl PacketTooBig {
    /// Bytes of the transport header that the message quotes: ports and sequence number.
    pub const QUOTED: u32 = 8;

    /// IP bytes of the message: two IP headers, eight bytes of ICMP, and the quoted part of the
    /// segment (RFC 792).
    pub const fn packet_len(&self) -> u32 {
        2 * self.ip.header_len() + 8 + Self::QUOTED
    }
}
