//! The qlog of a simulated QUIC host beside a capture of the same run. The model has no packet bytes, so the
//! test writes the capture: each packet of the log as a datagram of its length and type.

use ackclock_ingest as ingest;
use export::kernel_log::LoggedEndpoint;
use export::qlog::Qlog;
use ingest::diagnosis::{DiagnosisReport, TextStyle};
use ingest::inputs::InputFile;
use logs::qlog::{QlogData, QlogFormat, QlogItem, QlogPacket, QlogReader};
use scenario::{Overrides, ReportStyle, load};

const SCENARIO: &str = r#"
title = "an upload"
seed = 5
duration = "30s"

[host.client]
profile = "quic-rfc9002"

[host.server]
profile = "quic-rfc9002"

[[path]]
from = "client"
to = "server"
forward = [{ loss = "1%" }, { link = { rate = "10Mbit/s", buffer = "60kB" } }, { delay = "20ms" }]
return = [{ delay = "20ms" }]

[[flow]]
name = "upload"
from = "client"
to = "server"
bulk = "1MB"
"#;

fn log() -> Vec<u8> {
    let loaded = load(SCENARIO, "run", &Overrides::default());
    let mut scenario = loaded.unwrap_or_else(|errors| panic!("{errors:?}")).scenario;
    let side = LoggedEndpoint::sender(&mut scenario, 0).unwrap();
    let mut log = Qlog::new(&scenario, side, "", QlogFormat::Current, Vec::new()).unwrap();
    sim::run(&scenario, &mut log).unwrap_or_else(|error| panic!("{error:?}"));
    log.finish().unwrap()
}

/// A datagram of the client (`true`) or the server at a time in ns.
type Datagram = (u64, bool, Vec<u8>);

const IDS: [&[u8; 8]; 2] = [b"client-1", b"server-1"];

fn datagram(at: u64, from_client: bool, packet: &QlogPacket) -> Datagram {
    let to = IDS[usize::from(from_client)];
    let from = IDS[usize::from(!from_client)];
    let len = packet.length.unwrap_or(0) as usize;
    let long = match packet.header.packet_type.to_lowercase().as_str() {
        "initial" => Some(0xc0),
        "handshake" => Some(0xe0),
        _ => None,
    };
    let mut bytes = Vec::new();
    if let Some(first) = long {
        bytes.extend([first, 0, 0, 0, 1, 8]);
        bytes.extend(to);
        bytes.push(8);
        bytes.extend(from);
        if first == 0xc0 {
            bytes.push(0);
        }
        let rest = len.max(if first == 0xc0 { 1_200 } else { 60 }) - bytes.len() - 2;
        bytes.extend((0x4000 | rest as u16).to_be_bytes());
        bytes.resize(bytes.len() + rest, 0);
    } else {
        bytes.push(0x40);
        bytes.extend(to);
        bytes.resize(len.max(bytes.len()), 0);
    }
    (at, from_client, bytes)
}

/// A pcap of raw IPv4 packets with a resolution of nanoseconds, `snap` bytes of each.
fn pcap(datagrams: &[Datagram], snap: usize) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(0xa1b2_3c4d_u32.to_le_bytes());
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(65_535_u32.to_le_bytes());
    out.extend(101_u32.to_le_bytes());
    for (at, from_client, payload) in datagrams {
        let (udp, ip) = (payload.len() as u16 + 8, payload.len() as u16 + 28);
        let mut packet = vec![0x45, 0];
        packet.extend(ip.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        let ends: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
        let ports: [u16; 2] = [50_000, 443];
        let from = usize::from(!from_client);
        packet.extend(ends[from]);
        packet.extend(ends[1 - from]);
        packet.extend(ports[from].to_be_bytes());
        packet.extend(ports[1 - from].to_be_bytes());
        packet.extend(udp.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        out.extend(((at / 1_000_000_000) as u32).to_le_bytes());
        out.extend(((at % 1_000_000_000) as u32).to_le_bytes());
        let captured = &packet[..packet.len().min(snap)];
        out.extend((captured.len() as u32).to_le_bytes());
        out.extend((packet.len() as u32).to_le_bytes());
        out.extend(captured);
    }
    out
}

/// What the capture lacks and what the log lacks.
#[derive(Default)]
struct Differences {
    sent: u64,
    kept_back: u64,
    dropped: u64,
}

/// The capture at the host of a log: its clock is an hour ahead; one packet in `every` does not leave, as many
/// received ones are dropped behind the capture point, and every fifth one sent waits 300 us.
fn captured(log: &[u8], every: u64) -> (Vec<Datagram>, Differences) {
    let (mut datagrams, mut out, mut received) = (Vec::new(), Differences::default(), 0_u64);
    for item in QlogReader::new(log) {
        let QlogItem::Event(event) = item.unwrap() else { continue };
        let at = event.at.as_nanos() + 3_600_000_000_000;
        match &event.data {
            QlogData::PacketSent(packet) => {
                let is_short = packet.header.packet_type.eq_ignore_ascii_case("1RTT");
                out.sent += u64::from(is_short);
                if is_short && out.sent % every == every / 2 {
                    out.kept_back += 1;
                    continue;
                }
                let late = if out.sent.is_multiple_of(5) { 300_000 } else { 20_000 };
                datagrams.push(datagram(at + late, true, packet));
            }
            QlogData::PacketReceived(packet) => {
                let is_short = packet.header.packet_type.eq_ignore_ascii_case("1RTT");
                received += u64::from(is_short);
                datagrams.push(datagram(at - 40_000, false, packet));
                if is_short && received % every == every / 2 {
                    out.dropped += 1;
                    datagrams.push(datagram(at - 30_000, false, packet));
                }
            }
            _ => {}
        }
    }
    datagrams.sort_by_key(|one| one.0);
    (datagrams, out)
}

#[test]
fn packets_that_did_not_leave_and_packets_dropped_in_the_host_are_counted() {
    let log = log();
    let (datagrams, Differences { sent, kept_back, dropped }) = captured(&log, 90);
    let capture = pcap(&datagrams, 65_535);
    let source = |name: &str, bytes| InputFile { name: name.to_owned(), bytes };
    let files = vec![
        source("client.sqlog", Box::new(&log[..])),
        source("client.pcap", Box::new(&capture[..])),
    ];
    let report = DiagnosisReport::read(files, false).unwrap();
    let text = report.text(TextStyle { limit: 1, look: ReportStyle::Plain });
    let json: serde_json::Value = serde_json::from_str(&report.json(9)).unwrap();
    let beside = &json[0]["quic_beside"][0];
    assert_eq!(beside, &json[1]["quic_beside"][0], "{text}");
    let [out, back] = [&beside["sent"], &beside["received"]];
    assert_eq!(out["logged"], sent, "{text}");
    assert_eq!(
        (&out["not_captured"], &out["not_logged"]),
        (&kept_back.into(), &0.into()),
        "{text}"
    );
    assert_eq!(
        (&back["not_captured"], &back["not_logged"]),
        (&0.into(), &dropped.into()),
        "{text}"
    );
    assert!(kept_back > 3 && dropped > 2);
    // 300 us less 20; delays of packets that may be others are left out.
    let most = out["delays_s"][2].as_f64().unwrap();
    assert!((most - 0.000_28).abs() < 0.000_01, "{text}");
    // The path loses behind the capture point.
    assert!(beside["lost_after_capture"].as_u64().unwrap() > 3, "{text}");
    assert!(
        text.contains("connection 0 of client.sqlog is quic 0 of client.pcap, the only one"),
        "{text}"
    );
}

/// The sample of docs/quic.md, from that of both ends.
#[test]
#[ignore = "writes docs/samples/both-ends.client.pcap"]
fn sample_beside_a_log() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/samples");
    let log = std::fs::read(folder.join("both-ends.client.sqlog")).unwrap();
    let (datagrams, _) = captured(&log, 20);
    std::fs::write(folder.join("both-ends.client.pcap"), pcap(&datagrams, 64)).unwrap();
}
