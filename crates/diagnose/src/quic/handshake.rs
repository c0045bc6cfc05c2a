//! The handshake: its duration, its retries, and the server's anti-amplification limit.

use super::budget::QuicSpan;
use super::record::{QuicFrame, QuicPacketKind, QuicPacketRecord};

/// What the log shows of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuicHandshake {
    /// Time of the first Initial packet, sent or received, in ns.
    pub began: Option<u64>,
    /// When it was complete, in ns.
    pub complete: Option<u64>,
    /// Time and event of the first packet received.
    pub answered: Option<(u64, u64)>,
    /// Retry packets.
    pub retries: u64,
    /// Version negotiation packets.
    pub negotiations: u64,
    /// Probe timeouts in it.
    pub timeouts: u64,
    /// Bytes of CRYPTO frames sent more than once.
    pub repeated: u64,
    /// Events of the first Initial packet and of the completion.
    pub events: (u64, u64),
    /// Time that the server waited at the anti-amplification limit.
    pub amplification: QuicSpan,
    /// Bytes received and sent by the server before it was limited.
    pub limited_at: Option<(u64, u64)>,
    /// Packets sent in it, and the largest flight of the server before an answer.
    pub packets: u64,
    crypto_end: [u64; 3],
    received: u64,
    /// Bytes received at the time of its begin.
    at_begin: u64,
    sent: u64,
    validated: bool,
    /// Whether a packet arrived while the server was limited, and whether CRYPTO data that were not sent
    /// before followed.
    released: bool,
    continued: bool,
}

/// Factor of the limit (RFC 9000 section 8.1).
const AMPLIFICATION: u64 = 3;
/// Smallest datagram with an Initial packet (RFC 9000 section 14.1).
const MIN_INITIAL: u64 = 1_200;

impl QuicHandshake {
    /// Its duration, in ns.
    pub fn duration(&self) -> Option<u64> {
        self.complete?.checked_sub(self.began?)
    }

    /// Bytes received after its begin and before it was complete: what a server's handshake begins with took none of its
    /// time.
    pub const fn bytes_received(&self) -> u64 {
        self.received - self.at_begin
    }

    pub(super) const fn lift_amplification_limit(&mut self) {
        self.validated = true;
    }

    pub(super) fn complete(&mut self, at: u64, event: u64) {
        if self.complete.is_none() {
            self.complete = Some(at);
            self.events.1 = event;
        }
    }

    fn begin(&mut self, at: u64, event: u64) {
        if self.began.is_none() && self.complete.is_none() {
            self.began = Some(at);
            self.events.0 = event;
        }
    }

    pub(super) fn sent(
        &mut self,
        at: u64,
        event: u64,
        packet: &QuicPacketRecord<'_>,
        client: bool,
    ) {
        if packet.kind == QuicPacketKind::Retry {
            self.retries += 1;
        }
        if packet.kind == QuicPacketKind::Initial {
            self.begin(at, event);
        }
        if self.complete.is_some() {
            return;
        }
        self.packets += 1;
        self.sent += packet.bytes.unwrap_or(0);
        if let Some(space) = packet.kind.space() {
            for frame in packet.frames {
                if let QuicFrame::Crypto { offset, length } = *frame {
                    let end = offset.saturating_add(length);
                    self.continued |= self.released && end > self.crypto_end[space];
                    let repeated = length.min(self.crypto_end[space].saturating_sub(offset));
                    self.repeated = self.repeated.saturating_add(repeated);
                    self.crypto_end[space] = self.crypto_end[space].max(end);
                }
            }
        }
        let done = packet.frames.contains(&QuicFrame::HandshakeDone);
        let is_data = packet.kind == QuicPacketKind::OneRtt;
        // A client sends 1-RTT packets after the handshake only; a server may send them before. A
        // log without Initial packets begins after the handshake.
        if done || (is_data && (client || self.began.is_none())) {
            self.complete(at, event);
        }
    }

    pub(super) fn received(
        &mut self,
        at: u64,
        event: u64,
        packet: &QuicPacketRecord<'_>,
        client: bool,
    ) {
        match packet.kind {
            QuicPacketKind::Retry => {
                self.retries += 1;
                // The server starts again, and so does the CRYPTO stream.
                self.crypto_end = [0; 3];
            }
            QuicPacketKind::VersionNegotiation => self.negotiations += 1,
            QuicPacketKind::Initial => self.begin(at, event),
            _ => {}
        }
        self.answered = self.answered.or(Some((at, event)));
        if self.complete.is_some() {
            return;
        }
        self.released |= self.is_amplification_limited();
        // A client's Initial is padded to a datagram of this length, which few logs show.
        let is_padded = !client && packet.kind == QuicPacketKind::Initial;
        let least = if is_padded { MIN_INITIAL } else { 0 };
        let bytes = packet.bytes.unwrap_or(0).max(least);
        self.received += bytes;
        if self.began == Some(at) {
            self.at_begin += bytes;
        }
        self.validated |=
            client || matches!(packet.kind, QuicPacketKind::Handshake | QuicPacketKind::OneRtt);
        let done = packet.frames.contains(&QuicFrame::HandshakeDone);
        let is_data = packet.kind == QuicPacketKind::OneRtt;
        if done || (is_data && (!client || self.began.is_none())) {
            self.complete(at, event);
        }
    }

    /// Whether the server may send no further packet before the client does.
    pub(super) fn is_amplification_limited(&self) -> bool {
        !self.validated
            && self.received > 0
            && self.sent + MIN_INITIAL > AMPLIFICATION * self.received
    }

    /// Whether the limit stopped the server, as what it sent next shows; true if the log has no CRYPTO frames.
    pub(super) fn is_stopped(&self) -> bool {
        self.continued || self.crypto_end == [0; 3]
    }

    /// Whether CRYPTO data followed the time at the limit.
    pub(super) const fn is_stopped_for_certain(&self) -> bool {
        self.continued
    }

    pub(super) fn wait(&mut self, from: u64, to: u64, event: u64) {
        self.limited_at = self.limited_at.or(Some((self.received, self.sent)));
        self.amplification.add(from, to, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server's handshake begins with took none of its time.
    #[test]
    fn the_first_initial_is_no_part_of_what_came_since() {
        let mut handshake = QuicHandshake::default();
        let initial = QuicPacketRecord {
            kind: QuicPacketKind::Initial,
            bytes: Some(1_200),
            ..QuicPacketRecord::default()
        };
        handshake.received(5, 1, &initial, false);
        handshake.received(100, 2, &initial, false);
        assert_eq!(handshake.bytes_received(), 1_200);
    }
}
