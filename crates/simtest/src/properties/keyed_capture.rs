//! A key log and a capture: packets are decrypted or counted, whatever the order of the secrets.
//!
//! The input is a key log, a zero byte, and a capture.

use diagnose::AnalysisSettings;
use ingest::diagnosis::DiagnosisReport;
use ingest::inputs::{InputFile, KeyLog, ReadMode, Reading, read_with};

/// Type of a block of decryption secrets in a pcapng, and that of a key log of TLS.
const SECRETS_BLOCK: u32 = 10;
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Magic of a pcapng in the byte order that the block is written in.
const LITTLE_ENDIAN: [u8; 4] = 0x1a2b_3c4d_u32.to_le_bytes();

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    let Some(end) = input.iter().position(|&byte| byte == 0) else { return };
    let (text, capture) = (&input[..end], &input[end + 1..]);
    let keys = match KeyLog::parse(text) {
        Ok(keys) => keys,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            KeyLog::default()
        }
    };
    assert_eq!(merged(text, &keys), keys);
    let Some(reading) = decrypted(capture, keys.clone()) else { return };
    for one in &reading.quic {
        let counts = one.decrypted.expect("only captures were read");
        assert!(counts.decrypted > 0 && one.analysis.events >= counts.decrypted);
        assert_eq!(one.analysis.budget.whole(), one.analysis.duration());
    }
    let is_undamaged = reading.files[0].problems.count == 0;
    if is_undamaged && !keys.is_empty() && capture.get(8..12) == Some(&LITTLE_ENDIAN) {
        let late = [capture, &block(text)].concat();
        let late = decrypted(&late, KeyLog::default()).expect("the capture was read before");
        let sum = |reading: &Reading| -> u64 {
            reading.quic.iter().filter_map(|one| one.decrypted).map(|counts| counts.decrypted).sum()
        };
        let datagrams = |reading: &Reading| reading.files[0].quic.datagrams;
        // Without keys a greased bit may hide that a datagram is QUIC (RFC 9287).
        if datagrams(&late) == datagrams(&reading) {
            assert_eq!(sum(&late), sum(&reading));
        } else {
            assert!(sum(&late) <= sum(&reading));
        }
    }
    let _ = DiagnosisReport::of(reading).json(usize::MAX);
}

/// The key log of all lines, each of which is read as a log of its own.
fn merged(text: &[u8], whole: &KeyLog) -> KeyLog {
    let mut merged = KeyLog::default();
    if whole.is_empty() {
        return merged;
    }
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        merged.extend(KeyLog::parse(line).unwrap_or_default());
    }
    merged
}

fn decrypted(capture: &[u8], keys: KeyLog) -> Option<Reading> {
    let source = InputFile { name: "a".to_owned(), bytes: Box::new(capture) };
    let mode = ReadMode { keys, ..ReadMode::default() };
    read_with(vec![source], AnalysisSettings::default(), mode)
        .ok()
        .filter(|reading| !reading.captured_quic.is_empty())
}

/// A block of secrets.
fn block(text: &[u8]) -> Vec<u8> {
    let padded = text.len().next_multiple_of(4);
    let len = (20 + padded) as u32;
    let mut out = Vec::new();
    for word in [SECRETS_BLOCK, len, TLS_KEY_LOG, text.len() as u32] {
        out.extend(word.to_le_bytes());
    }
    out.extend_from_slice(text);
    out.resize(16 + padded, 0);
    out.extend(len.to_le_bytes());
    out
}
