//! Packets of a packet number space: in flight, declared lost, acknowledged.
//!
//! Delivery rates are those of draft-cheng-iccrg-delivery-rate-estimation: bytes delivered between
//! the transmission and the acknowledgment of a packet, over the longer of the two intervals in
//! which they were sent and acknowledged.

use std::collections::BTreeMap;

use units::Instant;

/// Most packets remembered in flight, and most remembered as lost. The oldest ones are forgotten.
const MAX_PACKETS: usize = 1 << 17;

/// A packet in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentPacket {
    pub(super) at: Instant,
    pub(super) bytes: u64,
    /// Bytes of 1-RTT packets sent up to this one.
    pub(super) total: u64,
    pub(super) eliciting: bool,
    /// Bytes in flight as this analysis counts them.
    pub(super) counts: bool,
    /// Bytes delivered before it was sent, and when the last of them were.
    pub(super) delivered: u64,
    pub(super) delivered_at: Instant,
    /// When the packet was sent whose acknowledgment delivered them.
    pub(super) first_sent: Instant,
    pub(super) carries_data: bool,
}

impl SentPacket {
    /// Whether it tested a larger path MTU: without data, and larger than any packet acknowledged.
    pub(super) const fn is_mtu_probe(&self, largest_acked: u64) -> bool {
        !self.carries_data && largest_acked > 0 && self.bytes > largest_acked
    }
}

/// A packet that was declared lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LostPacket {
    pub(super) number: u64,
    pub(super) lost_at: Instant,
    pub(super) sent_at: Option<Instant>,
    /// Index of its episode.
    pub(super) episode: usize,
}

/// A packet number space.
#[derive(Debug, Clone, Default)]
pub(super) struct PacketSpace {
    sent: BTreeMap<u64, SentPacket>,
    lost: BTreeMap<u64, LostPacket>,
    pub(super) largest_acked: Option<u64>,
}

impl PacketSpace {
    /// Remembers a packet; returns the bytes in flight that are forgotten.
    pub(super) fn send(&mut self, number: u64, packet: SentPacket) -> u64 {
        let mut forgotten = 0;
        if self.sent.len() >= MAX_PACKETS {
            forgotten =
                self.sent.pop_first().filter(|(_, old)| old.counts).map_or(0, |old| old.1.bytes);
        }
        let before = self.sent.insert(number, packet).filter(|old| old.counts);
        forgotten + before.map_or(0, |old| old.bytes)
    }

    /// When the oldest ack-eliciting packet in flight was sent.
    pub(super) fn oldest_sent(&self) -> Option<Instant> {
        self.sent.values().find(|packet| packet.eliciting).map(|packet| packet.at)
    }

    /// Removes a lost packet from those in flight.
    pub(super) fn take_lost(&mut self, number: u64) -> Option<SentPacket> {
        self.sent.remove(&number)
    }

    pub(super) fn remember_lost(&mut self, number: u64, lost: LostPacket) {
        if self.lost.len() >= MAX_PACKETS {
            self.lost.pop_first();
        }
        self.lost.insert(number, lost);
    }

    /// Removes the packets of a range that are newly acknowledged, and lost packets that arrived.
    pub(super) fn acknowledge(
        &mut self,
        (from, to): (u64, u64),
        newly: &mut Vec<SentPacket>,
        spurious: &mut Vec<LostPacket>,
    ) {
        if from > to {
            return;
        }
        self.largest_acked = self.largest_acked.max(Some(to));
        while let Some((&number, _)) = self.sent.range(from..=to).next() {
            newly.extend(self.sent.remove(&number));
        }
        while let Some((&number, _)) = self.lost.range(from..=to).next() {
            spurious.extend(self.lost.remove(&number));
        }
    }

    /// Number of ack-eliciting packets that were never acknowledged although `threshold` later ones were.
    pub(super) fn passed_over(&self, threshold: u64) -> u64 {
        let Some(largest) = self.largest_acked else { return 0 };
        let Some(below) = largest.checked_sub(threshold) else { return 0 };
        self.sent.range(..=below).filter(|(_, packet)| packet.eliciting).count() as u64
    }

    /// Discards the space; returns the bytes in flight.
    pub(super) fn discard(&mut self) -> u64 {
        let sent = core::mem::take(&mut self.sent);
        sent.values().filter(|packet| packet.counts).map(|packet| packet.bytes).sum()
    }
}
