//! Recorded Linux transfers: one directory each, with the sender's state at every ACK.

mod closed_loop;
mod import;
mod packet_outcomes;
mod recording;
mod replay;
mod world;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) use self::import::import;
use super::rows::GoldenError;
use closed_loop::{ClosedLoopComparison, HEADING};
use recording::KstateRecording;

use crate::processors;

/// Result of a directory of transfers.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct LinuxVerdict {
    /// Transfers replayed.
    pub(super) replayed: u32,
    /// A field differed.
    pub(super) differ: bool,
    /// Something could not be read.
    pub(super) garbled: bool,
}

/// Returns the recorded transfers at `place`: itself or its directories, sorted by name.
pub(super) fn transfers(place: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if place.join("scenario.json").is_file() {
        found.push(place.to_path_buf());
    } else if place.is_dir() {
        for entry in fs::read_dir(place)? {
            let path = entry?.path();
            if path.join("scenario.json").is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Replays the transfers and prints a line for each sender.
pub(super) fn run(transfers: &[PathBuf]) -> LinuxVerdict {
    let mut verdict = LinuxVerdict::default();
    for transfer in transfers {
        for flow in 0.. {
            let file = transfer.join(format!("kstate_f{flow}.csv.gz"));
            if !file.is_file() {
                break;
            }
            if let Err(error) = replay_one(transfer, flow, &file, &mut verdict) {
                verdict.garbled = true;
                eprintln!("{}:{error}", file.display());
            }
        }
    }
    verdict
}

/// Runs the transfers in closed loop and prints each comparison.
pub(super) fn run_closed_loop(transfers: &[PathBuf]) -> Vec<ClosedLoopComparison> {
    let mut comparisons = Vec::new();
    if !transfers.is_empty() {
        println!("{HEADING}");
    }
    let compared = processors::map(transfers, |transfer| closed_loop::compare(transfer));
    for (transfer, comparison) in transfers.iter().zip(compared) {
        match comparison {
            Ok(comparison) => {
                println!("{comparison}");
                if let Some(startup) = comparison.startup() {
                    println!("  {startup}");
                }
                if comparison.misses() {
                    println!("  {}", comparison.first_difference());
                }
                comparisons.push(comparison);
            }
            Err(error) => {
                let name = transfer.file_name().unwrap_or_default().to_string_lossy();
                println!("{name} not run again: {error}");
            }
        }
    }
    let repeating = comparisons.iter().filter(|comparison| comparison.repeats());
    let off: Vec<i64> = repeating.map(|one| one.goodput_permille().abs()).collect();
    let within = |permille: i64| off.iter().filter(|&&off| off <= permille).count();
    let counted: Vec<bool> =
        comparisons.iter().filter_map(ClosedLoopComparison::same_events).collect();
    if !off.is_empty() {
        println!(
            "goodput of {} that repeat: {} within 5 %, {} within 10 %; recoveries and timeouts as \
             recorded in {} of {} with fixed losses",
            off.len(),
            within(50),
            within(100),
            counted.iter().filter(|&&same| same).count(),
            counted.len(),
        );
    }
    comparisons
}

fn replay_one(
    transfer: &Path,
    flow: u32,
    file: &Path,
    verdict: &mut LinuxVerdict,
) -> Result<(), GoldenError> {
    let name = transfer.file_name().unwrap_or_default().to_string_lossy();
    let recording = KstateRecording::open(file)?;
    let Some(tally) = replay::replay(&recording) else {
        println!("{name} flow {flow} followed by a test of crate cc: {:?}", recording.algorithm);
        return Ok(());
    };
    verdict.replayed += 1;
    verdict.differ |= tally.unexplained() > 0;
    println!(
        "{name} flow {flow} acks {} ({} in recovery) mismatches {}",
        tally.acks,
        tally.recovery_acks,
        tally.total()
    );
    for (column, count) in &tally.mismatches {
        let why = if replay::UNCERTAIN.contains(column) {
            " (the tick of a transmission is not recorded)"
        } else {
            ""
        };
        println!("  {column}: {count}{why}");
    }
    for first in &tally.first {
        println!("  {first}");
    }
    Ok(())
}
