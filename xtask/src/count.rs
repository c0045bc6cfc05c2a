//! Instruction counts of fixed simulated transfers, by valgrind. Unlike times, they are not noisy
//! and show a slowdown of the engine, also in CI.
//!
//! The counts are committed in `counts.toml` and may change by 3 %; a larger intended change must
//! update them (`cargo xtask count --write`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use record::NullRecorder;
use scenario::{Overrides, load};
use serde::{Deserialize, Serialize};
use simtest::workloads::{GrowthSeries, OneFlow, WORKLOADS, growths, one_flow};

use crate::processors;

/// Maximum change of a count, in percent.
const BAND: f64 = 3.0;

/// Valgrind's pattern of the function whose instructions are counted; no other name matches.
const COUNTED: &str = "xtask::count::transfer*";

/// The committed counts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct InstructionCounts {
    /// The compiler used; another one generates other instructions.
    compiler: String,
    /// Instructions per data segment, ACKs included.
    per_segment: BTreeMap<String, f64>,
}

/// Returns name and scenario of each transfer.
fn named_scenarios() -> Vec<(String, String)> {
    let parts = [("W1", 1.0 / 30.0), ("W2", 0.1), ("W3", 0.03)];
    let of = |name| WORKLOADS.iter().find(|workload| workload.name == name);
    let mut all: Vec<(String, String)> = parts
        .into_iter()
        .filter_map(|(name, part)| Some((name.to_owned(), (of(name)?.scenario)(part))))
        .collect();
    let senders = [
        ("linux-6.18", "cubic"),
        ("freebsd-14.3", "newreno"),
        ("freebsd-14.3", "cubic"),
        ("freebsd-rack-14.3", "newreno"),
        ("rfc", "newreno"),
    ];
    for (profile, cc) in senders {
        let flow = OneFlow { profile, cc, millis: 2_000, ..OneFlow::W1 };
        all.push((format!("{profile} {cc}"), one_flow(&flow)));
    }
    all
}

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.toml")
}

/// Counts all transfers and compares them with the committed counts, or rewrites those.
pub(crate) fn run(write: bool) -> ExitCode {
    match counted(write) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn counted(write: bool) -> Result<ExitCode, String> {
    let compiler = output(Command::new("rustc").arg("--version"))?.trim().to_owned();
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions are not counted: valgrind is not installed");
        return Ok(ExitCode::SUCCESS);
    }
    let text = std::fs::read_to_string(place()).unwrap_or_default();
    let committed: InstructionCounts =
        toml::from_str(&text).map_err(|error| format!("counts.toml: {error}"))?;
    let mut fresh = InstructionCounts { compiler, ..InstructionCounts::default() };
    let mut moved = 0;
    println!("{:<28} {:>12} {:>12} {:>8}", "instructions/segment", "committed", "now", "");
    let names: Vec<String> = named_scenarios().into_iter().map(|(name, _)| name).collect();
    let counts = processors::workers().map(&names, |name| count(name, &[]))?;
    for (name, counts) in names.into_iter().zip(counts) {
        let now = (counts[0] * 10.0).round() / 10.0;
        let before = committed.per_segment.get(&name).copied();
        let change = before.map(|before| (now / before - 1.0) * 100.0);
        moved += u32::from(change.is_none_or(|change| change.abs() > BAND));
        let shown = |n: Option<f64>| n.map_or("none".to_owned(), |n| format!("{n:.1}"));
        let change = change.map_or(String::new(), |change| format!("{change:+.1} %"));
        println!("{name:<28} {:>12} {now:>12.1} {change:>8}", shown(before));
        fresh.per_segment.insert(name, now);
    }
    if write {
        let text = toml::to_string(&fresh).map_err(|error| error.to_string())?;
        std::fs::write(place(), text).map_err(|error| format!("counts.toml: {error}"))?;
    } else if moved > 0 && fresh.compiler != committed.compiler {
        println!("counted with {}, committed with {}", fresh.compiler, committed.compiler);
    } else if moved > 0 {
        println!(
            "{moved} moved by more than {BAND} %: if that is meant, `cargo xtask count --write`"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a transfer under valgrind and returns its counts per data segment: instructions, and the
/// counters that the options `more` enable.
fn count(name: &str, more: &[&str]) -> Result<Vec<f64>, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).args(more);
    valgrind.arg(format!("--toggle-collect={COUNTED}")).arg(own).args(["count", "--inside", name]);
    let done = valgrind.output().map_err(|error| format!("valgrind: {error}"))?;
    let reported = String::from_utf8_lossy(&done.stderr).into_owned();
    let segments = String::from_utf8_lossy(&done.stdout).trim().parse::<u64>();
    let collected = reported.lines().find_map(|line| line.split_once("Collected : "));
    let counts = collected.map(|(_, counts)| counts.split_whitespace().map(str::parse::<u64>));
    let counts = counts.and_then(|counts| counts.collect::<Result<Vec<u64>, _>>().ok());
    match (segments, counts) {
        (Ok(segments @ 1..), Some(counts)) if counts.first().is_some_and(|&first| first > 0) => {
            Ok(counts.into_iter().map(|count| count as f64 / segments as f64).collect())
        }
        _ => Err(format!("{name}: valgrind counted nothing\n{reported}")),
    }
}

/// Simulated caches: those of a core of an AMD EPYC, as far as valgrind supports them.
const CACHES: [&str; 4] =
    ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,8,64"];

/// Fraction of the usual duration of the scaling scenarios: valgrind is a hundred times slower than
/// the processor.
const SHARE: f64 = 0.1;
/// Maximum length of a scenario's text in bytes; longer ones take too long.
const LONG: usize = 5_000_000;

/// Returns name and scenario of each scaling scenario, except those that scale the duration, which
/// only changes the weight of the start.
fn growing() -> impl Iterator<Item = (String, String)> {
    let growths = growths(SHARE).into_iter().filter(|growth| !growth.title.starts_with("duration"));
    growths.flat_map(|GrowthSeries { title, worlds }| {
        let worlds = worlds.into_iter().filter(|(_, text)| text.len() < LONG);
        worlds.map(move |(label, text)| (format!("{title}: {label}"), text))
    })
}

/// Prints instructions and simulated cache misses per segment as one dimension grows, for the
/// tables of docs/ledger/speed.md.
pub(crate) fn run_growths() -> ExitCode {
    println!(
        "{:<44} {:>12} {:>10} {:>10} {:>10}",
        "for a segment", "instructions", "L1 instr", "L1 data", "L2"
    );
    let names: Vec<String> = growing().map(|(name, _)| name).collect();
    let counts = processors::map(&names, |name| count(name, &CACHES));
    for (name, counts) in names.iter().zip(&counts) {
        match counts.as_deref() {
            Ok(&[instructions, _, _, i1, d1_read, d1_write, l2_i, l2_read, l2_write]) => println!(
                "{name:<44} {instructions:>12.0} {i1:>10.1} {:>10.1} {:>10.1}",
                d1_read + d1_write,
                l2_i + l2_read + l2_write
            ),
            Ok(other) => println!("{name:<44} valgrind counted {other:?}"),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

/// Under valgrind: runs the transfer and prints its number of data segments.
pub(crate) fn run_inside(name: &str) -> ExitCode {
    let text = named_scenarios()
        .into_iter()
        .chain(growing())
        .find(|(own, _)| own == name)
        .map(|(_, text)| text);
    let loaded = text.and_then(|text| load(&text, name, &Overrides::default()).ok());
    let Some(loaded) = loaded else {
        eprintln!("there is no transfer {name:?}");
        return ExitCode::from(2);
    };
    println!("{}", transfer(&loaded.scenario));
    ExitCode::SUCCESS
}

/// The counted function.
#[inline(never)]
fn transfer(scenario: &sim::Scenario) -> u64 {
    sim::run(scenario, &mut NullRecorder).map_or(0, |outcome| outcome.segments)
}

fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
