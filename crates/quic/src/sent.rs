//! Packets that were sent and have no fate yet (RFC 9002 appendix A.1).

use std::collections::VecDeque;

use units::Instant;

use crate::packet::Chunk;

/// What a packet carried that must go again if it is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cargo {
    pub(crate) stream: Option<Chunk>,
    pub(crate) crypto: Option<Chunk>,
    pub(crate) max_data: bool,
    pub(crate) max_stream_data: bool,
    pub(crate) ack_frequency: bool,
    pub(crate) handshake_done: bool,
    /// The largest packet number that its ACK frame acknowledged.
    pub(crate) acked: Option<u64>,
}

impl Cargo {
    /// Is there anything in it that would go again?
    pub(crate) const fn goes_again(&self) -> bool {
        let frames =
            self.max_data || self.max_stream_data || self.ack_frequency || self.handshake_done;
        frames || self.stream.is_some() || self.crypto.is_some()
    }
}

/// A packet under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) number: u64,
    pub(crate) at: Instant,
    /// UDP payload bytes.
    pub(crate) size: u32,
    /// It counts in flight and draws an acknowledgment. ACK-only packets do neither.
    pub(crate) eliciting: bool,
    pub(crate) cargo: Cargo,
    /// Acknowledged or lost.
    pub(crate) settled: bool,
}

/// ACK-only packets without a fate that are remembered: enough for round-trip samples.
const MAX_SILENT: usize = 64;

/// The packets of a number space, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentPackets {
    packets: VecDeque<Sent>,
    /// Ack-eliciting ones without a fate.
    eliciting: usize,
}

impl SentPackets {
    pub(crate) fn push(&mut self, packet: Sent) {
        debug_assert!(self.packets.back().is_none_or(|last| last.number < packet.number));
        self.eliciting += usize::from(packet.eliciting);
        // A pure receiver's packets are never acknowledged.
        let old = self.packets.len() >= MAX_SILENT && !packet.eliciting;
        if old && self.packets.front().is_some_and(|first| !first.eliciting) {
            self.packets.pop_front();
        }
        self.packets.push_back(packet);
    }

    /// Is anything in flight?
    pub(crate) const fn in_flight(&self) -> bool {
        self.eliciting > 0
    }

    /// Those without a fate, in order.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = &Sent> {
        self.packets.iter().filter(|packet| !packet.settled)
    }

    /// The least number of which something is known.
    pub(crate) fn least(&self) -> Option<u64> {
        self.packets.front().map(|packet| packet.number)
    }

    /// Settles those with numbers from `first` to `last`, the largest number first.
    pub(crate) fn settle(&mut self, first: u64, last: u64, mut each: impl FnMut(Sent)) {
        let upto = self.packets.partition_point(|packet| packet.number <= last);
        for packet in self.packets.iter_mut().take(upto).rev() {
            if packet.number < first {
                break;
            }
            if !core::mem::replace(&mut packet.settled, true) {
                self.eliciting -= usize::from(packet.eliciting);
                each(*packet);
            }
        }
    }

    /// Settles those below `largest` that `judge` finds lost, the least number first.
    pub(crate) fn settle_lost(&mut self, largest: u64, mut judge: impl FnMut(&Sent) -> bool) {
        for packet in &mut self.packets {
            if packet.number >= largest {
                break;
            }
            if !packet.settled && judge(packet) {
                packet.settled = true;
                self.eliciting -= usize::from(packet.eliciting);
            }
        }
    }

    /// Forgets settled packets at the front.
    pub(crate) fn tidy(&mut self) {
        while self.packets.front().is_some_and(|first| first.settled) {
            self.packets.pop_front();
        }
    }

    /// Forgets all; returns the bytes that were in flight.
    pub(crate) fn discard(&mut self) -> u64 {
        let left = self.outstanding().filter(|packet| packet.eliciting);
        let bytes = left.map(|packet| u64::from(packet.size)).sum();
        self.packets.clear();
        self.eliciting = 0;
        bytes
    }
}
