//! What is known of a connection when all its packets have been seen.

use packet::wire::Endpoints;

use crate::Packet;

/// A connection, analysed.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Who opened it (or was seen first) and who answered.
    pub ends: Endpoints,
    /// Its number in the file, from 0, as Wireshark counts (`tcp.stream`).
    pub stream: u32,
    /// Packets of it in the capture.
    pub frames: u64,
    /// Words of a kernel's own log about it.
    pub states: u64,
    /// All its packets, where [`Settings::keep_packets`](crate::Settings::keep_packets) asked.
    pub packets: Vec<Packet>,
}

impl Analysis {
    pub(crate) const fn new(ends: Endpoints, stream: u32) -> Self {
        Self { ends, stream, frames: 0, states: 0, packets: Vec::new() }
    }
}
