//! Segments as bytes and back: IPv4 (RFC 791) or IPv6 (RFC 8200) below TCP (RFC 9293).
//!
//! [`emit`] writes one packet with valid checksums, a burst as the one super-packet that a capture
//! on a host with TSO or LRO shows. [`parse`] and [`parse_cut`] read captured packets, truncated or
//! not.
//!
//! A [`Segment`](crate::Segment) has no payload bytes, so [`payload_byte`] derives them from the
//! stream offset: a receiver can check every byte against its position.
//!
//! ```
//! use std::net::SocketAddr;
//! use packet::wire::{Endpoints, Link, emit, parse};
//! use packet::{Flags, Segment};
//! use units::{Offset, SeqNum};
//! # use ackclock_packet as packet;
//!
//! let between = Endpoints {
//!     src: SocketAddr::from(([10, 0, 0, 1], 40_000)),
//!     dst: SocketAddr::from(([10, 0, 0, 2], 5_001)),
//! };
//! let sent = Segment { flags: Flags::ACK, seq: SeqNum(1), payload: 3, ..Segment::default() };
//! let mut bytes = Vec::new();
//! emit(&sent, &between, 7, Offset(0), &mut bytes).unwrap();
//!
//! let seen = parse(&bytes, Link::Raw).unwrap();
//! assert_eq!(seen.segment, sent);
//! assert_eq!(seen.endpoints, between);
//! assert_eq!(seen.payload, [0, 1, 2]);
//! ```
//!
//! Not supported: emission of fragments, IP options, emission of jumbograms, TCP options other than those of
//! [`Options`](crate::Options) and the timestamps.

mod emit;
mod fragment;
mod icmp;
mod link;
mod options;
mod parse;
#[cfg(test)]
mod tests;
mod udp;

pub use emit::{EmitError, emit, emit_payload, payload_byte};
pub use fragment::{FragmentKey, IpFragment, fragment};
pub use icmp::{IcmpError, IcmpProblem, emit_too_big, icmp_error};
pub use link::Link;
pub use options::OptionBytes;
pub use parse::{ParsedPacket, WireError, WireProblem, parse, parse_cut};
pub use udp::{UdpDatagram, udp_datagram};

use std::net::SocketAddr;

/// Source and destination of one packet. Both addresses have the same IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoints {
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
}

impl Endpoints {
    /// The endpoints of the opposite direction.
    pub const fn reversed(self) -> Self {
        Self { src: self.dst, dst: self.src }
    }
}
