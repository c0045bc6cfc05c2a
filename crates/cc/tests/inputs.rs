//! A controller that uses an input declares it: otherwise the event never comes.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The code of each controller, with that of its operations: the files that declare inputs.
fn controllers() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut paths);
    let texts =
        paths.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()));
    let code = |text: String| text.split("mod tests {").next().unwrap_or_default().to_owned();
    texts
        .map(|(path, text)| (path, code(text)))
        .filter(|(_, text)| text.contains("const INPUTS"))
        .collect()
}

#[test]
fn every_controller_that_takes_rtt_samples_declares_them() {
    let mut takers = 0;
    for (path, text) in controllers() {
        // The contract, and the common part of Linux's, which its operations declare.
        if text.contains("trait ") {
            continue;
        }
        let takes = text.contains("fn on_ack_sample") || text.contains("fn ends_slow_start");
        let declares = text.contains("ACK_SAMPLES") || text.contains("ack_samples: true");
        assert_eq!(takes, declares, "{path}");
        takers += usize::from(takes);
    }
    assert!(takers >= 3, "{takers}");
}

#[test]
fn every_controller_that_reads_the_smoothed_round_trip_declares_it() {
    for (path, text) in controllers() {
        let reads = text.contains("event.srtt");
        let declares = text.contains("::SRTT") || text.contains("srtt: true");
        assert!(!reads || declares || text.contains("O::INPUTS"), "{path}");
    }
}
