//! What happens to single packets between two hosts, for those who check the physics.

use units::{FlowId, HostId, SeqNum};

/// Number of a packet within a run, in the order in which packets left their hosts. A copy made
/// on the way has a number of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketNumber(pub u64);

/// Number of a station within a run: the elements of the first path's own forward, then back,
/// then those of the second path, and so on; behind them all shared elements in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u32);

/// A step of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Movement {
    /// It left the network card of a host.
    Departed {
        /// The host.
        host: HostId,
        /// The connection it belongs to.
        flow: FlowId,
        /// Its number.
        packet: PacketNumber,
        /// Sequence number of its first byte.
        seq: SeqNum,
        /// Payload bytes.
        len: u32,
        /// IP bytes.
        size: u32,
        /// May it be marked (ECN field of the IP header)?
        capable: bool,
    },
    /// It came to a station, which took it.
    Entered {
        /// The station.
        station: StationId,
        /// The packet.
        packet: PacketNumber,
    },
    /// It came to a station and was lost there, in a full queue or by a rule of loss.
    Dropped {
        /// The station.
        station: StationId,
        /// The packet.
        packet: PacketNumber,
    },
    /// A station made a second one of it; the copy enters the same station.
    Copied {
        /// The station.
        station: StationId,
        /// The packet.
        packet: PacketNumber,
        /// Number of the copy.
        copy: PacketNumber,
    },
    /// A station damaged it: its checksum will be wrong.
    Damaged {
        /// The station.
        station: StationId,
        /// The packet.
        packet: PacketNumber,
    },
    /// A station told it that it met congestion (CE, RFC 3168).
    Marked {
        /// The station.
        station: StationId,
        /// The packet.
        packet: PacketNumber,
    },
    /// It left a station.
    Left {
        /// The station.
        station: StationId,
        /// The packet.
        packet: PacketNumber,
    },
    /// It reached the network card of a host.
    Arrived {
        /// The host.
        host: HostId,
        /// The packet.
        packet: PacketNumber,
    },
}

const _: () = assert!(size_of::<Movement>() <= 40);
