//! Closed-loop transfers of FreeBSD's complete TCP, run with our stack at both hosts and compared
//! data packet by data packet: time, sequence number, length.

mod compare;
mod exceptions;
mod long_runs;
mod recording;
mod run;
mod scenario;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lzma_rust2::{XzOptions, XzWriter};
use units::Duration;

use super::own_copy;
use compare::{TransferComparison, states_around};
pub(super) use exceptions::Exceptions;
use recording::ClosedRecording;

use crate::processors;

/// Directories of recordings in the project's copy, and the tolerance in time: the timer wheel
/// (HPTS) of RACK's recordings has slots of 10 us.
const SETS: [(&str, Duration); 2] =
    [("freebsd-closed", Duration::ZERO), ("freebsd-rack-closed", Duration::from_micros(50))];

/// Result of files of recordings.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ClosedVerdict {
    /// Transfers run.
    pub(super) replayed: u32,
    /// A transfer differs that is not a known exception, or an exception no longer differs.
    pub(super) differ: bool,
    /// A file could not be read.
    pub(super) garbled: bool,
}

/// Number of identical transfers of a kind.
#[derive(Debug, Default, Clone, Copy)]
struct IdenticalCount {
    identical: u32,
    all: u32,
}

impl IdenticalCount {
    fn add(&mut self, identical: bool) {
        self.identical += u32::from(identical);
        self.all += 1;
    }
}

/// Compares the project's copy: prints a summary for each file, and the known exceptions.
pub(super) fn run_own_copy() -> ClosedVerdict {
    let mut verdict = ClosedVerdict::default();
    for (set, tolerance) in SETS {
        let place = own_copy(set);
        let exceptions = match Exceptions::read(&place) {
            Ok(exceptions) => exceptions,
            Err(error) => {
                eprintln!("{}: {error}", place.display());
                verdict.garbled = true;
                continue;
            }
        };
        for file in files(&place).unwrap_or_default() {
            compare_file(&file, tolerance, &exceptions, false, &mut verdict);
        }
    }
    verdict.garbled |= !long_runs::compare(&own_copy("freebsd-closed"));
    verdict
}

/// Compares the recordings at `place`, a directory or one file, and prints a line for each; for a
/// differing one, also both states around the first difference.
pub(super) fn run_place(place: &Path) -> ClosedVerdict {
    let mut verdict = ClosedVerdict::default();
    let rack = place.to_string_lossy().contains("rack");
    let tolerance = SETS[usize::from(rack)].1;
    for file in files(place).unwrap_or_default() {
        compare_file(&file, tolerance, &Exceptions::default(), true, &mut verdict);
    }
    verdict
}

/// Returns the files of recordings at `place`: `*.xz` (packed) or `*.gz` (single).
fn files(place: &Path) -> io::Result<Vec<PathBuf>> {
    if place.is_file() {
        let recordings = recording::unpack(place).is_ok();
        return Ok(Vec::from_iter(recordings.then(|| place.to_path_buf())));
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let packed = path.extension().is_some_and(|end| end == "xz" || end == "gz");
        if path.is_file() && packed && recording::unpack(&path).is_ok() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn compare_file(
    file: &Path,
    tolerance: Duration,
    exceptions: &Exceptions,
    in_full: bool,
    verdict: &mut ClosedVerdict,
) {
    let recordings = match recording::read(file) {
        Ok(recordings) => recordings,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            verdict.garbled = true;
            return;
        }
    };
    let folder = file.file_stem().unwrap_or_default().to_string_lossy();
    let folder = folder.trim_end_matches(".txt");
    let (mut named, mut random) = (IdenticalCount::default(), IdenticalCount::default());
    let (mut rows, mut rows_off) = (0, 0);
    let compared = processors::map(&recordings, |one| compare_one(one, tolerance, in_full));
    for (recording, compared) in recordings.iter().zip(compared) {
        let (comparison, states) = match compared {
            Ok(compared) => compared,
            Err(error) => {
                eprintln!("{}: {error}", recording.name);
                verdict.garbled = true;
                continue;
            }
        };
        verdict.replayed += 1;
        let name = &recording.name;
        if in_full {
            println!("{name} packets {} mismatches {}", comparison.packets, comparison.mismatches);
            if let Some(first) = &comparison.first {
                println!("  {first}");
            }
            if let Some((ns, off)) = &comparison.first_row {
                println!(
                    "  tcpcb rows {} with a difference {}, first at {ns} ns: {off}",
                    comparison.rows, comparison.rows_off
                );
            }
            states.iter().for_each(|line| println!("    {line}"));
        } else {
            let first = comparison.first.as_ref().map(ToString::to_string);
            match exceptions.judge(folder, name, first.as_deref()) {
                Ok(None) => {}
                Ok(Some(known)) => println!("  {folder}/{name} {known}"),
                Err(wrong) => {
                    verdict.differ = true;
                    println!("  {folder}/{name} {wrong}");
                }
            }
        }
        let kind = if recording.is_random() { &mut random } else { &mut named };
        kind.add(comparison.identical());
        rows += comparison.rows;
        rows_off += comparison.rows_off;
        verdict.differ |= in_full && !comparison.identical();
    }
    println!(
        "{folder} identical: named {} of {}, random {} of {} (left out 0); tcpcb rows {rows} with a difference {rows_off}",
        named.identical, named.all, random.identical, random.all
    );
}

fn compare_one(
    recording: &ClosedRecording,
    tolerance: Duration,
    in_full: bool,
) -> Result<(TransferComparison, Vec<String>), String> {
    let run = run::run(recording)?;
    let comparison = TransferComparison::of(recording, &run, tolerance);
    let states = match comparison.parts_at() {
        Some(ns) if in_full => states_around(recording, &run, ns),
        _ => Vec::new(),
    };
    Ok((comparison, states))
}

/// Returns whether `from` has directories of single recordings.
pub(super) fn can_import(from: &Path) -> bool {
    folders(from).is_ok_and(|folders| !folders.is_empty())
}

fn folders(from: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if path.is_dir() && files(&path)?.len() > 1 {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Packs each directory of single recordings below `from` into one file of the project's copy.
///
/// # Errors
/// The first file that cannot be read or written, by name.
pub(super) fn import(from: &Path) -> Result<(), String> {
    let named = |path: &Path, error: String| format!("{}: {error}", path.display());
    let place = own_copy(&from.file_name().unwrap_or_default().to_string_lossy());
    fs::create_dir_all(&place).map_err(|error| named(&place, error.to_string()))?;
    for folder in folders(from).map_err(|error| named(from, error.to_string()))? {
        let to = place.join(folder.file_name().unwrap_or_default()).with_added_extension("xz");
        let mut text = String::new();
        for file in files(&folder).map_err(|error| named(&folder, error.to_string()))? {
            text += &recording::unpack(&file).map_err(|error| named(&file, error))?;
        }
        let write = || -> io::Result<()> {
            let mut packer = XzWriter::new(fs::File::create(&to)?, XzOptions::with_preset(9))?;
            packer.write_all(text.as_bytes())?;
            packer.finish()?;
            Ok(())
        };
        write().map_err(|error| named(&to, error.to_string()))?;
        println!("{}", to.display());
    }
    Ok(())
}
