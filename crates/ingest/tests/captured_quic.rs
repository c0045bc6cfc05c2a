//! Encrypted packets of quinn-proto (`crates/quinn-check/tests/quinn/encrypted.rs` wrote the capture),
//! read without keys. Counts are those of tshark 4, times those of the path: 20 ms each way and 10 Mbit/s from the
//! server, captured at the client.

use std::path::Path;

use ackclock_ingest as ingest;
use diagnose::quic::captured::{ONE_RTT, SpinVerdict, kind_index};
use ingest::diagnosis::{DiagnosisReport, TextStyle};
use ingest::inputs::{InputFile, read};
use packet::quic::LongPacketType;
use scenario::ReportStyle;

const CAPTURE: &str = "../../golden/quic/quinn-rebinding.pcapng";

fn capture() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(CAPTURE)).unwrap()
}

fn source(bytes: &[u8]) -> Vec<InputFile<'_>> {
    vec![InputFile { name: "quinn.pcapng".to_owned(), bytes: Box::new(bytes) }]
}

#[test]
fn a_connection_of_quinn() {
    let bytes = capture();
    let reading = read(source(&bytes), diagnose::AnalysisSettings::default()).unwrap();
    let [one] = &reading.captured_quic[..] else { panic!("one connection") };
    let analysis = &one.analysis;
    let [client, server] = &analysis.directions;
    assert_eq!((client.datagrams, client.bytes), (83, 15_193));
    assert_eq!((server.datagrams, server.bytes), (142, 192_505));
    for (direction, initial, one_rtt) in [(client, 2, 82), (server, 1, 142)] {
        assert_eq!(direction.packets[kind_index(LongPacketType::Initial)], initial);
        assert_eq!(direction.packets[kind_index(LongPacketType::Handshake)], 1);
        assert_eq!(direction.packets[ONE_RTT], one_rtt);
    }
    // The NAT's other port.
    let [moved] = &one.migrations[..] else { panic!("one migration") };
    assert_eq!((moved.ends.src.port(), moved.frame), (50_123, 157));
    // 40 ms, and 0.98 ms for the server's datagram of 1,200 bytes and 28 of headers.
    assert_eq!(analysis.handshake.duration(), Some(40_982_400));
    assert_eq!(analysis.spin.verdict, SpinVerdict::Spins);
    let [least, median, _] = analysis.spin.whole.summary().unwrap();
    assert!((40_000_000..41_000_000).contains(&least), "{least}");
    assert!((40_000_000..60_000_000).contains(&median), "{median}");
    // quinn raises its datagrams from 1,200 bytes by path MTU discovery (RFC 8899).
    assert_eq!(server.sizes.steps.first().map(|step| step.bytes), Some(1_200));
    assert_eq!(server.sizes.largest, 1_452);
    // The client connects to "server" and offers no protocol.
    let hello = one.client_hello.as_ref().unwrap();
    assert_eq!(hello.server_name.as_deref(), Some("server"));
    assert!(hello.protocols.is_empty() && !hello.has_encrypted_hello);
    // Between the answers the client waits half a second.
    assert_eq!(analysis.silences.count, 2);
    // 10 Mbit/s of IP packets with 28 bytes of headers.
    let largest = analysis.rates.largest(1).unwrap() * 8.0;
    assert!((9e6..1.1e7).contains(&largest), "{largest}");
}

#[test]
fn the_text_says_what_is_hidden() {
    let bytes = capture();
    let report = DiagnosisReport::read(source(&bytes), false).unwrap();
    let text = report.text(TextStyle { limit: 1, look: ReportStyle::Plain });
    for part in [
        "0 connections of TCP, 1 of QUIC",
        "QUIC v1",
        "spin bit   spins: round trip 40.",
        "migration  to 192.0.2.1:50123 > 192.0.2.2:443",
        "hello      server name server; ALPN none",
        "note[CC831]: neither host sent anything",
        "A capture without keys shows",
        "QLOGDIR",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let markdown = report.markdown(9);
    assert!(markdown.contains("quic 0  192.0.2.1:50000"), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&report.json(9)).unwrap();
    assert_eq!(json["captured_quic"][0]["spin_bit"]["verdict"], "spins");
}

#[test]
fn a_capture_may_end_anywhere() {
    let bytes = capture();
    for len in (0..bytes.len()).step_by(997) {
        if let Ok(report) = DiagnosisReport::read(source(&bytes[..len]), false) {
            let _ = report.json(9);
        }
    }
}
