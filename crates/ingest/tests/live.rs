//! Captures that are read while they grow, and parts of one capture.

use std::fs::File;
use std::path::Path;

use ackclock_ingest::diagnosis::DiagnosisReport;
use ackclock_ingest::inputs::{InputFile, LiveInterval, LiveReporter, ReadMode};
use diagnose::Limiter;
use units::Duration;

#[path = "../examples/many_connections.rs"]
mod many_connections;

fn recorded(name: &str) -> InputFile<'static> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    InputFile { name: name.to_owned(), bytes: Box::new(File::open(path).unwrap()) }
}

fn live(source: InputFile<'_>, every: Duration) -> (Vec<LiveInterval>, DiagnosisReport) {
    let mut intervals = Vec::new();
    let mut keep = |interval: &LiveInterval| intervals.push(interval.clone());
    let mode = ReadMode { live: Some(LiveReporter::new(every, &mut keep)), ..ReadMode::default() };
    let report = DiagnosisReport::read_with(vec![source], 0, mode).unwrap();
    (intervals, report)
}

/// 4 MB in 3.3 s to a receiver with a small buffer: each second says so, and the result is that of
/// the whole capture.
#[test]
fn each_interval_names_its_limit() {
    const CAPTURE: &str = "golden/linux/h1_rwnd_cubic/sender.pcap.xz";
    let (intervals, report) = live(recorded(CAPTURE), Duration::from_secs(1));
    let spans: Vec<_> = intervals.iter().map(|one| one.span.0 / 1_000_000_000).collect();
    assert_eq!(spans, [0, 1, 2, 3]);
    // The end of the capture ends the last one.
    assert!(intervals[3].span.1 < 3_400_000_000);
    for interval in &intervals[..3] {
        let [one] = interval.connections.as_slice() else { panic!("{interval:?}") };
        assert_eq!(one.limiter, Some(Limiter::Rwnd), "{interval:?}");
        // 80 kB per 60.2 ms, less in the first interval.
        assert!((1_000_000..1_400_000).contains(&one.bytes), "{interval:?}");
        assert_eq!(one.is_new, interval.span.0 == 0);
    }
    let news: Vec<_> =
        intervals.iter().map(|one| one.connections[0].news.contains(&"CC401")).collect();
    assert_eq!(news, [true, false, false, false]);
    let alone = DiagnosisReport::read(vec![recorded(CAPTURE)], false).unwrap();
    assert_eq!(report.json(10), alone.json(10));
}

/// Connections that begin and end are counted, and their bytes are those of the result.
#[test]
fn connections_open_and_close() {
    let mut capture = Vec::new();
    let kind = many_connections::CaptureKind::Mixed;
    many_connections::write_capture(kind, 1_000, &mut capture).unwrap();
    let source = InputFile { name: "many.pcap".to_owned(), bytes: Box::new(&capture[..]) };
    let (intervals, report) = live(source, Duration::from_millis(500));
    let count = |is: fn(&&ackclock_ingest::inputs::LiveConnection) -> bool| {
        intervals.iter().flat_map(|one| &one.connections).filter(is).count()
    };
    let bytes: u64 = intervals.iter().flat_map(|one| &one.connections).map(|one| one.bytes).sum();
    let all: u64 = report.files[0].connections.iter().map(|one| one.bytes).sum();
    assert_eq!(count(|one| one.is_new), 1_000);
    assert!(count(|one| one.is_closed) >= 900);
    assert_eq!(bytes, all);
}

/// One packet whose clock is a day ahead does not silence the intervals after it.
#[test]
fn a_damaged_time_ends_no_interval() {
    let mut capture = Vec::new();
    let kind = many_connections::CaptureKind::Mixed;
    many_connections::write_capture(kind, 100, &mut capture).unwrap();
    let spans = |capture: &[u8]| -> Vec<_> {
        let source = InputFile { name: "many.pcap".to_owned(), bytes: Box::new(capture) };
        let (intervals, _) = live(source, Duration::from_millis(200));
        intervals.iter().map(|one| one.span).collect()
    };
    let whole = spans(&capture);
    assert!(whole.len() > 3, "{whole:?}");
    let mut at = 24;
    for _ in 0..50 {
        at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    let seconds = u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
    capture[at..at + 4].copy_from_slice(&(seconds + 86_400).to_le_bytes());
    assert_eq!(spans(&capture), whole);
}

/// Frames of UDP whose times lie in the next interval end one as packets of TCP do: the last packet of TCP
/// before them is in it.
#[test]
fn frames_without_tcp_end_intervals_at_their_time() {
    let mut capture = Vec::new();
    let kind = many_connections::CaptureKind::Mixed;
    many_connections::write_capture(kind, 100, &mut capture).unwrap();
    let (header, mut rest) = capture.split_at(24);
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let kept = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (packet, others) = rest.split_at(16 + kept);
        packets.push(packet);
        rest = others;
    }
    let mut mixed = header.to_vec();
    for (n, packet) in packets.iter().enumerate() {
        mixed.extend_from_slice(packet);
        // Two frames of UDP at the time of the next packet.
        let next = packets.get(n + 1).unwrap_or(packet);
        let mut udp = packet.to_vec();
        udp[..8].copy_from_slice(&next[..8]);
        // The protocol of the IPv4 header.
        udp[16 + 9] = 17;
        mixed.extend_from_slice(&udp);
        mixed.extend_from_slice(&udp);
    }
    // Of intervals of 101 ms two end after packets that change a connection.
    let read = |capture: &[u8]| {
        let source = InputFile { name: "many.pcap".to_owned(), bytes: Box::new(capture) };
        let (intervals, report) = live(source, Duration::from_millis(101));
        let bytes: u64 = report.files[0].connections.iter().map(|one| one.bytes).sum();
        (intervals, bytes)
    };
    let (whole, bytes) = read(&capture);
    let (mixed, mixed_bytes) = read(&mixed);
    assert_eq!(mixed.len(), whole.len());
    for (mixed, whole) in mixed.iter().zip(&whole) {
        assert_eq!(mixed, whole);
    }
    assert_eq!(mixed_bytes, bytes);
}

/// A capture in three parts, as `tcpdump -C` writes them, given in any order.
#[test]
fn parts_of_a_capture_are_joined() {
    let mut capture = Vec::new();
    let kind = many_connections::CaptureKind::Mixed;
    many_connections::write_capture(kind, 200, &mut capture).unwrap();
    let (header, mut rest) = capture.split_at(24);
    let mut parts = Vec::new();
    let third = rest.len() / 3;
    while !rest.is_empty() {
        let mut end = 0;
        while end < third.max(1) && end < rest.len() {
            let length = u32::from_le_bytes(rest[end + 8..end + 12].try_into().unwrap());
            end += 16 + length as usize;
        }
        parts.push([header, &rest[..end]].concat());
        rest = &rest[end..];
    }
    assert!((3..=4).contains(&parts.len()));
    // A ring's newest part may be empty yet.
    parts.push(header.to_vec());
    let read = |order: &[usize], is_ring: bool| {
        let source =
            |&n: &usize| InputFile { name: format!("part{n}"), bytes: Box::new(&parts[n][..]) };
        let mode = ReadMode { is_ring, ..ReadMode::default() };
        DiagnosisReport::read_with(order.iter().map(source).collect(), 0, mode)
    };
    let whole = InputFile { name: "whole".to_owned(), bytes: Box::new(&capture[..]) };
    let whole = DiagnosisReport::read(vec![whole], false).unwrap();
    let mut order: Vec<usize> = (0..parts.len()).rev().collect();
    order.swap(0, 1);
    let joined = read(&order, true).unwrap();
    assert!(
        joined.files[0].file.name.starts_with("part0 to part"),
        "{}",
        joined.files[0].file.name
    );
    let body = |report: &DiagnosisReport| {
        let json: serde_json::Value = serde_json::from_str(&report.json(1_000)).unwrap();
        (json["frames"].clone(), json["connections"].clone(), json["groups"].clone())
    };
    assert_eq!(body(&joined), body(&whole));
    assert!(read(&[parts.len() - 1], true).is_err());
}
