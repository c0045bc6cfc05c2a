//! One packet of a capture, as the reader hands it over.

use packet::Segment;
use units::Instant;

/// A captured TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// When it passed the capture point, since the first packet of the input.
    pub at: Instant,
    /// Its number in the file, from 1, as Wireshark counts (`frame.number`).
    pub frame: u64,
    /// What it is. `dir` is set by the reader: [`packet::Dir::Forward`] comes from the end that
    /// opened the connection, or was seen first where the opening is not in the capture.
    /// `payload` is that of the headers, also where the capture cut the packet off.
    pub segment: Segment,
    /// Bytes of it (from the IP header on) that are in the capture.
    pub captured: u32,
}
