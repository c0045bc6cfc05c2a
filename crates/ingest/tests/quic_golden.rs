//! The verdicts of all logs of real stacks in `golden/quic`, and captures with their keys in any order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ackclock_ingest as ingest;
use ingest::diagnosis::DiagnosisReport;
use ingest::inputs::{InputFile, KeyLog, ReadMode, Reading, read_with};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/quic")
}

/// The truth of each log, which its README explains.
#[test]
fn the_verdict_of_each_log_is_its_truth() {
    let text = std::fs::read(golden().join("truth.json")).unwrap();
    let truth: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_slice(&text).unwrap();
    let names = std::fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut logs: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    logs.retain(|name| name.ends_with(".xz"));
    logs.sort();
    assert_eq!(logs, truth.keys().cloned().collect::<Vec<_>>());
    for (name, expected) in truth {
        let bytes = Box::new(std::fs::File::open(golden().join(&name)).unwrap());
        let source = InputFile { name: name.clone(), bytes };
        let report = DiagnosisReport::read(vec![source], false).unwrap();
        assert_eq!(report.files[0].file.problems.count, 0, "{name}");
        let diagnosis = &report.files[0].quic[0].diagnosis;
        let primary = diagnosis
            .primary
            .and_then(|code| diagnosis.findings.iter().find(|found| found.code == code));
        let found = primary.map(|found| (found.code, found.kind));
        assert_eq!(found, Some((&*expected["code"], &*expected["kind"])), "{name}");
    }
}

/// Type of a block of decryption secrets in a pcapng, and that of a key log of TLS.
const SECRETS_BLOCK: u32 = 10;
const TLS_KEY_LOG: u32 = 0x544c_534b;
const PACKET_BLOCK: u32 = 6;

fn block(text: &str) -> Vec<u8> {
    let padded = text.len().next_multiple_of(4);
    let len = (20 + padded) as u32;
    let words = [SECRETS_BLOCK, len, TLS_KEY_LOG, text.len() as u32];
    let mut out: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    out.extend_from_slice(text.as_bytes());
    out.resize(16 + padded, 0);
    out.extend(len.to_le_bytes());
    out
}

/// The capture with a block of secrets before each of these packets, or at the end.
fn with_secrets(capture: &[u8], secrets: &[(usize, &str)]) -> Vec<u8> {
    let (mut out, mut packets, mut at) = (Vec::new(), 0, 0);
    while at < capture.len() {
        let word = |from: usize| u32::from_le_bytes(capture[from..from + 4].try_into().unwrap());
        if word(at) == PACKET_BLOCK {
            let here = secrets.iter().filter(|(packet, _)| *packet == packets);
            here.for_each(|(_, text)| out.extend(block(text)));
            packets += 1;
        }
        let end = at + word(at + 4) as usize;
        out.extend_from_slice(&capture[at..end]);
        at = end;
    }
    let rest = secrets.iter().filter(|(packet, _)| *packet >= packets);
    rest.for_each(|(_, text)| out.extend(block(text)));
    out
}

fn decrypted(capture: &[u8], keys: KeyLog) -> Reading {
    let source = InputFile { name: "a".to_owned(), bytes: Box::new(capture) };
    let mode = ReadMode { keys, ..ReadMode::default() };
    read_with(vec![source], diagnose::AnalysisSettings::default(), mode).unwrap()
}

#[test]
fn secrets_decrypt_wherever_they_are() {
    let capture = std::fs::read(golden().join("quinn-keys.pcapng")).unwrap();
    let text = std::fs::read_to_string(golden().join("quinn-keys.keys")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let spread: Vec<(usize, &str)> =
        lines.iter().enumerate().map(|(n, line)| (1 + 3 * n, *line)).collect();
    let first: Vec<(usize, &str)> = lines.iter().map(|line| (0, *line)).collect();
    let whole = KeyLog::parse(text.as_bytes()).unwrap();
    let counts = |reading: &Reading| reading.quic.first().and_then(|one| one.decrypted);
    let expected = decrypted(&capture, whole);
    assert_eq!(counts(&expected).map(|counts| (counts.decrypted, counts.failed)), Some((188, 0)));
    for secrets in
        [vec![(0, &*text)], vec![(20, &*text)], vec![(usize::MAX, &*text)], first, spread]
    {
        let reading = decrypted(&with_secrets(&capture, &secrets), KeyLog::default());
        assert_eq!(reading.files[0].problems.count, 0, "{:?}", reading.files[0].problems);
        assert_eq!(reading.quic, expected.quic);
    }
    // A part of the secrets from each source.
    let (one, other) = lines.split_at(2);
    let keys = KeyLog::parse(one.concat().as_bytes()).unwrap();
    let reading = decrypted(&with_secrets(&capture, &[(30, &*other.concat())]), keys);
    assert_eq!(counts(&reading), counts(&expected));
}

#[test]
fn keys_of_another_connection_are_reported() {
    let capture = std::fs::read(golden().join("quinn-keys.pcapng")).unwrap();
    let line = format!("SERVER_TRAFFIC_SECRET_0 {} {}\n", "07".repeat(32), "ab".repeat(32));
    let keys = KeyLog::parse(line.as_bytes()).unwrap();
    let report = DiagnosisReport::of(decrypted(&capture, keys));
    let json: serde_json::Value = serde_json::from_str(&report.json(9)).unwrap();
    assert_eq!(json["unmatched_secrets"], 1, "{json}");
    let style = ingest::diagnosis::TextStyle { limit: 1, look: scenario::ReportStyle::Plain };
    let text = report.text(style);
    assert!(text.contains("The keys do not match: none of the secrets of 1 connection"), "{text}");
}
