//! Recovery episodes: loss recoveries, timeouts and ECN window reductions.
//!
//! An episode begins with a retransmission and ends when everything sent before it is acknowledged
//! (the recovery point of RFC 6675 section 5). A window reduction for ECN is an episode of zero
//! length without retransmissions.

/// Most episodes recorded in full; later ones are only counted.
pub(crate) const KEPT: usize = 16_384;

/// Trigger of the first retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecoveryTrigger {
    /// ACKs: fast retransmit, SACK, RACK.
    Acks,
    /// A tail loss probe (RFC 8985 section 7): the last segment, retransmitted after about two
    /// RTTs.
    Probe,
    /// The retransmission timer.
    Timer,
    /// An ECN mark: the receiver echoed it, and the sender signalled a window reduction (CWR, RFC
    /// 3168 section 6.1.2).
    Mark,
    /// No retransmission was captured: the loss was before the capture point, and a gap after
    /// unfinished data implies it.
    Inferred,
}

/// A loss recovery, a timeout or an ECN window reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryEpisode {
    /// Its trigger; an expiry of the timer within it makes it [`RecoveryTrigger::Timer`].
    pub trigger: RecoveryTrigger,
    /// First retransmission, in ns.
    pub begin: u64,
    /// Time of the last packet before it.
    pub silent_since: u64,
    /// End, in ns: everything sent before it is acknowledged.
    pub end: u64,
    /// Frames of the first and last packet.
    pub frames: (u64, u64),
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Spurious ones among them.
    pub spurious: u64,
    /// Packets retransmitted although their ACK had passed the capture point: it did not reach the
    /// sender.
    pub acked_before: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Bytes in flight at its begin, without those reported by SACK.
    pub flight: u64,
    /// Largest flight within a round before its begin: the window that was reached.
    pub window: u64,
    /// Bytes of new data sent during the episode.
    pub sent_above: u64,
    /// Round-trip time at its begin, in ns.
    pub rtt: u64,
    /// The first retransmission was of the last bytes sent (tail loss).
    pub tail: bool,
    /// It has ended.
    pub over: bool,
}
