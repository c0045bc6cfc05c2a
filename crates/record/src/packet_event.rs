//! Events of single packets between two hosts, for invariant checks.

use units::{Dir, Ecn, FlowId, HostId, SeqNum};

use crate::tcp_bits::TcpBits;

/// Number of a packet within a run, in the order in which packets left their hosts. A copy made on
/// the path, or a packet that an element sends, has a number of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketNumber(pub u64);

/// Index of an element within a run: the first path's own elements, forward then reverse, then
/// those of the second path and so on, followed by all shared elements in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementId(pub u32);

/// An event of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketEvent {
    /// The packet left the NIC of a host.
    Sent {
        /// The host.
        host: HostId,
        /// Connection that the packet belongs to.
        flow: FlowId,
        /// Packet number.
        packet: PacketNumber,
        /// Sequence number of its first byte.
        seq: SeqNum,
        /// Payload bytes.
        len: u32,
        /// IP bytes.
        size: u32,
        /// ECN field of the IP header.
        ecn: Ecn,
        /// Control bits and offers of its TCP header.
        tcp: TcpBits,
    },
    /// The packet arrived at an element, which accepted it.
    Accepted {
        /// The element.
        hop_index: ElementId,
        /// The packet.
        packet: PacketNumber,
    },
    /// The packet was dropped at an element, by a full queue or a loss model.
    Dropped {
        /// The element.
        hop_index: ElementId,
        /// The packet.
        packet: PacketNumber,
    },
    /// An element duplicated the packet; the copy enters the same element.
    Duplicated {
        /// The element.
        hop_index: ElementId,
        /// The packet.
        packet: PacketNumber,
        /// Number of the copy.
        copy: PacketNumber,
    },
    /// An element corrupted the packet: its checksum will be wrong.
    Corrupted {
        /// The element.
        hop_index: ElementId,
        /// The packet.
        packet: PacketNumber,
    },
    /// An element marked the packet CE (RFC 3168).
    Marked {
        /// The element.
        hop_index: ElementId,
        /// The packet.
        packet: PacketNumber,
    },
    /// An element removed options from the packet, a SYN.
    Rewritten {
        /// The element.
        hop_index: ElementId,
        /// The packet.
        packet: PacketNumber,
        /// Its IP bytes from now on.
        size: u32,
    },
    /// An element sent a packet of its own, because of one that it dropped: a RST or an ICMP error.
    Injected {
        /// The element.
        hop_index: ElementId,
        /// The packet.
        packet: PacketNumber,
        /// Connection that the packet is about.
        flow: FlowId,
        /// Its direction on the connection.
        dir: Dir,
        /// IP bytes.
        size: u32,
        /// Control bits of its TCP header; none for an ICMP error.
        tcp: TcpBits,
    },
    /// The packet left an element.
    Forwarded {
        /// The element.
        hop_index: ElementId,
        /// The packet.
        packet: PacketNumber,
    },
    /// The packet reached the NIC of a host.
    Received {
        /// The host.
        host: HostId,
        /// The packet.
        packet: PacketNumber,
        /// Control bits and offers of its TCP header.
        tcp: TcpBits,
    },
}

const _: () = assert!(size_of::<PacketEvent>() <= 40);
