//! Scenarios in kernel recordings (`ackclock_scenario`): every one must still load, and be
//! unchanged by reading and writing.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use ackclock_scenario::{Overrides, ScenarioFile, load};
use serde_json::Value;
use trace::unpack::Unpacked;

/// First line of each recorded transfer; the next line has its parameters as JSON.
const HEADER: &str = "# scenario\n";

/// Collects all files below `folder`.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        match entry.is_dir() {
            true => files(&entry, found),
            false => found.push(entry),
        }
    }
}

/// Returns the text of a file of recorded transfers, `None` for another file.
fn recordings(file: &Path) -> Option<String> {
    let mut unpacked = Unpacked::new(File::open(file).unwrap()).unwrap();
    let mut text = Vec::new();
    unpacked.by_ref().take(HEADER.len() as u64).read_to_end(&mut text).ok()?;
    if text != HEADER.as_bytes() {
        return None;
    }
    unpacked.read_to_end(&mut text).unwrap();
    Some(String::from_utf8(text).unwrap())
}

/// Returns every recorded scenario below golden/, with the name of its transfer.
fn scenarios() -> Vec<(String, String)> {
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden"), &mut all);
    let texts = all.iter().filter_map(|file| recordings(file));
    let mut found = Vec::new();
    for text in texts {
        for recording in text.split(HEADER).skip(1) {
            let parameters = recording.lines().next().unwrap();
            let parameters: Value = serde_json::from_str(parameters).unwrap();
            let name = parameters["name"].as_str().unwrap().to_owned();
            if let Some(scenario) = parameters["ackclock_scenario"].as_str() {
                found.push((name, scenario.to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_recorded_scenario_loads() {
    let scenarios = scenarios();
    assert!(!scenarios.is_empty(), "no recording below golden/ holds a scenario");
    for (name, text) in scenarios {
        let loaded = load(&text, &name, &Overrides::default());
        let scenario = loaded.unwrap_or_else(|errors| panic!("{}\n{text}", errors[0])).scenario;
        let written = ScenarioFile::read(&text, &name).unwrap().to_string();
        let reloaded = load(&written, &name, &Overrides::default());
        let reloaded =
            reloaded.unwrap_or_else(|errors| panic!("{}\n{written}", errors[0])).scenario;
        assert_eq!(scenario, reloaded, "{written}");
    }
}
