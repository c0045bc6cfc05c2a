//! The STREAM frames of a packet before it is encrypted.

use std::collections::VecDeque;

/// Packets and their stream bytes, counted as they are encrypted.
#[derive(Debug, Default)]
pub struct Counts {
    /// Length and stream bytes of packets whose datagrams have not left.
    packets: VecDeque<(usize, u32)>,
    /// End of the stream bytes sent so far.
    sent_to: u64,
    pub data: u64,
    pub retransmitted: u64,
}

impl Counts {
    /// Counts a packet of this length with these stream frames: offset, length.
    pub fn packet(&mut self, length: usize, frames: impl Iterator<Item = (u64, u64)>) {
        let (mut bytes, mut again) = (0, false);
        for (offset, length) in frames {
            bytes += length;
            again |= length > 0 && offset < self.sent_to;
            self.sent_to = self.sent_to.max(offset + length);
        }
        self.data += u64::from(bytes > 0);
        self.retransmitted += u64::from(again);
        self.packets.push_back((length, bytes as u32));
    }

    /// Returns the stream bytes of a datagram of this length, the next one.
    pub fn datagram(&mut self, length: usize) -> u32 {
        let (mut seen, mut stream) = (0, 0);
        while seen < length {
            let Some((packet, bytes)) = self.packets.pop_front() else { break };
            seen += packet.max(1);
            stream += bytes;
        }
        stream
    }
}
