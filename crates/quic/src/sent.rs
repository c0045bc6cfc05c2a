//! Sent packets that are neither acknowledged nor lost (RFC 9002 appendix A.1).

use std::collections::VecDeque;

use units::Instant;

use crate::packet::Chunk;
use crate::rate_based::DeliveryStamp;

/// The frames of a packet that are retransmitted if it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SentFrames {
    pub(crate) stream: Option<Chunk>,
    pub(crate) crypto: Option<Chunk>,
    pub(crate) max_data: bool,
    pub(crate) max_stream_data: bool,
    pub(crate) ack_frequency: bool,
    pub(crate) handshake_done: bool,
    pub(crate) connection_ids: bool,
    /// The largest packet number that its ACK frame acknowledged.
    pub(crate) acked: Option<u64>,
}

impl SentFrames {
    /// Would any of its frames be retransmitted?
    pub(crate) const fn is_retransmittable(&self) -> bool {
        let frames =
            self.max_data || self.max_stream_data || self.ack_frequency || self.handshake_done;
        frames || self.connection_ids || self.stream.is_some() || self.crypto.is_some()
    }
}

/// A sent packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentQuicPacket {
    pub(crate) number: u64,
    /// Its place in the order in which the packets of all spaces are sent.
    pub(crate) order: u64,
    pub(crate) at: Instant,
    /// UDP payload bytes.
    pub(crate) size: u32,
    /// Ack-eliciting: it counts as in flight. ACK-only packets do not.
    pub(crate) ack_eliciting: bool,
    /// It was sent as ECT(0).
    pub(crate) is_ect: bool,
    pub(crate) frames: SentFrames,
    /// For rate-based controllers.
    pub(crate) delivery: DeliveryStamp,
    /// Acknowledged or lost.
    pub(crate) settled: bool,
}

/// Most outstanding ACK-only packets that are tracked, enough for round-trip samples.
const MAX_ACK_ONLY: usize = 64;

/// The sent packets of a number space, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentPackets {
    packets: VecDeque<SentQuicPacket>,
    /// Outstanding ack-eliciting packets.
    eliciting: usize,
}

impl SentPackets {
    pub(crate) fn push(&mut self, packet: SentQuicPacket) {
        debug_assert!(self.packets.back().is_none_or(|last| last.number < packet.number));
        self.eliciting += usize::from(packet.ack_eliciting);
        // A pure receiver's packets are never acknowledged.
        let old = self.packets.len() >= MAX_ACK_ONLY && !packet.ack_eliciting;
        if old && self.packets.front().is_some_and(|first| !first.ack_eliciting) {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }

    /// Is anything in flight?
    pub(crate) const fn in_flight(&self) -> bool {
        self.eliciting > 0
    }

    /// The outstanding packets, in order.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = &SentQuicPacket> {
        self.packets.iter().filter(|packet| !packet.settled)
    }

    /// The smallest number still tracked.
    pub(crate) fn first_number(&self) -> Option<u64> {
        self.packets.front().map(|packet| packet.number)
    }

    /// Marks the packets from `first` to `last` acknowledged, the largest number first.
    pub(crate) fn settle(&mut self, first: u64, last: u64, mut each: impl FnMut(SentQuicPacket)) {
        let upto = self.packets.partition_point(|packet| packet.number <= last);
        for packet in self.packets.iter_mut().take(upto).rev() {
            if packet.number < first {
                break;
            }
            if !core::mem::replace(&mut packet.settled, true) {
                self.eliciting -= usize::from(packet.ack_eliciting);
                each(*packet);
            }
        }
    }

    /// Marks the packets below `largest` lost for which `is_lost` returns true, the smallest number
    /// first.
    pub(crate) fn settle_lost(
        &mut self,
        largest: u64,
        mut is_lost: impl FnMut(&SentQuicPacket) -> bool,
    ) {
        for packet in &mut self.packets {
            if packet.number >= largest {
                break;
            }
            if !packet.settled && is_lost(packet) {
                packet.settled = true;
                self.eliciting -= usize::from(packet.ack_eliciting);
            }
        }
    }

    /// Removes acknowledged and lost packets at the front.
    pub(crate) fn drop_settled(&mut self) {
        while self.packets.front().is_some_and(|first| first.settled) {
            self.packets.pop_front();
        }
    }

    /// Removes all packets; returns the bytes that were in flight.
    pub(crate) fn discard(&mut self) -> u64 {
        let left = self.outstanding().filter(|packet| packet.ack_eliciting);
        let bytes = left.map(|packet| u64::from(packet.size)).sum();
        self.packets.clear();
        self.eliciting = 0;
        bytes
    }
}
