//! Packet reordering (RFC 4737 section 4: extent in packets, late time).

use units::Duration;

/// Reordering of the data of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReorderingStats {
    /// Packets delivered after later ones without having been retransmitted.
    pub packets: u64,
    /// Largest extent, in bytes.
    pub extent: u64,
    /// Longest delay after the packet that overtook it (at the capture point).
    pub late: Duration,
    /// Frame of the first reordered packet.
    pub first_frame: u64,
}

impl ReorderingStats {
    pub(crate) fn count(&mut self, packets: u64, extent: u64, late: Duration, frame: u64) {
        if self.packets == 0 {
            self.first_frame = frame;
        }
        self.packets += packets;
        self.extent = self.extent.max(extent);
        self.late = self.late.max(late);
    }
}
