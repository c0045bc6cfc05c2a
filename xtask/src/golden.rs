//! Golden rows: recorded states of kernel functions, replayed through our crates.
//!
//! The kind of a file is the part of its name that [`KINDS`] lists; our crates must produce the
//! same state in every column. `golden/freebsd/README.md` describes the origin of the rows.

mod bbr3;
mod closed;
mod controller;
mod cubic;
mod cubic_funcs;
mod linux;
#[cfg(target_os = "linux")]
mod linux_closed;
mod lro;
mod newreno;
mod recovery;
mod rows;
mod srtt_rto;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rows::{GoldenError, GoldenRows, GoldenTally};

use crate::processors;

/// Replays one file.
type ReplayFn = fn(&mut GoldenRows, &mut GoldenTally) -> Result<(), GoldenError>;

/// Kinds of files and their replays. The first kind that a name contains applies.
const KINDS: [(&str, ReplayFn); 6] = [
    ("newreno", newreno::replay),
    ("cubic_funcs", cubic_funcs::replay),
    ("cubic", cubic::replay),
    ("srtt_rto", srtt_rto::replay),
    ("lro", lro::replay),
    ("recovery", recovery::replay),
];

/// Suffix of golden files.
const ENDING: &str = ".csv.gz";

/// Result of a file.
enum FileOutcome {
    /// All rows were read and compared.
    Replayed(GoldenTally),
    /// The kind is not in the table.
    NoReplay,
    /// The file cannot be read or is malformed; earlier rows are not reported.
    Garbled(GoldenError),
}

/// Returns a directory of the project's copy of golden files.
fn own_copy(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden").join(of)
}

/// Replays the project's copy; returns the worst exit status, as [`run`].
pub(crate) fn run_own_copy() -> ExitCode {
    let rows = ["freebsd", "linux"].map(|of| replay_all(&own_copy(of))).into_iter().max();
    let mut verdict = closed::run_own_copy();
    #[cfg(target_os = "linux")]
    linux_closed::run(&own_copy("linux-closed"), &mut verdict);
    #[cfg(not(target_os = "linux"))]
    println!("linux-closed not compared: it needs Linux");
    bbr3::run(&own_copy("bbr3-closed"), &mut verdict);
    let closed = status_of(verdict);
    ExitCode::from(rows.unwrap_or(2).max(closed))
}

/// Returns the exit status of closed-loop transfers.
fn status_of(verdict: closed::ClosedVerdict) -> u8 {
    match (verdict.garbled, verdict.differ) {
        (true, _) => 2,
        (false, differ) => u8::from(differ),
    }
}

/// Imports recorded transfers into the project's copy.
pub(crate) fn import(from: &Path) -> ExitCode {
    let import = match closed::can_import(from) {
        true => closed::import(from),
        false => linux::import(from, &own_copy("linux")),
    };
    match import {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Replays the golden files at `place`, a directory or one file, and prints a line for each.
///
/// Returns 0 if every row of at least one file agrees, 1 if one differs, 2 if a file cannot be read
/// or there is nothing to replay.
pub(crate) fn run(place: &Path) -> ExitCode {
    let mut closed = closed::run_place(place);
    #[cfg(target_os = "linux")]
    linux_closed::run(place, &mut closed);
    bbr3::run(place, &mut closed);
    ExitCode::from(match closed.replayed {
        0 if !closed.garbled => replay_all(place),
        _ => status_of(closed),
    })
}

fn replay_all(place: &Path) -> u8 {
    let (files, transfers) =
        match golden_files(place).and_then(|files| Ok((files, linux::transfers(place)?))) {
            Ok(found) => found,
            Err(error) => {
                eprintln!("{}: {error}", place.display());
                return 2;
            }
        };
    let (mut replayed, mut differ, mut garbled) = (0, false, false);
    let outcomes = processors::map(&files, |file| replay(file));
    for (file, outcome) in files.iter().zip(outcomes) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        match outcome {
            FileOutcome::Replayed(tally) => {
                replayed += 1;
                differ |= tally.mismatches() > 0;
                println!("{name} rows {} mismatches {}", tally.rows(), tally.mismatches());
                for mismatch in tally.first() {
                    println!("  {name}:{mismatch}");
                }
            }
            FileOutcome::NoReplay => println!("{name} no replay yet"),
            FileOutcome::Garbled(error) => {
                garbled = true;
                eprintln!("{}:{error}", file.display());
            }
        }
    }
    let verdict = linux::run(&transfers);
    let _ = linux::run_closed_loop(&transfers);
    replayed += verdict.replayed;
    differ |= verdict.differ;
    garbled |= verdict.garbled;
    if replayed == 0 && !garbled {
        let kinds = KINDS.map(|(kind, _)| kind).join(", ");
        eprintln!(
            "{}: nothing to replay: no *{ENDING} of {kinds}, no recording of BBR version 3 (bbr3-*.gz)",
            place.display()
        );
    }
    match (replayed, differ, garbled) {
        (0, ..) | (_, _, true) => 2,
        (_, true, _) => 1,
        _ => 0,
    }
}

/// Replays one file by the kind in its name.
fn replay(file: &Path) -> FileOutcome {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let Some(replay) = replay_of(&name) else { return FileOutcome::NoReplay };
    match GoldenRows::open(file).and_then(|mut rows| replay_rows(&mut rows, replay)) {
        Ok(tally) => FileOutcome::Replayed(tally),
        Err(error) => FileOutcome::Garbled(error),
    }
}

fn replay_rows(rows: &mut GoldenRows, replay: ReplayFn) -> Result<GoldenTally, GoldenError> {
    let mut tally = GoldenTally::default();
    replay(rows, &mut tally)?;
    tally.not_empty()
}

/// Returns the replay for a file of this name.
fn replay_of(name: &str) -> Option<ReplayFn> {
    KINDS.iter().find(|(kind, _)| name.contains(kind)).map(|(_, replay)| *replay)
}

/// Returns the golden files at `place`, sorted by name.
fn golden_files(place: &Path) -> io::Result<Vec<PathBuf>> {
    if place.is_file() {
        return Ok(vec![place.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        if path.is_file() && path.to_string_lossy().ends_with(ENDING) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
