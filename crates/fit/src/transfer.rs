//! What a captured TCP transfer and a logged QUIC transfer have in common once they are fitted.

use packet::Dir;

use crate::{Basis, LossPattern, PathFit, QuicFit};

/// What was recorded of a transfer. Times are in ns.
#[derive(Debug, Clone, Copy)]
pub struct RecordedTransfer<'a> {
    /// Bytes delivered.
    pub bytes: u64,
    /// Time until the last of them was delivered.
    pub time: u64,
    /// Bytes delivered over time.
    pub delivered: &'a [(u64, u64)],
    /// Basis of the estimates.
    pub bases: &'a [Basis],
}

/// A fitted transfer. Times are in ns.
pub trait FittedTransfer {
    /// What was recorded, and the basis of the estimates.
    fn recorded(&self) -> RecordedTransfer<'_>;
    /// Bytes delivered.
    fn bytes(&self) -> u64 {
        self.recorded().bytes
    }
    /// Time until the last of them was delivered, from its [`start`](Self::starts_with_data).
    fn time(&self) -> u64 {
        self.recorded().time
    }
    /// Bytes delivered over time.
    fn delivered(&self) -> &[(u64, u64)] {
        self.recorded().delivered
    }
    /// Congestion window over the bytes delivered; empty if unknown.
    fn windows(&self) -> &[(u64, u64)];
    /// Whether times count from the first packet with data; else from the begin of the connection.
    fn starts_with_data(&self) -> bool;
    /// How much earlier the recording has a delivery than the sender.
    fn ahead(&self) -> u64;
    /// Whether a scenario of other senders draws at random.
    fn is_random(&self) -> bool;
    /// Basis of the estimates.
    fn bases(&self) -> &[Basis] {
        self.recorded().bases
    }
    /// The scenario with a sender of `profile` and, if given, congestion control `cc`.
    fn scenario(&self, profile: &str, cc: Option<&str>, losses: LossPattern, seed: u64) -> String;
}

impl FittedTransfer for PathFit {
    fn recorded(&self) -> RecordedTransfer<'_> {
        let Self { bytes, time, delivered, bases, .. } = self;
        RecordedTransfer { bytes: *bytes, time: *time, delivered, bases }
    }

    fn windows(&self) -> &[(u64, u64)] {
        &[]
    }

    fn starts_with_data(&self) -> bool {
        !self.opened
    }

    /// The start of an upload passes the capture point half a round trip to the sender after it left,
    /// and its ACKs pass there as much before they arrive. A download starts at the receiver, as much
    /// before it is at the sender.
    fn ahead(&self) -> u64 {
        if self.opened && self.dir == Dir::Reverse { 0 } else { self.to_sender }
    }

    fn is_random(&self) -> bool {
        !self.losses.packets.is_empty()
    }

    fn scenario(&self, profile: &str, cc: Option<&str>, losses: LossPattern, seed: u64) -> String {
        Self::scenario(self, profile, cc, losses, seed)
    }
}

impl FittedTransfer for QuicFit {
    fn recorded(&self) -> RecordedTransfer<'_> {
        let Self { bytes, time, delivered, bases, .. } = self;
        RecordedTransfer { bytes: *bytes, time: *time, delivered, bases }
    }

    fn windows(&self) -> &[(u64, u64)] {
        &self.windows
    }

    fn starts_with_data(&self) -> bool {
        true
    }

    fn ahead(&self) -> u64 {
        0
    }

    fn is_random(&self) -> bool {
        !self.losses.packets.is_empty() || self.late.is_some()
    }

    fn scenario(&self, profile: &str, cc: Option<&str>, losses: LossPattern, seed: u64) -> String {
        Self::scenario(self, profile, cc, losses, seed)
    }
}
