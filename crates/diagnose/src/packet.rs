//! A captured packet.

use packet::Segment;
use units::Instant;

/// A captured TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket {
    /// Capture time, since the first packet of the input.
    pub at: Instant,
    /// Frame number in the file, from 1, as Wireshark counts (`frame.number`).
    pub frame: u64,
    /// The segment. The reader sets `dir`: [`packet::Dir::Forward`] is from the host that opened
    /// the connection, or that was seen first if the handshake was not captured. `payload` is the
    /// length by the headers, even if the capture truncated the packet.
    pub segment: Segment,
    /// Captured bytes, from the IP header on.
    pub captured: u32,
    /// Identification of the IPv4 header; 0 in IPv6 and if it is unknown.
    pub id: u16,
    /// Time to live of the IPv4 header, or hop limit of the IPv6 header; 0 if it is unknown.
    pub ttl: u8,
    /// The capture truncated the packet within its TCP options (snap length).
    pub options_cut: bool,
}
