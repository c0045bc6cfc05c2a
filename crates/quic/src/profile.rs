//! Profiles of QUIC implementations: presets, and fields to change. [`stacks`] has those of stacks in use, from
//! their sources.

mod controllers;
pub mod stacks;

pub use controllers::controller_note;

use cc::quic_newreno::QuicNewRenoParams;
use units::{Bytes, Duration};

use crate::ack_policy::QuicAckRule;
use crate::ecn::EcnRule;
use crate::flow_control::Windows;
use crate::handshake::{Flights, MIN_INITIAL};
use crate::loss::QuicLossRule;
use crate::mtu::MtuDiscoveryRule;
use crate::packet::AckFrequency;
use crate::pto::QuicPtoRule;
use crate::rtt::RttArithmetic;
use crate::sizes::{Overhead, StreamFrameFields};
use crate::slow_start::SlowStartRule;

/// The behaviour of a QUIC implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicProfile {
    /// Name.
    pub name: &'static str,
    /// Size of the largest IP packet; full datagrams fill it.
    pub mtu: u32,
    /// How the largest datagram is searched; `None`: full datagrams fill the largest IP packet from the start.
    pub mtu_discovery: Option<MtuDiscoveryRule>,
    /// Header sizes.
    pub overhead: Overhead,
    /// The handshake; `None`: both endpoints start established.
    pub handshake: Option<Flights>,
    /// Bytes to which datagrams with an Initial packet are padded, at least 1,200 (RFC 9000 section 14.1).
    pub least_initial: u32,
    /// Initial and Handshake packets share datagrams, of which the last packet has the padding (quinn-proto,
    /// `poll_transmit`).
    pub coalesces: bool,
    /// Bytes of the NEW_CONNECTION_ID frames that a client sends in a 1-RTT packet in the datagram of its Finished; 0
    /// for none.
    pub connection_ids: u32,
    /// What a server sends at the anti-amplification limit.
    pub amplification: AmplificationRule,
    /// ECN of its packets.
    pub ecn: EcnRule,
    /// Congestion control unless another is chosen.
    pub default_cc: &'static str,
    /// The parameters of NewReno.
    pub newreno: QuicNewRenoParams,
    /// When the congestion window allows a packet.
    pub send: SendRule,
    /// Losses that an ACK reveals are processed before the packets it acknowledges (RFC 9002
    /// appendix A.7); else the packets are counted first, with the round trip before the ACK (quinn-proto
    /// 0.11, `on_ack_received`).
    pub losses_first: bool,
    /// Loss detection.
    pub loss: QuicLossRule,
    /// Round-trip times.
    pub rtt: RttArithmetic,
    /// The probe timeout.
    pub pto: QuicPtoRule,
    /// ACK generation.
    pub acks: QuicAckRule,
    /// ACK frequency requested from the peer, where both support the extension.
    pub ack_frequency: Option<AckFrequency>,
    /// CUBIC of `cc = "cubic"`.
    pub cubic: QuicCubicRule,
    /// How the slow start before the first loss may end.
    pub slow_start: SlowStartRule,
    /// Is pacing on?
    pub pacing: bool,
    /// The pacing rate.
    pub pacing_gain: PacingGain,
    /// Bursts of the pacer.
    pub bursts: PacerBursts,
    /// Flow control windows for the peer.
    pub windows: Windows,
    /// To these they grow while the peer uses them fast; `None`: they do not grow.
    pub grown_windows: Option<Windows>,
    /// Their limits are raised once this part of a window has been read: 2 for a half. At least 1.
    pub raise_divisor: u64,
    /// Send buffer: bytes held until they are acknowledged.
    pub send_buffer: Bytes,
    /// Bytes of each write of the application, at whose end a STREAM frame ends; `None`: frames span writes.
    pub write_unit: Option<u64>,
}

/// What a server sends to a client whose address is not validated, at the limit of three times the bytes
/// received (RFC 9000 section 8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmplificationRule {
    /// Full datagrams only: it waits if one would exceed the limit.
    FullDatagrams,
    /// Up to the limit: the last packet is as small as the rest.
    Remainder,
    /// A full datagram as long as anything is left, which may exceed the limit (quinn-proto 0.11,
    /// `anti_amplification_blocked`).
    Exceeding,
}

/// When the congestion window allows a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendRule {
    /// While the packet fits (RFC 9002 section 7).
    Fits,
    /// While a full-sized packet would fit, whatever its size (INET).
    FullPackets,
    /// While any of the window is left: the last packet may exceed it.
    Overshoot,
    /// While the bytes in flight with a further full-sized packet stay strictly below the window
    /// (quinn-proto 0.11, `poll_transmit`).
    Below,
    /// While a byte of the stream fits: the last packet is as small as the rest of the window (quiche, `send_single`).
    Partial,
}

/// The CUBIC of an implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuicCubicRule {
    /// RFC 9438 ([`cc::cubic::RfcCubic`]).
    Rfc9438,
    /// quinn-proto 0.11.19, after RFC 8312.
    Quinn,
    /// RFC 9438 packet by packet, with a stack's choices.
    Packets(QuicCubicParams),
}

/// The pacing rate as percentages of a window in a smoothed round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacingGain {
    /// Below the slow-start threshold.
    pub slow_start: u64,
    /// Else.
    pub avoidance: u64,
    /// A shorter smoothed round trip is not paced.
    pub from_rtt: Duration,
}

impl PacingGain {
    /// RFC 9002 section 7.7.
    pub const RFC9002: Self = Self { slow_start: 125, avoidance: 125, from_rtt: Duration::ZERO };
}

/// How much the pacer sends at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacerBursts {
    /// An initial window after idle, else single packets (RFC 9002 section 7.7).
    InitialWindow,
    /// What the window sends in this time, within bounds in datagrams; a sender that has to wait waits until
    /// it may send all of it (quinn-proto 0.11.19, `connection/pacing.rs`).
    Interval {
        /// Time.
        time: Duration,
        /// Least datagrams.
        least: u64,
        /// Most datagrams.
        most: u64,
        /// Datagrams that are built together: the tokens of each are taken when the next has got its own, or with the
        /// end of the batch (`poll_transmit`); 1: at once.
        batch: u32,
    },
    /// What is in a bucket.
    Bucket(PacerBucket),
    /// What is in a bucket, which fills from the last packet sent on; the wait counts from there too (quic-go 0.65,
    /// `pacer.go`).
    SinceLastSent(PacerBucket),
}

/// A bucket of a pacer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacerBucket {
    /// Most that it holds.
    pub capacity: BucketCapacity,
    /// Least time that the sender waits.
    pub wait: Duration,
    /// A packet that is earned in less than `wait` is sent at once, in advance.
    pub in_advance: bool,
}

/// Most that a [`PacerBucket`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketCapacity {
    /// A congestion window.
    Window,
    /// A quarter of a congestion window, within bounds in datagrams.
    QuarterWindow {
        /// Least datagrams.
        least: u64,
        /// Most datagrams.
        most: u64,
    },
    /// What the pacing rate earns in this time, at least these datagrams.
    Datagrams {
        /// Least datagrams.
        least: u64,
        /// Time.
        time: Duration,
    },
}

/// Names of all profiles, in the order they are listed to users.
pub const NAMES: [&str; 12] = [
    "quic-rfc9002",
    "quic-inet-2025-02",
    "quic-inet-2025-03",
    "quinn-0.11",
    "quiche-0.29",
    "quiche-0.30",
    "quic-go-0.61",
    "quic-go-0.65",
    "neqo-0.30",
    "s2n-quic-1.88",
    "msquic-2.6",
    "picoquic-1.1",
];

impl QuicProfile {
    /// The profile of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "quic-rfc9002" => Some(RFC9002),
            "quic-inet-2025-02" => Some(INET_2025_02),
            "quic-inet-2025-03" => Some(INET_2025_03),
            "quinn-0.11" => Some(QUINN_0_11),
            "quiche-0.29" => Some(stacks::QUICHE),
            "quiche-0.30" => Some(stacks::QUICHE_0_30),
            "quic-go-0.61" => Some(stacks::QUIC_GO),
            "quic-go-0.65" => Some(stacks::QUIC_GO_0_65),
            "neqo-0.30" => Some(stacks::NEQO),
            "s2n-quic-1.88" => Some(stacks::S2N_QUIC),
            "msquic-2.6" => Some(stacks::MSQUIC),
            "picoquic-1.1" => Some(stacks::PICOQUIC),
            _ => None,
        }
    }
}

/// RFC 9000, 9001, 9002 with their recommended values.
pub const RFC9002: QuicProfile = QuicProfile {
    name: "quic-rfc9002",
    mtu: 1_500,
    mtu_discovery: None,
    // RFC 9001 section 5.3; connection ids are as long as in most implementations.
    overhead: Overhead {
        connection_id: 8,
        packet_number: None,
        least_number: 1,
        stream: StreamFrameFields::All,
        tag: 16,
    },
    handshake: Some(Flights::TYPICAL),
    least_initial: MIN_INITIAL,
    coalesces: false,
    connection_ids: 0,
    amplification: AmplificationRule::Remainder,
    ecn: EcnRule::None,
    default_cc: "newreno",
    newreno: QuicNewRenoParams::RFC9002,
    send: SendRule::Fits,
    losses_first: true,
    loss: QuicLossRule::RFC9002,
    rtt: RttArithmetic::Nanoseconds,
    pto: QuicPtoRule { initial_rtt: Duration::from_millis(333), probes: 2, max_timeouts: 10 },
    acks: QuicAckRule {
        every: 2,
        max_delay: Duration::from_millis(25),
        exponent: 3,
        reordering: 1,
        first_at_once: false,
        max_ranges: 32,
        bundle_all: false,
        elicits_after: None,
        marks_at_once: true,
    },
    ack_frequency: None,
    cubic: QuicCubicRule::Rfc9438,
    slow_start: SlowStartRule::Standard,
    pacing: true,
    pacing_gain: PacingGain::RFC9002,
    bursts: PacerBursts::InitialWindow,
    // Chromium's, as is the half of a window.
    windows: Windows { connection: 15 << 20, stream: 6 << 20 },
    grown_windows: None,
    raise_divisor: 2,
    send_buffer: Bytes(16 << 20),
    write_unit: None,
};

/// INET of 14 February 2025 (58f2b31929, "add QUIC src and examples").
pub const INET_2025_02: QuicProfile = QuicProfile {
    name: "quic-inet-2025-02",
    overhead: Overhead { packet_number: Some(4), tag: 0, ..RFC9002.overhead },
    handshake: None,
    amplification: AmplificationRule::FullDatagrams,
    newreno: QuicNewRenoParams::INET_2025_02,
    send: SendRule::FullPackets,
    pto: QuicPtoRule { probes: 1, ..RFC9002.pto },
    acks: QuicAckRule { first_at_once: true, max_ranges: 1_024, ..RFC9002.acks },
    pacing: false,
    // Quic.ned: initialMaxData, initialMaxStreamData*, sendQueueLimit.
    windows: Windows { connection: 15_000_000, stream: 6_000_000 },
    send_buffer: Bytes(64_000_000),
    ..RFC9002
};

/// INET of 13 March 2025 (6cf5aaa910): another NewReno, and a handshake.
pub const INET_2025_03: QuicProfile = QuicProfile {
    name: "quic-inet-2025-03",
    handshake: Some(Flights::TYPICAL),
    newreno: QuicNewRenoParams::INET_2025_03,
    ..INET_2025_02
};

/// quinn-proto 0.11.19 (crates.io) with the defaults of its `TransportConfig`.
///
/// Datagrams of 1,200 bytes grow by probes to 1,452 (`connection/mtud.rs`), and shrink again after a black hole.
pub const QUINN_0_11: QuicProfile = QuicProfile {
    name: "quinn-0.11",
    // With headers of IPv4 and UDP.
    mtu: 1_480,
    // `MtuDiscoveryConfig`, `INITIAL_MTU`.
    mtu_discovery: Some(MtuDiscoveryRule::AtOnce { first: 1_200, within: 20 }),
    // A filled packet's STREAM frame has no Length (`send_buffer.rs`, `poll_transmit`).
    overhead: Overhead { stream: StreamFrameFields::NoLength, ..RFC9002.overhead },
    // With rustls, and the Ed25519 certificate of our hosts.
    handshake: Some(Flights {
        client_hello: 260,
        server_hello: 90,
        server_rest: 560,
        client_finished: 36,
    }),
    coalesces: true,
    // `issue_first_cids`: four of them.
    connection_ids: 112,
    // `connection/mod.rs`, `process_ecn`.
    ecn: EcnRule::All,
    amplification: AmplificationRule::Exceeding,
    default_cc: "cubic",
    newreno: QuicNewRenoParams::QUINN_0_11,
    send: SendRule::Below,
    losses_first: false,
    cubic: QuicCubicRule::Quinn,
    bursts: PacerBursts::Interval {
        time: Duration::from_millis(2),
        least: 10,
        most: 256,
        batch: 10,
    },
    // `receive_window` is unlimited, `stream_receive_window` 1.25 MB, `send_window` eight of them.
    windows: Windows { connection: (1 << 62) - 1, stream: 1_250_000 },
    // `connection/streams`, `max_stream_data` and `poll_transmit`.
    raise_divisor: 8,
    send_buffer: Bytes(10_000_000),
    ..RFC9002
};

pub use crate::quic_cubic::{CubicRollback, QuicCubicParams};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_profile_exists_under_its_own_name() {
        for name in NAMES {
            assert_eq!(QuicProfile::named(name).map(|profile| profile.name), Some(name));
        }
        assert_eq!(QuicProfile::named("quic"), None);
    }
}
