//! What a run that obeyed physics amounts to.

use units::Bytes;

/// Counts over a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Packets that left their hosts.
    pub departed: u64,
    /// Copies made on the way.
    pub copies: u64,
    /// Packets damaged on the way.
    pub damaged: u64,
    /// Marks set on the way (CE, RFC 3168).
    pub marked: u64,
    /// Packets that arrived, copies and damaged ones included.
    pub arrived: u64,
    /// Packets lost on the way.
    pub lost: u64,
    /// Packets still on their way at the end.
    pub on_the_road: u64,
    /// Both ends of each connection.
    pub flows: Vec<[EndSummary; 2]>,
}

/// Counts of one end of a connection, in payload bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndSummary {
    /// Written by the application.
    pub written: Bytes,
    /// Sent, each byte counted once.
    pub sent: Bytes,
    /// Sent again, as often as that happened.
    pub sent_again: Bytes,
    /// Known to have been received by the peer.
    pub acknowledged: Bytes,
    /// Arrived without a gap.
    pub received: Bytes,
    /// Read by the application.
    pub read: Bytes,
}
