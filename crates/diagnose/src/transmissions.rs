//! What each transmission was: new, a needed retransmission, a spurious one, a probe.
//!
//! A retransmission is *spurious* when an earlier copy of the same bytes was delivered. That is
//! known
//! - from a D-SACK that reports them as duplicates (RFC 2883, RFC 3708);
//! - from an ACK that covers them and echoes a timestamp older than the retransmission (the Eifel
//!   detection of RFC 3522);
//! - from an ACK or SACK that comes sooner after it than any round trip could bring it;
//! - when it leaves after its bytes were acknowledged;
//! - at the receiver, from having seen the earlier copy pass.
//!
//! All others are counted as needed.

use std::collections::VecDeque;

/// Retransmissions whose duplicate may yet be reported; older ones are settled.
const OPEN: usize = 8192;

/// What the transmissions of one direction were, in packets of a full segment at most (a burst
/// that the capture shows as one packet counts as what it is split into).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transmissions {
    /// Packets with new data.
    pub new: u64,
    /// Packets with data that were sent before.
    pub retransmitted: u64,
    /// Those of them whose earlier copy was delivered.
    pub spurious: u64,
    /// Payload of the retransmissions.
    pub retransmitted_bytes: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Keepalives.
    pub keepalives: u64,
    /// Captured packets longer than a segment: bursts before TSO or behind LRO and GRO.
    pub bursts: u64,
    /// Bytes of the longest of them.
    pub longest_burst: u64,
    /// D-SACKs for bytes that were not seen twice: duplicates of the network, or losses of the
    /// capture.
    pub unexplained_duplicates: u64,
}

impl Transmissions {
    /// Retransmissions without which the bytes would not have arrived.
    pub const fn needed(&self) -> u64 {
        self.retransmitted - self.spurious
    }
}

/// A retransmission whose fate is open.
#[derive(Debug, Clone, Copy)]
struct Again {
    start: u64,
    end: u64,
    at: u64,
    packets: u64,
    episode: u32,
    spurious: bool,
    reported: bool,
}

/// The retransmissions that may still turn out to have been spurious.
#[derive(Debug, Clone, Default)]
pub(crate) struct Open {
    list: VecDeque<Again>,
}

impl Open {
    pub(crate) fn push(
        &mut self,
        (start, end): (u64, u64),
        at: u64,
        packets: u64,
        episode: u32,
        spurious: bool,
    ) {
        if self.list.len() == OPEN {
            self.list.pop_front();
        }
        self.list.push_back(Again { start, end, at, packets, episode, spurious, reported: false });
    }

    /// A D-SACK came: the packets now known to be spurious with their episode, or `None` if no
    /// retransmission explains it.
    pub(crate) fn duplicate(&mut self, start: u64, end: u64, mss: u64) -> Option<(u64, u32)> {
        let again =
            self.list.iter_mut().find(|one| !one.reported && one.start < end && start < one.end)?;
        if again.start >= start && again.end <= end || again.packets <= 1 {
            again.reported = true;
            let fresh = if again.spurious { 0 } else { again.packets };
            again.spurious = true;
            return Some((fresh, again.episode));
        }
        // Only a part of a burst: the rest stays open.
        let part = (end.min(again.end) - start.max(again.start)).div_ceil(mss.max(1));
        let part = part.clamp(1, again.packets - 1);
        again.packets -= part;
        if start <= again.start {
            again.start = end.min(again.end);
        }
        Some((if again.spurious { 0 } else { part }, again.episode))
    }

    /// Delivery of `[start, end)` says that its last retransmission was spurious.
    pub(crate) fn early(&mut self, start: u64, end: u64) -> Option<(u64, u32)> {
        let again = self.list.iter_mut().rev().find(|one| one.start < end && start < one.end)?;
        if again.spurious {
            return None;
        }
        again.spurious = true;
        Some((again.packets, again.episode))
    }

    /// Forgets retransmissions from before `time`: their duplicates would have been reported.
    pub(crate) fn settle(&mut self, time: u64) {
        while self.list.front().is_some_and(|one| one.at < time) {
            self.list.pop_front();
        }
    }
}
