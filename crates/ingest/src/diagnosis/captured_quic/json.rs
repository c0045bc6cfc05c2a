//! QUIC connections of captures, as JSON.

use diagnose::quic::captured::{
    CapturedQuicDirection, ONE_RTT, RoundTripSamples, SpinVerdict, kind_index,
};
use packet::Dir;
use packet::quic::{LongPacketType, QuicVersion};
use serde::Serialize;

use super::super::json::FindingJson;
use super::{FileReport, findings};
use crate::inputs::CapturedQuicConnection;

/// A connection.
#[derive(Serialize)]
pub(crate) struct CapturedQuicJson {
    id: u32,
    client: String,
    server: String,
    opening_captured: bool,
    interval_s: [f64; 2],
    frames: [u64; 2],
    /// Of the client's and the server's long headers, in order.
    client_versions: Vec<String>,
    server_versions: Vec<String>,
    /// In a Version Negotiation.
    offered_versions: Vec<String>,
    client_connection_ids: Vec<String>,
    server_connection_ids: Vec<String>,
    connection_id_changes: u64,
    client_hello: Option<ClientHelloJson>,
    migrations: Vec<MigrationJson>,
    handshake: HandshakeJson,
    from_client: DirectionJson,
    from_server: DirectionJson,
    rates: RatesJson,
    silences: SilencesJson,
    spin_bit: SpinJson,
    findings: Vec<FindingJson>,
}

#[derive(Serialize)]
struct ClientHelloJson {
    server_name: Option<String>,
    /// In the client's order.
    alpn: Vec<String>,
    encrypted_client_hello: bool,
}

#[derive(Serialize)]
struct MigrationJson {
    at_s: f64,
    frame: u64,
    client: String,
    server: String,
}

#[derive(Serialize)]
struct HandshakeJson {
    duration_s: Option<f64>,
    until_client_data_s: Option<f64>,
    round_trips: u64,
    server_round_trip_s: Option<f64>,
    client_round_trip_s: Option<f64>,
    retries: u64,
    version_negotiations: u64,
    unanswered_s: f64,
    zero_rtt: bool,
    amplification_limited: bool,
}

#[derive(Serialize)]
struct DirectionJson {
    datagrams: u64,
    bytes: u64,
    initial_packets: u64,
    zero_rtt_packets: u64,
    handshake_packets: u64,
    one_rtt_packets: u64,
    largest_datagram_bytes: u32,
    frequent_datagram_bytes: Option<u32>,
    /// Increases of the largest size.
    datagram_sizes_bytes: Vec<u32>,
    busiest_ms_datagrams: u64,
    busiest_ms_bytes: u64,
    ect0: u64,
    ect1: u64,
    ce: u64,
}

#[derive(Serialize)]
struct RatesJson {
    interval_s: f64,
    client_bps: Vec<f64>,
    server_bps: Vec<f64>,
}

#[derive(Serialize)]
struct SilencesJson {
    threshold_s: f64,
    count: u64,
    sum_s: f64,
    longest_s: f64,
    frames: Option<[u64; 2]>,
}

#[derive(Serialize)]
struct SpinJson {
    verdict: &'static str,
    packets: u64,
    edges: u64,
    in_turn: u64,
    /// Smallest, median and largest; null without samples or if the bit does not spin.
    rtt_s: Option<[f64; 3]>,
    server_rtt_s: Option<[f64; 3]>,
    client_rtt_s: Option<[f64; 3]>,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl CapturedQuicJson {
    pub(crate) fn of(one: &CapturedQuicConnection, report: &FileReport) -> Self {
        let analysis = &one.analysis;
        let names = |versions: &mut dyn Iterator<Item = QuicVersion>| {
            versions.map(|version| version.to_string()).collect()
        };
        let versions = |dir: Dir| {
            let of_dir = one.versions.iter().filter(|(other, _)| *other == dir);
            names(&mut of_dir.map(|(_, version)| *version))
        };
        let ids = |dir: Dir| one.ids[dir as usize].iter().map(ToString::to_string).collect();
        let known = &analysis.handshake;
        let interval = seconds(analysis.rates.interval);
        let rates = |dir: usize| {
            analysis.rates.bytes.iter().map(|bytes| bytes[dir] as f64 * 8.0 / interval).collect()
        };
        let silences = &analysis.silences;
        let spin = &analysis.spin;
        let spins = spin.verdict == SpinVerdict::Spins;
        let samples = |samples: &RoundTripSamples| {
            samples.summary().filter(|_| spins).map(|three| three.map(seconds))
        };
        Self {
            id: one.number,
            client: one.ends.src.to_string(),
            server: one.ends.dst.to_string(),
            opening_captured: one.has_opening,
            interval_s: [analysis.interval.0, analysis.interval.1].map(|at| report.seconds(at)),
            frames: [analysis.frames.0, analysis.frames.1],
            client_versions: versions(Dir::Forward),
            server_versions: versions(Dir::Reverse),
            offered_versions: names(&mut one.offered.iter().copied()),
            client_connection_ids: ids(Dir::Forward),
            server_connection_ids: ids(Dir::Reverse),
            connection_id_changes: one.id_changes[0] + one.id_changes[1],
            client_hello: one.client_hello.as_ref().map(|hello| ClientHelloJson {
                server_name: hello.server_name.clone(),
                alpn: hello.protocols.clone(),
                encrypted_client_hello: hello.has_encrypted_hello,
            }),
            migrations: one
                .migrations
                .iter()
                .map(|moved| MigrationJson {
                    at_s: report.seconds(moved.at),
                    frame: moved.frame,
                    client: moved.ends.src.to_string(),
                    server: moved.ends.dst.to_string(),
                })
                .collect(),
            handshake: HandshakeJson {
                duration_s: known.duration().map(seconds),
                until_client_data_s: known.until_client_data().map(seconds),
                round_trips: known.round_trips(),
                server_round_trip_s: known.round_trip.map(|rtt| seconds(rtt.server_side)),
                client_round_trip_s: known.round_trip.map(|rtt| seconds(rtt.client_side)),
                retries: known.retries.0,
                version_negotiations: known.negotiations.0,
                unanswered_s: seconds(known.waited()),
                zero_rtt: known.zero_rtt.is_some(),
                amplification_limited: known.first_flight.is_limited(),
            },
            from_client: DirectionJson::of(&analysis.directions[0]),
            from_server: DirectionJson::of(&analysis.directions[1]),
            rates: RatesJson { interval_s: interval, client_bps: rates(0), server_bps: rates(1) },
            silences: SilencesJson {
                threshold_s: seconds(silences.threshold),
                count: silences.count,
                sum_s: seconds(silences.ns),
                longest_s: seconds(silences.longest),
                frames: (silences.count > 0).then_some([silences.frames.0, silences.frames.1]),
            },
            spin_bit: SpinJson {
                verdict: match spin.verdict {
                    SpinVerdict::NoPackets => "no_packets",
                    SpinVerdict::Constant => "constant",
                    SpinVerdict::TooFew => "too_few_changes",
                    SpinVerdict::Random => "random",
                    SpinVerdict::Spins => "spins",
                },
                packets: spin.packets,
                edges: spin.edges,
                in_turn: spin.in_turn,
                rtt_s: samples(&spin.whole),
                server_rtt_s: samples(&spin.server_side),
                client_rtt_s: samples(&spin.client_side),
            },
            findings: findings(one, report).into_iter().map(FindingJson::of_event).collect(),
        }
    }
}

impl DirectionJson {
    fn of(direction: &CapturedQuicDirection) -> Self {
        let packets = |kind: LongPacketType| direction.packets[kind_index(kind)];
        let [_, ect1, ect0, ce] = direction.ecn;
        Self {
            datagrams: direction.datagrams,
            bytes: direction.bytes,
            initial_packets: packets(LongPacketType::Initial),
            zero_rtt_packets: packets(LongPacketType::ZeroRtt),
            handshake_packets: packets(LongPacketType::Handshake),
            one_rtt_packets: direction.packets[ONE_RTT],
            largest_datagram_bytes: direction.sizes.largest,
            frequent_datagram_bytes: direction.sizes.most_frequent().map(|(bytes, _)| bytes),
            datagram_sizes_bytes: direction.sizes.steps.iter().map(|step| step.bytes).collect(),
            busiest_ms_datagrams: direction.busiest.datagrams,
            busiest_ms_bytes: direction.busiest.bytes,
            ect0,
            ect1,
            ce,
        }
    }
}
