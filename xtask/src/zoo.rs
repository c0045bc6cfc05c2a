//! `cargo xtask zoo`: the suite of RFC 9743 on senders whose verdicts are known.
//!
//! Each criterion must fail at least one broken sender, or it tests nothing; no criterion may fail a
//! sound one, and each broken sender must fail. `--sample` runs three senders on the criteria that name
//! their faults, in a minute.

use core::num::NonZeroUsize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;

use clap::Parser;
use suite::zoo::{self, ZooSender};
use suite::{CriterionVerdict, RFC9743, SuiteCriterion, SuiteReport, SuiteRequest, SuiteSender};

/// The senders and criteria of `--sample`.
const SAMPLE: ([&str; 4], [&str; 4]) =
    (["never-reduces", "ignores-ecn", "self-starving", "own-reno"], ["5.1.1", "6.2", "7.1", "7.4"]);

/// Evaluates the zoo.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask zoo")]
struct ZooArgs {
    /// Three broken senders and a sound one on four criteria
    #[arg(long)]
    sample: bool,
    /// Only these senders
    #[arg(long, value_delimiter = ',')]
    sender: Vec<String>,
    /// Only these criteria
    #[arg(long, value_delimiter = ',')]
    criterion: Vec<String>,
    /// Draws of each world at first
    #[arg(long, default_value_t = suite::DEFAULT_DRAWS)]
    phases: u32,
    /// Most draws of a world
    #[arg(long, default_value_t = suite::DEFAULT_BUDGET)]
    budget: u32,
    /// Seed of the draws
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// Threads [default: as many as processors]
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Print the figures that fail and those that are undecided
    #[arg(long)]
    figures: bool,
}

pub(crate) fn run(options: &[OsString]) -> ExitCode {
    let arguments = core::iter::once(OsString::from("zoo")).chain(options.iter().cloned());
    let args = match ZooArgs::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(2);
        }
    };
    match evaluate(args) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            complaints.iter().for_each(|complaint| println!("{complaint}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn evaluate(mut args: ZooArgs) -> Result<Vec<String>, String> {
    if args.sample {
        args.sender = SAMPLE.0.map(str::to_owned).to_vec();
        args.criterion = SAMPLE.1.map(str::to_owned).to_vec();
    }
    let is_chosen =
        |names: &[String], name: &str| names.is_empty() || names.iter().any(|one| one == name);
    let criteria: Vec<&'static SuiteCriterion> = RFC9743
        .criteria
        .iter()
        .filter(|one| one.not_evaluated.is_none() && is_chosen(&args.criterion, one.section))
        .collect();
    let senders: Vec<&ZooSender> =
        zoo::senders().filter(|one| is_chosen(&args.sender, one.name)).collect();
    let jobs = args.jobs.or_else(|| thread::available_parallelism().ok());
    let jobs = jobs.map_or(1, NonZeroUsize::get);
    let mut references = BTreeMap::new();
    let mut failed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut complaints = Vec::new();
    for one in &senders {
        let sender = one.sender().map_err(|error| error.to_string())?;
        let request = SuiteRequest {
            phases: args.phases,
            budget: args.budget,
            seed: args.seed,
            ..request(sender)
        };
        let stop = AtomicBool::new(false);
        let report =
            suite::decide_with(&request, &criteria, &mut references, jobs, &stop, &|_, _| ())
                .map_err(|error| error.to_string())?;
        let sections = |verdict| -> Vec<&str> {
            let of = |one: &&&'static SuiteCriterion| {
                let found = report.criteria.iter().find(|of| of.section == one.section);
                found.is_some_and(|found| found.verdict == verdict)
            };
            criteria.iter().filter(of).map(|one| one.section).collect()
        };
        let fails = sections(CriterionVerdict::Fail);
        println!(
            "{:<6} {:<24} fails {:>2}, undecided {:>2} of {}: {}",
            if one.is_sound { "sound" } else { "broken" },
            one.name,
            fails.len(),
            sections(CriterionVerdict::Undecided).len(),
            criteria.len(),
            fails.join(" ")
        );
        if args.figures {
            print_figures(&report);
        }
        match (one.is_sound, fails.is_empty()) {
            (true, false) => {
                complaints.push(format!("{} is sound and fails {}", one.name, fails.join(", ")));
            }
            (false, true) => complaints.push(format!("{} is broken and fails nothing", one.name)),
            _ => {}
        }
        if !one.is_sound {
            fails.into_iter().for_each(|section| {
                failed.entry(section).or_default().insert(one.name);
            });
        }
    }
    // Without all senders a criterion may fail none of those that ran.
    let has_all = args.sender.is_empty() || args.sample;
    for criterion in criteria.iter().filter(|_| has_all) {
        match failed.get(criterion.section) {
            Some(names) => {
                println!("{:<6} fails {} broken senders", criterion.section, names.len());
            }
            None => complaints.push(format!("{} fails no broken sender", criterion.section)),
        }
    }
    Ok(complaints)
}

/// The request of all senders: their references are the same.
fn request(sender: SuiteSender) -> SuiteRequest {
    SuiteRequest::new(&RFC9743, sender)
}

fn print_figures(report: &SuiteReport) {
    for line in suite::text::render(report, false).lines().filter(|line| line.starts_with("    ")) {
        println!("{line}");
    }
}
