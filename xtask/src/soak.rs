//! Soak: hours of what may go wrong, in rounds that follow from a seed: random worlds, mutated inputs of every kind
//! through the command line, and sweeps that are killed or lose what they had not synced.

mod mutants;
mod stores;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::Parser;
use units::RandomStream;

use mutants::Mutants;
use stores::Stores;

/// Random worlds of a round.
const WORLDS: u64 = 200;
/// Mutated inputs of a round, of each kind.
const MUTANTS: u64 = 20;
/// Killed sweeps of a round, half of them with a power cut.
const SWEEPS: u64 = 2;

/// Runs rounds of worlds, mutated inputs, kills and power cuts.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask soak")]
struct SoakOptions {
    /// Hours after which no round begins.
    #[arg(long, default_value_t = 1.0)]
    hours: f64,
    /// Rounds, instead of hours.
    #[arg(long)]
    rounds: Option<u64>,
    /// Seed of all rounds.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// First round: repeats one of another soak.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Folder of failing inputs and of the result, `soak.md`.
    #[arg(long, default_value = "target/soak")]
    out: PathBuf,
}

/// Counts by kind: all, and those that failed.
#[derive(Debug, Default)]
struct SoakTally {
    counts: BTreeMap<&'static str, [u64; 2]>,
    failures: Vec<String>,
}

impl SoakTally {
    /// Counts one of a kind, which failed for this reason.
    fn add(&mut self, kind: &'static str, count: u64, failure: Option<String>) {
        let [all, failed] = self.counts.entry(kind).or_default();
        *all += count;
        if let Some(failure) = failure {
            *failed += 1;
            println!("soak: {kind}: {failure}");
            self.failures.push(format!("{kind}: {failure}"));
        }
    }

    fn page(&self, options: &SoakOptions, rounds: u64) -> String {
        let mut page = format!(
            "# Soak\n\n`cargo xtask soak --seed {} --from {} --rounds {rounds}`\n\n| kind | number | failed |\n|---|---|---|\n",
            options.seed, options.from
        );
        for (kind, [all, failed]) in &self.counts {
            // Writing to a String cannot fail.
            let _ = writeln!(page, "| {kind} | {all} | {failed} |");
        }
        for failure in &self.failures {
            let _ = writeln!(page, "\n- {failure}");
        }
        page
    }
}

pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let name = OsString::from("cargo xtask soak");
    let options = match SoakOptions::try_parse_from([name].iter().chain(arguments)) {
        Ok(options) => options,
        Err(error) => {
            // To standard output with --help, else to standard error.
            let _ = error.print();
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    match rounds(&options) {
        Ok(tally) if tally.failures.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "hours by the wall clock")]
fn rounds(options: &SoakOptions) -> Result<SoakTally, String> {
    let program = crate::growth::program()?;
    std::fs::create_dir_all(&options.out)
        .map_err(|error| format!("{}: {error}", options.out.display()))?;
    let out = options.out.canonicalize().map_err(|error| error.to_string())?;
    let mutants = Mutants::of(&program, &out)?;
    let stores = Stores::of(&program, &out)?;
    let mut tally = SoakTally::default();
    let begin = Instant::now();
    let limit = Duration::from_secs_f64(options.hours.clamp(0.0, 1e6) * 3_600.0);
    let mut round = 0;
    while options.rounds.map_or_else(|| begin.elapsed() < limit, |rounds| round < rounds) {
        let number = options.from + round;
        let mut draws = RandomStream::named(options.seed, &format!("round {number}"), "soak");
        let seed = draws.next_u64() >> 16;
        tally.add("worlds", WORLDS, worlds(seed));
        mutants.round(number, &mut draws, &mut tally);
        for sweep in 0..SWEEPS {
            stores.round(number, sweep % 2 == 1, &mut draws, &mut tally);
        }
        round += 1;
        let page = options.out.join("soak.md");
        std::fs::write(&page, tally.page(options, round))
            .map_err(|error| format!("{}: {error}", page.display()))?;
    }
    print!("{}", tally.page(options, round));
    Ok(tally)
}

/// Runs random worlds of a seed; the end of what they print if one failed.
fn worlds(seed: u64) -> Option<String> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    let (count, seed) = (WORLDS.to_string(), seed.to_string());
    let done = command.args(["worlds", "--count", &count, "--seed", &seed]).output().ok()?;
    if done.status.success() {
        return None;
    }
    let printed = [done.stdout, done.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let mut last: Vec<&str> = printed.lines().rev().take(5).collect();
    last.reverse();
    Some(format!("--seed {seed}: {}", last.join(" / ")))
}

/// Whether two files have the same bytes.
fn is_same(one: &Path, other: &Path) -> bool {
    matches!((std::fs::read(one), std::fs::read(other)), (Ok(one), Ok(other)) if one == other)
}
