//! Recovery episodes: loss recoveries, timeouts and ECN window reductions.
//!
//! An episode begins with a retransmission and ends when everything sent before it is acknowledged
//! (the recovery point of RFC 6675 section 5). A window reduction for ECN is an episode of zero
//! length without retransmissions.

use units::{Duration, Instant};

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
    /// First retransmission.
    pub begin: Instant,
    /// Time of the last packet before it.
    pub silent_since: Instant,
    /// End: everything sent before it is acknowledged.
    pub end: Instant,
    /// Frames of the first and last packet.
    pub frames: (u64, u64),
    /// Retransmitted packets.
    pub retransmitted: u64,
    /// Spurious ones among them.
    pub spurious: u64,
    /// Packets retransmitted although their ACK had passed the capture point: it did not reach the
    /// sender.
    pub acked_before: u64,
    /// Retransmitted packets that follow the one retransmitted before in the stream: lost in a row, without an expiry.
    pub in_a_row: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Expiries since the last ACK of new data.
    pub unanswered_timeouts: u32,
    /// Bytes in flight at its begin, without those reported by SACK.
    pub flight: u64,
    /// Largest flight within a round before its begin: the window that was reached.
    pub window: u64,
    /// Bytes of new data sent during the episode.
    pub sent_above: u64,
    /// Round-trip time at its begin.
    pub rtt: Duration,
    /// The first retransmission was of the last bytes sent (tail loss).
    pub tail: bool,
    /// It has ended.
    pub over: bool,
}

impl RecoveryEpisode {
    /// An episode that begins and ends at `at`, without retransmissions.
    pub(crate) const fn new(trigger: RecoveryTrigger, at: Instant, frame: u64) -> Self {
        Self {
            trigger,
            begin: at,
            silent_since: at,
            end: at,
            frames: (frame, frame),
            retransmitted: 0,
            spurious: 0,
            acked_before: 0,
            in_a_row: 0,
            timeouts: 0,
            unanswered_timeouts: 0,
            flight: 0,
            window: 0,
            sent_above: 0,
            rtt: Duration::ZERO,
            tail: false,
            over: false,
        }
    }
}
