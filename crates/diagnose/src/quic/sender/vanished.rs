//! Sizes of packets that were acknowledged before and vanish now: a path MTU that fell.

use units::Instant;

use crate::quic::analysis::QuicVanished;
use crate::quic::clock::LogEvent;
use crate::quic::packets::SentPacket;

/// Every path carries datagrams of this size (RFC 9000 section 14).
const LEAST_MTU: u64 = 1_200;

/// Losses of large packets since the last one that arrived.
#[derive(Debug, Default)]
pub(super) struct VanishedMeter {
    run: QuicVanished,
    /// When the first lost packet of the run was sent.
    first_sent: Option<Instant>,
    /// Largest packet that was ever acknowledged.
    largest_acked: u64,
}

impl VanishedMeter {
    /// A packet with data was declared lost.
    pub(super) fn lost(&mut self, now: LogEvent, packet: &SentPacket) {
        // Larger ones than ever arrived are another finding.
        if packet.bytes <= LEAST_MTU.max(self.run.smaller) || packet.bytes > self.largest_acked {
            return;
        }
        let run = &mut self.run;
        if self.first_sent.is_none() {
            *run = QuicVanished { bytes: packet.bytes, ..QuicVanished::default() };
            self.first_sent = Some(packet.at);
            (run.at, run.events.0) = (now.ns(), now.index);
        }
        run.bytes = run.bytes.min(packet.bytes);
        run.lost += 1;
        run.span = packet.at.since(self.first_sent.unwrap_or(packet.at)).as_nanos();
        run.events.1 = now.index;
    }

    /// A packet was acknowledged.
    pub(super) fn acknowledged(&mut self, packet: &SentPacket) {
        self.largest_acked = self.largest_acked.max(packet.bytes);
        if self.first_sent.is_none_or(|first| packet.at <= first) {
            return;
        }
        if packet.bytes >= self.run.bytes {
            self.first_sent = None;
        } else {
            self.run.smaller = self.run.smaller.max(packet.bytes);
            self.run.arrived += 1;
        }
    }

    /// The losses since the last large packet that arrived, if smaller ones arrived meanwhile.
    pub(super) fn finish(&self) -> Option<QuicVanished> {
        let is_run = self.first_sent.is_some() && self.run.arrived > 0;
        Some(self.run).filter(|_| is_run)
    }
}
