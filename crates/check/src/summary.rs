//! Statistics of a verified run.

use units::Bytes;

/// Packet counts and totals of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifiedSummary {
    /// Packets sent by the hosts.
    pub departed: u64,
    /// Copies made by elements.
    pub copies: u64,
    /// Packets sent by elements: ICMP errors and RSTs.
    pub injected: u64,
    /// Packets corrupted by elements.
    pub damaged: u64,
    /// CE marks set by elements (RFC 3168).
    pub marked: u64,
    /// Packets that arrived, copies and corrupted ones included.
    pub arrived: u64,
    /// Packets dropped by elements.
    pub lost: u64,
    /// Packets still in flight at the end.
    pub in_transit: u64,
    /// Both ends of each connection.
    pub flows: Vec<[EndpointSummary; 2]>,
}

/// Totals of one end of a connection, in payload bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointSummary {
    /// Written by the application.
    pub written: Bytes,
    /// Sent, each byte counted once.
    pub sent: Bytes,
    /// Retransmitted, each time counted.
    pub retransmitted: Bytes,
    /// Acknowledged by the peer.
    pub acknowledged: Bytes,
    /// Received contiguously.
    pub received: Bytes,
    /// Read by the application.
    pub read: Bytes,
}
