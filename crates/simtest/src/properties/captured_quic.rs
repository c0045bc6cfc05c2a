//! Any datagrams are assigned to connections or counted; headers stay within their datagrams.
//!
//! The input is a list of datagrams: a byte of flags (bit 0: from the server, bit 1: another port of the
//! client, the others milliseconds), two of the length, and the payload, of which the end may be missing as
//! in a truncated capture.

use diagnose::AnalysisSettings;
use diagnose::quic::captured::{CapturedQuicAnalysis, ONE_RTT};
use ingest::diagnosis::DiagnosisReport;
use ingest::inputs::{InputFile, read};
use packet::quic::long_header;
use trace::pcapng::{PacketDirection, PacketMeta, PcapngInterface, PcapngSection, PcapngWriter};
use units::{Duration, Instant};

/// Client's ports.
const PORTS: [u16; 2] = [50_000, 50_001];

/// An IP packet with this beginning of a UDP payload of `len` bytes.
fn packet(flags: u8, len: u16, payload: &[u8]) -> Vec<u8> {
    let client = ([192, 0, 2, 1], PORTS[usize::from(flags >> 1 & 1)]);
    let server = ([192, 0, 2, 2], 443);
    let (src, dst) = if flags & 1 == 0 { (client, server) } else { (server, client) };
    let udp = len.saturating_add(8);
    let mut out = vec![0x45, flags & 3];
    out.extend(udp.saturating_add(20).to_be_bytes());
    out.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    out.extend(src.0);
    out.extend(dst.0);
    for half in [src.1, dst.1, udp, 0] {
        out.extend(half.to_be_bytes());
    }
    out.extend_from_slice(payload);
    out
}

/// Flags, length and payload of each datagram.
fn datagrams(mut input: &[u8]) -> Vec<(u8, u16, &[u8])> {
    let mut all = Vec::new();
    while let [flags, high, low, rest @ ..] = input {
        let len = u16::from_be_bytes([*high, *low]).min(65_507);
        let (payload, after) = rest.split_at(usize::from(len).min(rest.len()));
        all.push((*flags, len, payload));
        input = after;
    }
    all
}

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    let datagrams = datagrams(input);
    if datagrams.is_empty() {
        return;
    }
    let section = PcapngSection { epoch: Duration::from_secs(1_000), ..PcapngSection::default() };
    let mut writer = PcapngWriter::new(Vec::new(), &section).expect("memory");
    let tap = writer.add_interface(&PcapngInterface::default()).expect("memory");
    let mut at = 0;
    for &(flags, len, payload) in &datagrams {
        if let Some(header) = long_header(payload, usize::from(len)) {
            assert!(header.len > 0 && header.len <= usize::from(len));
            assert!(header.destination.len() <= 20 && header.source.len() <= 20);
            assert!(header.versions().count() * 4 <= payload.len());
        }
        at += u64::from(flags >> 2) * 1_000_000;
        let seen = PacketMeta { tap, at: Instant::from_nanos(at), way: PacketDirection::Out };
        writer.packet(seen, &packet(flags, len, payload)).expect("memory");
    }
    let file = writer.finish().expect("memory");
    let source = InputFile { name: "a".to_owned(), bytes: Box::new(&file[..]) };
    let reading = read(vec![source], AnalysisSettings::default()).expect("a capture");
    let counts = &reading.files[0];
    let sum: u64 = reading.captured_quic.iter().map(|one| datagrams_of(&one.analysis)).sum();
    assert_eq!(sum, counts.quic.datagrams);
    assert_eq!(sum + counts.others.total() + counts.tcp, counts.frames);
    for one in &reading.captured_quic {
        let analysis = &one.analysis;
        assert!(analysis.interval.0 <= analysis.interval.1);
        assert!(analysis.frames.0 <= analysis.frames.1);
        let rates: u64 = analysis.rates.bytes.iter().flatten().sum();
        assert_eq!(rates, analysis.bytes());
        assert!(analysis.silences.ns <= analysis.duration());
        assert!(analysis.spin.in_turn <= analysis.spin.edges);
        let one_rtt: u64 = analysis.directions.iter().map(|dir| dir.packets[ONE_RTT]).sum();
        assert_eq!(one_rtt, analysis.spin.packets);
    }
    let _ = DiagnosisReport::of(reading).json(usize::MAX);
}

fn datagrams_of(analysis: &CapturedQuicAnalysis) -> u64 {
    analysis.directions.iter().map(|direction| direction.datagrams).sum()
}
