//! What an implementation of QUIC does, as data: three profiles, and fields to change.

use cc::quic_newreno::Params;
use units::{Bytes, Duration};

use crate::ack_policy::AckRule;
use crate::flow_control::Windows;
use crate::handshake::Flights;
use crate::loss::LossRule;
use crate::packet::AckFrequency;
use crate::pto::PtoRule;
use crate::sizes::Overhead;

/// What an implementation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// IP bytes of the largest packet; its datagrams fill it.
    pub mtu: u32,
    /// Headers.
    pub overhead: Overhead,
    /// The handshake; `None` where both sides begin established.
    pub handshake: Option<Flights>,
    /// Congestion control unless another is chosen.
    pub default_cc: &'static str,
    /// The parameters of NewReno.
    pub newreno: Params,
    /// When the window lets a packet go.
    pub send: SendRule,
    /// Losses that an ACK reveals are answered before what it acknowledges is counted (RFC 9002
    /// appendix A.7).
    pub losses_first: bool,
    /// Loss detection.
    pub loss: LossRule,
    /// The probe timeout.
    pub pto: PtoRule,
    /// How it acknowledges.
    pub acks: AckRule,
    /// What it asks of the peer's acknowledgments, where both have the extension.
    pub ack_frequency: Option<AckFrequency>,
    /// Does it pace?
    pub pacing: bool,
    /// What it grants the peer.
    pub windows: Windows,
    /// Bytes it holds for the application until they are acknowledged.
    pub send_buffer: Bytes,
}

/// When the window lets a packet go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendRule {
    /// While the packet fits (RFC 9002 section 7).
    Fits,
    /// While a full-sized packet would fit, whatever its size (INET).
    FullPackets,
    /// While anything of the window is left: the last packet may go beyond it.
    Overshoot,
    /// While the flight stays below the window, not only within it, with a full-sized packet more
    /// (quinn-proto 0.11, `poll_transmit`).
    Below,
}

/// Names of all profiles, in the order they are listed to users.
pub const NAMES: [&str; 3] = ["quic-rfc9002", "quic-inet-2025-02", "quic-inet-2025-03"];

impl Profile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "quic-rfc9002" => Some(RFC9002),
            "quic-inet-2025-02" => Some(INET_2025_02),
            "quic-inet-2025-03" => Some(INET_2025_03),
            _ => None,
        }
    }
}

/// RFC 9000, 9001, 9002 with their recommended values.
pub const RFC9002: Profile = Profile {
    name: "quic-rfc9002",
    mtu: 1_500,
    // RFC 9001 section 5.3; the ids are as long as most implementations have them.
    overhead: Overhead { connection_id: 8, packet_number: None, tag: 16 },
    handshake: Some(Flights::TYPICAL),
    default_cc: "newreno",
    newreno: Params::RFC9002,
    send: SendRule::Fits,
    losses_first: true,
    loss: LossRule::RFC9002,
    pto: PtoRule { initial_rtt: Duration::from_millis(333), probes: 2, most: 10 },
    acks: AckRule {
        every: 2,
        max_delay: Duration::from_millis(25),
        exponent: 3,
        reordering: 1,
        first_at_once: false,
        max_ranges: 32,
        bundle_all: false,
    },
    ack_frequency: None,
    pacing: true,
    // Chromium's.
    windows: Windows { connection: 15 << 20, stream: 6 << 20 },
    send_buffer: Bytes(16 << 20),
};

/// INET of 14 February 2025 (58f2b31929, "add QUIC src and examples").
pub const INET_2025_02: Profile = Profile {
    name: "quic-inet-2025-02",
    overhead: Overhead { connection_id: 8, packet_number: Some(4), tag: 0 },
    handshake: None,
    newreno: Params::INET_2025_02,
    send: SendRule::FullPackets,
    pto: PtoRule { probes: 1, ..RFC9002.pto },
    acks: AckRule { first_at_once: true, max_ranges: 1_024, ..RFC9002.acks },
    pacing: false,
    // Quic.ned: initialMaxData, initialMaxStreamData*, sendQueueLimit.
    windows: Windows { connection: 15_000_000, stream: 6_000_000 },
    send_buffer: Bytes(64_000_000),
    ..RFC9002
};

/// INET of 13 March 2025 (6cf5aaa910): another NewReno, and a handshake.
pub const INET_2025_03: Profile = Profile {
    name: "quic-inet-2025-03",
    handshake: Some(Flights::TYPICAL),
    newreno: Params::INET_2025_03,
    ..INET_2025_02
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_profile_exists_under_its_own_name() {
        for name in NAMES {
            assert_eq!(Profile::named(name).map(|profile| profile.name), Some(name));
        }
        assert_eq!(Profile::named("quic"), None);
    }
}
