//! Recoveries and timeouts: what was lost together and how it was repaired.
//!
//! An episode begins with a retransmission and ends when everything sent before it is
//! acknowledged (the recovery point of RFC 6675 section 5). A window reduced for a mark of a queue
//! (ECN) is one of a moment, without any.

/// Episodes kept with all their details; of later ones only the counts are kept.
pub(crate) const KEPT: usize = 16_384;

/// What set the first retransmission off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// ACKs: fast retransmit, SACK, RACK.
    Acks,
    /// A tail loss probe (RFC 8985 section 7): the last segment again after about two round
    /// trips.
    Probe,
    /// The retransmission timer.
    Timer,
    /// A mark (ECN): the receiver echoed one, and the sender said that it reduced its window
    /// (CWR, RFC 3168 section 6.1.2).
    Mark,
    /// Nothing was seen again: the capture point is behind the loss, and a gap with unfinished
    /// data tells of it.
    Inferred,
}

/// A recovery or timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Episode {
    /// What set it off. A timer within it makes it [`Trigger::Timer`].
    pub trigger: Trigger,
    /// First retransmission, in ns.
    pub begin: u64,
    /// Since when nothing had come before it.
    pub silent_since: u64,
    /// End: everything from before is acknowledged.
    pub end: u64,
    /// Frames of the first and last packet.
    pub frames: (u64, u64),
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Those of them that were spurious.
    pub spurious: u64,
    /// Expiries of the timer.
    pub timeouts: u32,
    /// Bytes under way at its begin, those reported by SACK left out.
    pub flight: u64,
    /// Largest flight within a round trip before its begin: the window that was reached.
    pub window: u64,
    /// Bytes of new data sent above the first loss before it was repaired.
    pub sent_above: u64,
    /// Round-trip time at its begin, in ns.
    pub rtt: u64,
    /// The first retransmission was of the last bytes sent.
    pub tail: bool,
    /// It is over.
    pub over: bool,
}
