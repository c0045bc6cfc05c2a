//! A log without frames, as quinn-proto 0.11 writes it: what was acknowledged follows from the packets in flight.
//! Sent are five packets 1 ms apart from 41 ms on, of which number 2 is lost, over a round trip of 40 ms.

use ackclock_ingest as ingest;
use diagnose::AnalysisSettings;
use ingest::inputs::{self, InputFile, QuicConnection, ReadMode};

const HEADER: &str = r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":"quinn","trace":{"vantage_point":{"type":"unknown"},"title":"quinn"}}"#;

fn sent(at: f64, kind: &str, number: u64, in_flight: u64) -> String {
    event(at, "transport:packet_sent", kind, number, 1_200) + &metrics(at, "", in_flight)
}

fn event(at: f64, name: &str, kind: &str, number: u64, length: u64) -> String {
    let header =
        format!(r#"{{"packet_type":"{kind}","packet_number":{number},"length":{length}}}"#);
    format!(
        "\x1e{{\"time\":{at},\"name\":\"{name}\",\"data\":{{\"header\":{header}}},\"group_id\":\"01\"}}\n"
    )
}

/// Metrics with further fields.
fn metrics(at: f64, more: &str, in_flight: u64) -> String {
    let bytes = in_flight * 1_200;
    format!(
        "\x1e{{\"time\":{at},\"name\":\"recovery:metrics_updated\",\"data\":{{{more}\"bytes_in_flight\":{bytes},\
         \"packets_in_flight\":{in_flight}}},\"group_id\":\"01\"}}\n"
    )
}

/// An ACK whose largest packet was sent `seconds` before.
fn acked(at: f64, number: u64, seconds: f64, in_flight: u64) -> String {
    event(at, "transport:packet_received", "1RTT", number, 40)
        + &metrics(at, &format!("\"latest_rtt\":{seconds},"), in_flight)
}

fn log() -> String {
    let mut log = format!("\x1e{HEADER}\n");
    // The initial round trip of 333 ms is in seconds.
    log += &event(0.0, "transport:packet_sent", "initial", 0, 1_200);
    log += &metrics(0.0, "\"latest_rtt\":0.333,\"congestion_window\":12000,", 1);
    log += &event(40.0, "transport:packet_received", "initial", 0, 1_200);
    log += &metrics(40.0, "\"latest_rtt\":0.04,", 0);
    for number in 0..5 {
        log += &sent(41.0 + number as f64, "1RTT", number, number + 1);
    }
    // Numbers 0 and 1, then 3 and 4; whether 2 or 3 is lost is known later.
    log += &acked(82.0, 0, 0.04, 3);
    log += &acked(85.0, 1, 0.04, 1);
    log += &event(90.0, "recovery:packet_lost", "1RTT", 2, 1_200);
    log += &metrics(90.0, "", 0);
    log += &sent(90.0, "1RTT", 5, 1);
    log += &acked(130.0, 2, 0.04, 0);
    log
}

fn read(log: &str) -> QuicConnection {
    let bytes = log.as_bytes().to_vec();
    let source =
        InputFile { name: "quinn.sqlog".into(), bytes: Box::new(std::io::Cursor::new(bytes)) };
    let mode = ReadMode { keeps_quic: true, ..ReadMode::default() };
    let reading = inputs::read_with(vec![source], AnalysisSettings::default(), mode).unwrap();
    reading.quic.into_iter().next().unwrap()
}

#[test]
fn acknowledgments_and_stream_bytes_are_inferred() {
    let analysis = read(&log()).analysis;
    let transfer = analysis.transfer.as_deref().unwrap();
    let ms = |at: Option<u64>| at.map(|at| at / 1_000_000);
    let packets: Vec<_> = transfer
        .packets
        .iter()
        .map(|packet| (packet.number, ms(packet.acked_at), ms(packet.lost_at), packet.fresh))
        .collect();
    // Of 1,200 bytes 33 are headers; the sixth packet has the bytes of the lost one.
    let expected = [
        (0, Some(82), None, 1_167),
        (1, Some(82), None, 1_167),
        (2, None, Some(90), 1_167),
        (3, Some(85), None, 1_167),
        (4, Some(85), None, 1_167),
        (5, Some(130), None, 0),
    ];
    assert_eq!(packets, expected);
    assert_eq!(transfer.delivered.last().map(|last| last.bytes), Some(5 * 1_167));
    let shortest = transfer.round_trips.iter().map(|sample| sample.rtt).min();
    assert_eq!(shortest, Some(40_000_000));
    assert!(
        analysis.missing.iter().any(|lack| lack.contains("inferred")),
        "{:?}",
        analysis.missing
    );
}

/// A log with frames is read as it is: the same events with a frame in the first packet.
#[test]
fn a_log_with_frames_is_not_changed() {
    let first = r#""packet_number":0,"length":1200}"#;
    let framed = r#""packet_number":0,"length":1200},"frames":[{"frame_type":"crypto","offset":0,"length":300}]"#;
    let log = log().replacen(first, framed, 1);
    let analysis = read(&log).analysis;
    assert!(!analysis.missing.iter().any(|lack| lack.contains("inferred")));
    assert_eq!(analysis.acks, 0);
}
