//! How far packets overtook each other (RFC 4737 section 4: extent in packets, late time).

/// Reordering on the way of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reordering {
    /// Packets that came after later ones, without having been sent again.
    pub packets: u64,
    /// Furthest displacement, in bytes.
    pub extent: u64,
    /// Longest delay behind the packet that overtook, in ns (as the capture point sees it).
    pub late_ns: u64,
    /// Frame of the first.
    pub first_frame: u64,
}

impl Reordering {
    pub(crate) fn count(&mut self, packets: u64, extent: u64, late: u64, frame: u64) {
        if self.packets == 0 {
            self.first_frame = frame;
        }
        self.packets += packets;
        self.extent = self.extent.max(extent);
        self.late_ns = self.late_ns.max(late);
    }
}
