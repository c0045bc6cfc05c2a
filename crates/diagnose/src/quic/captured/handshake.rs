//! The handshake, from the types of its packets.

use packet::Dir;
use packet::quic::LongPacketType;

use super::{CapturedQuicDatagram, ONE_RTT};

/// Times of a handshake at the capture point, in ns on the clock of the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CapturedHandshake {
    /// First Initial of the client; `None` if the capture began later.
    pub client_initial: Option<u64>,
    /// Last Initial of the client before the server's first packet, and the number of datagrams with
    /// Initials until then.
    pub unanswered: Option<(u64, u64)>,
    /// Version Negotiation packets, and the time of the first.
    pub negotiations: (u64, Option<u64>),
    /// Retry packets, and the time of the first.
    pub retries: (u64, Option<u64>),
    /// Last Initial of the client before the server's first Initial or Handshake packet.
    pub accepted_initial: Option<u64>,
    /// Frames of the first and the last packet of the handshake.
    pub frames: (u64, u64),
    /// First Initial of the server.
    pub server_initial: Option<u64>,
    /// First Handshake packet of the server.
    pub server_handshake: Option<u64>,
    /// First Handshake packet of the client.
    pub client_handshake: Option<u64>,
    /// First 1-RTT packet of each host, by [`Dir`].
    pub one_rtt: [Option<u64>; 2],
    /// First 0-RTT packet of the client.
    pub zero_rtt: Option<u64>,
    /// What the server sent before the client answered it.
    pub first_flight: FirstFlight,
    /// Round trip times.
    pub round_trip: Option<HandshakeRoundTrip>,
}

/// The server's flight before it had an answer, which must not exceed three times what it received
/// (RFC 9000 section 8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FirstFlight {
    /// UDP payload that the client had sent, in bytes.
    pub received: u64,
    /// UDP payload that the server sent, in bytes.
    pub sent: u64,
    /// Handshake packets of the server followed after the client's answer.
    pub continues: bool,
    /// Whether the flight ended: the client answered.
    pub is_answered: bool,
}

impl FirstFlight {
    /// Whether the limit stopped the server: not a full datagram of the client's size was left of it, and
    /// the handshake went on after the client's answer.
    pub const fn is_limited(&self) -> bool {
        const DATAGRAM: u64 = 1_200;
        self.continues && self.sent + DATAGRAM > 3 * self.received
    }
}

/// Round trips from the capture point, in ns. They include the hosts' time for cryptography.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandshakeRoundTrip {
    /// To the server and back: from the client's last Initial to the server's answer.
    pub server_side: u64,
    /// To the client and back: from the server's first Handshake packet to the client's.
    pub client_side: u64,
}

impl HandshakeRoundTrip {
    /// The round trip between the hosts, in ns.
    pub const fn whole(&self) -> u64 {
        self.server_side + self.client_side
    }
}

impl CapturedHandshake {
    /// From the client's first Initial to the server's first Handshake packet, or its first 1-RTT packet if
    /// none was captured, in ns.
    pub fn duration(&self) -> Option<u64> {
        let end = self.server_handshake.or(self.one_rtt[Dir::Reverse as usize])?;
        end.checked_sub(self.client_initial?)
    }

    /// From the client's first Initial to its first 1-RTT packet, in ns.
    pub fn until_client_data(&self) -> Option<u64> {
        self.one_rtt[Dir::Forward as usize]?.checked_sub(self.client_initial?)
    }

    /// Time that Initials without an answer cost: from the client's first Initial to the one that was
    /// answered, in ns; 0 if the first was. A ClientHello of several datagrams counts little.
    pub fn waited(&self) -> u64 {
        match (self.client_initial, self.unanswered) {
            (Some(first), Some((last, _))) => last.saturating_sub(first),
            _ => 0,
        }
    }

    /// Round trips until the server's first Handshake packet: one, and one for each Retry and each version
    /// negotiation.
    pub const fn round_trips(&self) -> u64 {
        1 + (self.retries.1.is_some() as u64) + (self.negotiations.1.is_some() as u64)
    }
}

/// Follows a handshake.
#[derive(Debug, Default)]
pub(super) struct HandshakeAnalyzer {
    handshake: CapturedHandshake,
    /// Bytes sent so far, by direction.
    bytes: [u64; 2],
    /// Datagrams of the client with Initials.
    initials: u64,
    /// Last Initial of the client.
    last_initial: Option<u64>,
    server_side: Option<u64>,
}

impl HandshakeAnalyzer {
    pub(super) fn push(&mut self, datagram: &CapturedQuicDatagram) {
        let at = datagram.at;
        if datagram.packets[..ONE_RTT].iter().any(|&count| count > 0) {
            let frames = &mut self.handshake.frames;
            let first = if frames.1 == 0 { datagram.frame } else { frames.0 };
            *frames = (first, datagram.frame);
        }
        match datagram.dir {
            Dir::Forward => self.client(datagram),
            Dir::Reverse => self.server(datagram),
        }
        if datagram.packets[ONE_RTT] > 0 {
            self.handshake.one_rtt[datagram.dir as usize].get_or_insert(at);
        }
        self.bytes[datagram.dir as usize] += u64::from(datagram.len);
    }

    fn client(&mut self, datagram: &CapturedQuicDatagram) {
        let at = datagram.at;
        let known = &mut self.handshake;
        // That of an unknown version is one too, as far as its header shows.
        if datagram.has(LongPacketType::Initial) || datagram.has(LongPacketType::Unknown) {
            // After the server's packets it is not the first, but the capture began too late for that.
            if self.bytes[Dir::Reverse as usize] == 0 {
                known.client_initial.get_or_insert(at);
            }
            self.initials += 1;
            self.last_initial = Some(at);
        }
        if datagram.has(LongPacketType::ZeroRtt) {
            known.zero_rtt.get_or_insert(at);
        }
        if let Some(sent) = known.server_handshake {
            let is_answer = datagram.has(LongPacketType::Handshake);
            if is_answer && known.client_handshake.is_none() {
                known.client_handshake = Some(at);
                known.round_trip = self
                    .server_side
                    .map(|server_side| HandshakeRoundTrip { server_side, client_side: at - sent });
            }
        }
        let flight = &mut known.first_flight;
        if known.server_initial.is_some_and(|initial| initial < at) && !flight.is_answered {
            flight.is_answered = true;
            flight.sent = self.bytes[Dir::Reverse as usize];
        }
    }

    fn server(&mut self, datagram: &CapturedQuicDatagram) {
        let at = datagram.at;
        let known = &mut self.handshake;
        if datagram.has(LongPacketType::VersionNegotiation) {
            known.negotiations.0 += 1;
            known.negotiations.1.get_or_insert(at);
        }
        if datagram.has(LongPacketType::Retry) {
            known.retries.0 += 1;
            known.retries.1.get_or_insert(at);
        }
        if self.bytes[Dir::Reverse as usize] == 0 {
            known.unanswered = self.last_initial.map(|last| (last, self.initials));
        }
        let is_answer =
            datagram.has(LongPacketType::Initial) || datagram.has(LongPacketType::Handshake);
        if is_answer && self.server_side.is_none() {
            self.server_side = self.last_initial.map(|last| at - last);
            known.accepted_initial = self.last_initial;
            known.first_flight.received = self.bytes[Dir::Forward as usize];
        }
        if datagram.has(LongPacketType::Initial) {
            known.server_initial.get_or_insert(at);
        }
        if datagram.has(LongPacketType::Handshake) {
            known.first_flight.continues |= known.first_flight.is_answered;
            known.server_handshake.get_or_insert(at);
        }
    }

    /// The round trip, once it is known, in ns.
    pub(super) fn round_trip(&self) -> Option<u64> {
        self.handshake.round_trip.map(|known| known.whole())
    }

    pub(super) fn finish(self) -> CapturedHandshake {
        let mut known = self.handshake;
        if self.bytes[Dir::Reverse as usize] == 0 {
            known.unanswered = self.last_initial.map(|last| (last, self.initials));
        }
        known
    }
}
