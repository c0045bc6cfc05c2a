//! What a packet carries.

use record::TcpBits;

use crate::invariants::PacketClass;

/// Contents of a packet, in offsets of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PayloadRange {
    /// First payload byte.
    pub(crate) at: u64,
    /// Payload bytes.
    pub(crate) len: u64,
    /// Whether it is a pure acknowledgment.
    pub(crate) bare: bool,
    /// Whether it may carry the FIN.
    pub(crate) fin: bool,
    /// Contiguous data its sender had received at departure: the upper bound of its acknowledgment.
    pub(crate) had: u64,
}

/// Payload and header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PacketContents {
    pub(crate) payload: PayloadRange,
    pub(crate) tcp: TcpBits,
}

impl PacketContents {
    /// Returns whether the packet is of that class.
    pub(crate) const fn is_of(&self, class: PacketClass) -> bool {
        match class {
            PacketClass::All => true,
            PacketClass::Data => self.payload.len > 0,
            PacketClass::Acks => self.payload.bare,
            PacketClass::Syns => self.tcp.is_syn(),
            PacketClass::SynAcks => self.tcp.is_syn_ack(),
            PacketClass::EcnSyns => self.tcp.is_ecn_syn(),
        }
    }
}
