//! Classification of transmissions: new data, needed retransmissions, spurious ones, probes.
//!
//! A retransmission is *spurious* if an earlier copy of the same bytes was delivered. Evidence:
//! - a D-SACK reports the bytes as duplicates (RFC 2883, RFC 3708);
//! - an ACK that covers the bytes echoes a timestamp older than the retransmission (Eifel
//!   detection, RFC 3522);
//! - an ACK or SACK arrives sooner after it than any RTT allows;
//! - the bytes were acknowledged before it was sent;
//! - a capture at the receiver has the earlier copy.
//!
//! All others count as needed.

use std::collections::VecDeque;

use units::{Instant, Offset};

/// Most retransmissions whose duplicate may still be reported; older ones are dropped.
const MAX_OPEN: usize = 8192;

/// Counts of the transmissions of one direction, in packets of at most one segment (a burst that
/// the capture has as one packet counts as the segments it is split into).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transmissions {
    /// Packets with new data.
    pub new: u64,
    /// Packets with retransmitted data.
    pub retransmitted: u64,
    /// Retransmitted packets of which an earlier copy was delivered.
    pub spurious: u64,
    /// Payload of the retransmissions.
    pub retransmitted_bytes: u64,
    /// Zero-window probes.
    pub window_probes: u64,
    /// Keepalives.
    pub keepalives: u64,
    /// Captured packets longer than a segment: bursts before TSO or after LRO and GRO.
    pub bursts: u64,
    /// Bytes of the longest burst.
    pub longest_burst: u64,
    /// D-SACKs for bytes that were not captured twice: duplication in the network, or packets
    /// missed by the capture.
    pub unexplained_duplicates: u64,
}

impl Transmissions {
    /// Retransmissions that were not spurious.
    pub const fn needed(&self) -> u64 {
        self.retransmitted - self.spurious
    }
}

/// A retransmission that may be spurious.
#[derive(Debug, Clone, Copy)]
struct OpenRetransmission {
    start: Offset,
    end: Offset,
    at: Instant,
    packets: u64,
    episode: u32,
    spurious: bool,
    dsacked: bool,
}

/// Retransmissions that may still prove spurious.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRetransmissions {
    list: VecDeque<OpenRetransmission>,
}

impl OpenRetransmissions {
    pub(crate) fn push(
        &mut self,
        (start, end): (Offset, Offset),
        at: Instant,
        packets: u64,
        episode: u32,
        spurious: bool,
    ) {
        if self.list.len() == MAX_OPEN {
            self.list.pop_front();
        }
        self.list.push_back(OpenRetransmission {
            start,
            end,
            at,
            packets,
            episode,
            spurious,
            dsacked: false,
        });
    }

    /// Processes a D-SACK: returns the number of packets newly known to be spurious and their
    /// episode, or `None` if no retransmission explains it.
    pub(crate) fn duplicate(&mut self, start: Offset, end: Offset, mss: u64) -> Option<(u64, u32)> {
        let repeated =
            self.list.iter_mut().find(|one| !one.dsacked && one.start < end && start < one.end)?;
        if repeated.start >= start && repeated.end <= end || repeated.packets <= 1 {
            repeated.dsacked = true;
            let fresh = if repeated.spurious { 0 } else { repeated.packets };
            repeated.spurious = true;
            return Some((fresh, repeated.episode));
        }
        // Only a part of a burst: the rest stays open.
        let part = (end.min(repeated.end) - start.max(repeated.start)).div_ceil(mss.max(1));
        let part = part.clamp(1, repeated.packets - 1);
        repeated.packets -= part;
        if start <= repeated.start {
            repeated.start = end.min(repeated.end);
        }
        Some((if repeated.spurious { 0 } else { part }, repeated.episode))
    }

    /// Marks the last retransmission of `[start, end)` as spurious.
    pub(crate) fn mark_spurious(&mut self, start: Offset, end: Offset) -> Option<(u64, u32)> {
        let repeated = self.list.iter_mut().rev().find(|one| one.start < end && start < one.end)?;
        if repeated.spurious {
            return None;
        }
        repeated.spurious = true;
        Some((repeated.packets, repeated.episode))
    }

    /// Drops retransmissions from before `time`: their duplicates would have been reported.
    pub(crate) fn settle(&mut self, time: Instant) {
        while self.list.front().is_some_and(|one| one.at < time) {
            self.list.pop_front();
        }
    }
}
