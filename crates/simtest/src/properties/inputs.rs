//! Any two files are read together or rejected; every packet is in a connection, the packet outcomes
//! between two capture points add up, and the time budget of a QUIC connection is its duration.

use diagnose::AnalysisSettings;
use diagnose::quic::QuicDiagnosis;
use ingest::inputs::{InputFile, InputKind, read};

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: (&[u8], &[u8])) {
    let source = |name: &str, bytes| InputFile { name: name.to_owned(), bytes: Box::new(bytes) };
    let mut sources = vec![source("a", input.0)];
    if !input.1.is_empty() {
        sources.push(source("b", input.1));
    }
    let reading = match read(sources, AnalysisSettings::default()) {
        Ok(reading) => reading,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    for file in &reading.files {
        // Damage of a log is at an event, that of the events of a NetLog also at a line.
        if matches!(file.kind, InputKind::Qlog | InputKind::NetLog) {
            for problem in &file.problems.first {
                assert!(problem.contains("event ") || problem.contains("byte "), "{problem}");
            }
        }
    }
    for quic in &reading.quic {
        let analysis = &quic.analysis;
        assert_eq!(analysis.budget.whole(), analysis.duration());
        for found in QuicDiagnosis::of(analysis).findings {
            assert!(found.cost.as_nanos() <= analysis.duration(), "{}", found.code);
            assert!(found.frames.0 <= found.frames.1 && found.interval.0 <= found.interval.1);
        }
    }
    let tcp: u64 = reading.files.iter().map(|file| file.tcp - file.duplicates).sum();
    let frames: u64 = reading.streams.iter().map(|stream| stream.analysis().frames).sum();
    assert_eq!(tcp, frames);
    for pair in &reading.pairs {
        assert!(pair.near != pair.far && pair.near.max(pair.far) < reading.streams.len());
        for crossing in &pair.transits {
            for fate in &crossing.fates {
                assert!(fate.arrived <= fate.len);
            }
            assert!(crossing.lost + crossing.lost_in_part <= crossing.fates.len() as u64);
        }
    }
}
