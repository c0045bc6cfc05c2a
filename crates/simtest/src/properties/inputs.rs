//! Any two files are read together or refused; every packet is in a connection, and what became of
//! it between two capture points adds up.

use diagnose::Settings;
use ingest::inputs::{Source, read};

/// Reads `input`.
///
/// # Panics
/// If a claim does not hold.
pub fn check(input: (&[u8], &[u8])) {
    let source = |name: &str, bytes| Source { name: name.to_owned(), bytes: Box::new(bytes) };
    let mut sources = vec![source("a", input.0)];
    if !input.1.is_empty() {
        sources.push(source("b", input.1));
    }
    let reading = match read(sources, Settings::default()) {
        Ok(reading) => reading,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let tcp: u64 = reading.files.iter().map(|file| file.tcp).sum();
    let frames: u64 = reading.streams.iter().map(|stream| stream.analysis.frames).sum();
    assert_eq!(tcp, frames);
    for pair in &reading.pairs {
        assert!(pair.near != pair.far && pair.near.max(pair.far) < reading.streams.len());
        for crossing in &pair.crossings {
            for fate in &crossing.fates {
                assert!(fate.arrived <= fate.len);
            }
            assert!(crossing.lost + crossing.lost_in_part <= crossing.fates.len() as u64);
        }
    }
}
