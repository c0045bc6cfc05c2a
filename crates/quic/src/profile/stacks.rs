//! Senders of QUIC stacks in use, from the sources of their public repositories, looked at in November 2026: facts
//! only. Values without a comment are those of [`RFC9002`], which the sources have too.
//!
//! docs/quic.md lists which of them are compared with the stacks themselves, and what of each is not modelled.

use cc::quic_newreno::QuicNewRenoParams;
use units::Duration;

use super::{
    AmplificationRule, BucketCapacity, CubicRollback, PacerBucket, PacerBursts, PacingGain,
    QuicCubicParams, QuicCubicRule, QuicProfile, RFC9002, SendRule,
};
use crate::ack_policy::QuicAckRule;
use crate::ecn::EcnRule;
use crate::flow_control::Windows;
use crate::handshake::Flights;
use crate::loss::{LossAdaptation, QuicLossRule};
use crate::mtu::MtuDiscoveryRule;
use crate::pto::QuicPtoRule;
use crate::rtt::RttArithmetic;
use crate::sizes::{Overhead, StreamFrameFields};
use crate::slow_start::SlowStartRule;

const MILLISECOND: Duration = Duration::from_millis(1);

/// RFC 9438 with the time of the first packet acknowledged after a recovery.
const CUBIC: QuicCubicParams =
    QuicCubicParams { epoch_at_first_ack: true, ..QuicCubicParams::RFC9438 };

const QUICHE_CUBIC: QuicCubicParams = QuicCubicParams {
    ahead_by_min_rtt: true,
    rollback: Some(CubicRollback { percent: 20, least: 2 }),
    ..QuicCubicParams::RFC9438
};

/// cloudflare/quiche e97798e1 of 6 August 2026 (quiche 0.29), with the defaults of `Config`.
///
/// `quiche/src/lib.rs`: CUBIC, HyStart++ on, ten datagrams of 1,200 bytes at first (path MTU discovery is off).
/// `recovery/congestion/cubic.rs`: RFC 9438 from the recovery's begin, a minimum round trip ahead, and a reduction
/// undone after fewer losses than a fifth of the window. `recovery/congestion/recovery.rs`: no pacing with it
/// (`get_packet_send_time`), no persistent congestion (`detect_lost_packets`). An ACK is due with each ack-eliciting packet
/// (`ack_elicited`). Flow control windows are the application's: those of [`RFC9002`] here.
pub const QUICHE: QuicProfile = QuicProfile {
    name: "quiche-0.29",
    // With headers of IPv4 and UDP.
    mtu: 1_228,
    default_cc: "cubic",
    cubic: QuicCubicRule::Packets(QUICHE_CUBIC),
    slow_start: SlowStartRule::HyStartPlusPlus,
    pacing: false,
    loss: QuicLossRule { persistent: u64::MAX, ..QuicLossRule::RFC9002 },
    acks: QuicAckRule { every: 1, max_ranges: 68, ..RFC9002.acks },
    ..RFC9002
};

/// quiche 0.30.0 (crates.io), compared with the stack itself (docs/ledger/quic-stacks-quiche-0.30.md).
///
/// Beside what is said of [`QUICHE`]: the last packet is as small as the rest of the window (`lib.rs`, `send_single`); slow
/// start counts bytes and grows by datagrams, an acknowledged packet that had been declared lost undoes the last
/// reduction (`recovery/congestion/cubic.rs`, `recovery.rs`); proportional rate reduction (`prr.rs`); thresholds of loss
/// that follow reordering; a PING with the ACK after 24 packets that only acknowledge. Connection IDs of 16 bytes and windows of flow control are those of its own client and server
/// (`apps/src/args.rs`), which grow (`flowcontrol.rs`).
pub const QUICHE_0_30: QuicProfile = QuicProfile {
    name: "quiche-0.30",
    send: SendRule::Partial,
    cubic: QuicCubicRule::Packets(QuicCubicParams {
        grows_by_datagrams: true,
        rate_reduction: true,
        undoes_spurious: true,
        ..QUICHE_CUBIC
    }),
    loss: QuicLossRule { adaptation: LossAdaptation::Raises, ..QUICHE.loss },
    // `recovery/mod.rs`, `MAX_OUTSTANDING_NON_ACK_ELICITING`.
    acks: QuicAckRule { elicits_after: Some(24), ..QUICHE.acks },
    overhead: Overhead { connection_id: 16, ..RFC9002.overhead },
    windows: Windows { connection: 10_000_000, stream: 1_000_000 },
    grown_windows: Some(Windows { connection: 25_165_824, stream: 16_777_216 }),
    ..QUICHE
};

/// quic-go/quic-go v0.61.0 (2cfe6ee0b of 3 August 2026).
///
/// `internal/ackhandler/sent_packet_handler.go`: Reno, not CUBIC; thresholds of RFC 9002, no persistent
/// congestion. `internal/congestion`: `cubic_sender.go` (32 datagrams at first, beta 0.7, a packet may exceed
/// the window), `hybrid_slow_start.go` (4 to 16 ms, against the least round trip), `pacer.go` (5/4 of a window in a
/// round trip; a bucket of 2 ms or ten datagrams, waits of at least 1 ms). `internal/utils/rtt_stats.go`: 100 ms
/// before the first sample. `internal/protocol/params.go`: 64 ACK ranges; flow control windows grow to 6 and
/// 15 MiB, which they have from the start here.
pub const QUIC_GO: QuicProfile = QuicProfile {
    name: "quic-go-0.61",
    mtu: 1_480,
    default_cc: "newreno",
    newreno: QuicNewRenoParams::QUIC_GO_0_61,
    send: SendRule::Overshoot,
    loss: QuicLossRule { persistent: u64::MAX, ..QuicLossRule::RFC9002 },
    // `rtt_stats.go`.
    rtt: RttArithmetic::Microseconds,
    pto: QuicPtoRule { initial_rtt: Duration::from_millis(100), ..RFC9002.pto },
    slow_start: SlowStartRule::Hybrid { with_last_round: false, before_growth: false },
    bursts: PacerBursts::Bucket(PacerBucket {
        capacity: BucketCapacity::Datagrams { least: 10, time: Duration::from_millis(2) },
        wait: MILLISECOND,
        in_advance: false,
    }),
    acks: QuicAckRule { max_ranges: 64, ..RFC9002.acks },
    ..RFC9002
};

/// quic-go/quic-go v0.65.0, compared with the stack itself (docs/ledger/quic-stacks.md).
///
/// Since v0.61: two windows in a round trip in slow start (`cubic_sender.go`, `pacingRate`); packets are counted and a
/// window that is not used does not grow (`maybeIncreaseCwnd`); spurious losses undo a reduction (`OnSpuriousLoss`),
/// disable the packet threshold and raise the time threshold (`sent_packet_handler.go`, `detectSpuriousLosses`); the
/// pacer waits from the last packet sent (`pacer.go`, `TimeUntilSend`); slow start ends before an ACK's packets are
/// counted (`MaybeExitSlowStart`); limits are raised with a quarter of the window (`params.go`,
/// `WindowUpdateThreshold`); datagrams of 1,280 bytes grow by probes (`mtu_discoverer.go`), flow control windows
/// with their use (`flow_controller_base.go`).
pub const QUIC_GO_0_65: QuicProfile = QuicProfile {
    name: "quic-go-0.65",
    // The bytes of its handshake with Go's TLS: a hybrid key share (X25519MLKEM768), the Ed25519 certificate of our
    // hosts. The NEW_CONNECTION_ID frames of the server are in its flight (packet_packer.go, `initialPaddingLen`).
    handshake: Some(Flights {
        client_hello: 1_513,
        server_hello: 1_178,
        server_rest: 570,
        client_finished: 36,
    }),
    connection_ids: 72,
    least_initial: 1_280,
    // `isAmplificationLimited`.
    amplification: AmplificationRule::Exceeding,
    // `ecn.go`.
    ecn: EcnRule::Tested,
    // `mtu_discoverer.go`, `params.go`.
    mtu_discovery: Some(MtuDiscoveryRule::Timed { first: 1_280, within: 20, round_trips: 5 }),
    newreno: QuicNewRenoParams::QUIC_GO_0_65,
    loss: QuicLossRule { adaptation: LossAdaptation::Disables, ..QUIC_GO.loss },
    slow_start: SlowStartRule::Hybrid { with_last_round: false, before_growth: true },
    pacing_gain: PacingGain { slow_start: 200, ..PacingGain::RFC9002 },
    bursts: PacerBursts::SinceLastSent(PacerBucket {
        capacity: BucketCapacity::Datagrams { least: 10, time: Duration::from_millis(2) },
        wait: MILLISECOND,
        in_advance: false,
    }),
    // `DefaultInitialMaxStreamData`, `DefaultInitialMaxData`.
    windows: Windows { connection: 768 << 10, stream: 512 << 10 },
    grown_windows: Some(QUIC_GO.windows),
    // `MaxNonAckElicitingAcks`.
    acks: QuicAckRule { elicits_after: Some(19), ..QUIC_GO.acks },
    raise_divisor: 4,
    // `io.Copy` writes 32 KiB at once; a frame has bytes of one `Write` (`send_stream.go`, `popNewStreamFrame`).
    write_unit: Some(32 << 10),
    // A server's connection IDs; `PacketNumberLengthForHeader`, `AppendStreamFrames`.
    overhead: Overhead {
        connection_id: 4,
        least_number: 2,
        stream: StreamFrameFields::NoLength,
        ..RFC9002.overhead
    },
    ..QUIC_GO
};

/// mozilla/neqo 80ca01eea of 21 August 2026 (after v0.30.1).
///
/// `neqo-transport/src/connection/params.rs`: CUBIC, classic slow start, pacing; windows of 10 MiB a stream and
/// 20 MiB, to which they grow. `cc/cubic.rs`: RFC 9438, a minimum round trip ahead. `pace.rs`, `sender.rs`: two
/// windows in a round trip, a bucket of two packets, no wait below 1 ms. `rtt.rs`: 100 ms before the first sample.
/// `tracking.rs`: an ACK for every second packet, or after 20 ms. `recovery/mod.rs`: acknowledged packets are
/// counted before losses.
pub const NEQO: QuicProfile = QuicProfile {
    name: "neqo-0.30",
    default_cc: "cubic",
    losses_first: false,
    cubic: QuicCubicRule::Packets(QuicCubicParams { ahead_by_min_rtt: true, ..CUBIC }),
    pto: QuicPtoRule { initial_rtt: Duration::from_millis(100), ..RFC9002.pto },
    pacing_gain: PacingGain { slow_start: 200, avoidance: 200, ..PacingGain::RFC9002 },
    bursts: PacerBursts::Bucket(PacerBucket {
        capacity: BucketCapacity::Datagrams { least: 2, time: Duration::ZERO },
        wait: MILLISECOND,
        in_advance: true,
    }),
    acks: QuicAckRule { max_delay: Duration::from_millis(20), ..RFC9002.acks },
    windows: Windows { connection: 20 << 20, stream: 10 << 20 },
    ..RFC9002
};

/// aws/s2n-quic v1.88.0 (a33d369b9 of 21 August 2026).
///
/// `quic/s2n-quic-core/src/recovery`: `cubic.rs` (CUBIC of RFC 8312, a minimum round trip ahead, with the Reno window of RFC 9438 here; a
/// packet is sent while a full one fits), `hybrid_slow_start.rs` (4 to 16 ms, against the round before),
/// `pacing.rs` (bursts of ten datagrams; two windows in a round trip in slow start, else 5/4; from 2 ms on).
/// `ack/settings.rs`: an ACK for every fourth packet, ten ranges. `transport/parameters/mod.rs`: windows of
/// 150 Mbit/s in 200 ms.
pub const S2N_QUIC: QuicProfile = QuicProfile {
    name: "s2n-quic-1.88",
    default_cc: "cubic",
    send: SendRule::FullPackets,
    cubic: QuicCubicRule::Packets(QuicCubicParams { ahead_by_min_rtt: true, ..CUBIC }),
    slow_start: SlowStartRule::Hybrid { with_last_round: true, before_growth: false },
    pacing_gain: PacingGain { slow_start: 200, avoidance: 125, from_rtt: Duration::from_millis(2) },
    bursts: PacerBursts::Interval { time: Duration::ZERO, least: 10, most: 10, batch: 1 },
    acks: QuicAckRule { every: 4, max_ranges: 10, ..RFC9002.acks },
    windows: Windows { connection: 3_750_000, stream: 3_750_000 },
    // `stream/receive_stream.rs`, `stream/incoming_connection_flow_controller.rs`.
    raise_divisor: 10,
    ..RFC9002
};

/// microsoft/msquic 4984c210f of 21 August 2026 (after v2.6.0).
///
/// `src/core/quicdef.h`: ten datagrams at first without a limit in bytes, persistent congestion after two probe
/// timeouts, HyStart++ off, pacing from 1 ms on in intervals of 1 ms, an ACK for every second packet or after
/// 25 ms, 16 MiB of the connection, to which the window of a stream grows. `src/core/cubic.c`: CUBIC; a packet may
/// exceed the window; in slow start two windows are paced in a round trip, else 5/4.
pub const MSQUIC: QuicProfile = QuicProfile {
    name: "msquic-2.6",
    amplification: AmplificationRule::Remainder,
    default_cc: "cubic",
    newreno: QuicNewRenoParams { initial_limit: u64::MAX, ..QuicNewRenoParams::RFC9002 },
    send: SendRule::Overshoot,
    loss: QuicLossRule { persistent: 2, ..QuicLossRule::RFC9002 },
    cubic: QuicCubicRule::Packets(CUBIC),
    pacing_gain: PacingGain { slow_start: 200, avoidance: 125, from_rtt: MILLISECOND },
    bursts: PacerBursts::Bucket(PacerBucket {
        capacity: BucketCapacity::Window,
        wait: MILLISECOND,
        in_advance: false,
    }),
    windows: Windows { connection: 16 << 20, stream: 16 << 20 },
    // `QUIC_RECV_BUFFER_DRAIN_RATIO`.
    raise_divisor: 4,
    ..RFC9002
};

/// private-octopus/picoquic d199d45be of 16 August 2026 (1.1.52).
///
/// `picoquic/picoquic.h`: NewReno is the library's default. `picoquic_internal.h`: ten packets of 1,536 bytes at
/// first and datagrams of at most 1,440 bytes, 250 ms before the first sample, a flow control window of 1 MiB and
/// 2 MiB a stream, which grow. `newreno.c`: beta 1/2, acknowledged bytes count also in recovery, with their
/// remainder. `cc_common.c`: slow start ends once the least of seven samples, a millisecond apart, is a quarter above the lowest
/// largest one, seven times in a row. `pacing.c`: a window in a round trip, 5/4 of it in slow start, from a bucket of
/// a quarter of a window, two to 16 datagrams. `loss_recovery.c`: three packets. `quicctx.c`, `frames.c`: an ACK for every second
/// packet at first, and at most 10 ms later.
pub const PICOQUIC: QuicProfile = QuicProfile {
    name: "picoquic-1.1",
    // With headers of IPv4 and UDP.
    mtu: 1_468,
    newreno: QuicNewRenoParams::PICOQUIC_1_1,
    pto: QuicPtoRule { initial_rtt: Duration::from_millis(250), ..RFC9002.pto },
    slow_start: SlowStartRule::MinMaxFilter,
    pacing_gain: PacingGain { slow_start: 125, avoidance: 100, from_rtt: Duration::ZERO },
    bursts: PacerBursts::Bucket(PacerBucket {
        capacity: BucketCapacity::QuarterWindow { least: 2, most: 16 },
        wait: Duration::ZERO,
        in_advance: false,
    }),
    acks: QuicAckRule { max_delay: Duration::from_millis(10), ..RFC9002.acks },
    // The windows grow with the reader: from the start those of [`RFC9002`].
    ..RFC9002
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::max_datagram;

    const ALL: [QuicProfile; 8] =
        [QUICHE, QUICHE_0_30, QUIC_GO, QUIC_GO_0_65, NEQO, S2N_QUIC, MSQUIC, PICOQUIC];

    /// Initial windows in bytes by the sources, for the datagrams of the profiles.
    #[test]
    fn initial_windows_of_the_sources() {
        let window = |profile: &QuicProfile| {
            profile.newreno.initial_window(max_datagram(profile.mtu, packet::IpVersion::V4))
        };
        let expected = [12_000, 12_000, 40_960, 40_960, 14_720, 14_720, 14_720, 10 * 1_536];
        assert_eq!(ALL.each_ref().map(window), expected);
    }
}
