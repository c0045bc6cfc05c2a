//! `ackclock suite`: standard evaluations of a congestion controller.

mod bbr;
mod flent;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use scenario::nearest;
use suite::baseline::{self, SuiteRegression};
use suite::{
    CriterionVerdict, FlentTest, RFC9743, SLOW_START, Suite, SuiteCriterion, SuiteReport,
    SuiteRequest, SuiteSender, TCPEVAL,
};

use crate::cli::{SuiteArgs, SuiteCommand};
use crate::failure::Failure;
use crate::input;
use crate::interrupt;
use crate::output::{OutFile, print};
use crate::progress::CountProgress;
use crate::visible::ShownPath as _;

/// Exit status if no criterion fails and one is undecided.
const UNDECIDED: u8 = 3;

pub(super) fn run(command: SuiteCommand) -> Result<ExitCode, Failure> {
    match command {
        SuiteCommand::Rfc9743(args) => evaluate(&RFC9743, &args),
        SuiteCommand::SlowStart(args) => evaluate(&SLOW_START, &args),
        SuiteCommand::Tcpeval(args) => evaluate(&TCPEVAL, &args),
        SuiteCommand::Bbr(args) => bbr::run(&args),
        SuiteCommand::Rrul(args) => flent::run(FlentTest::Rrul, &args),
        SuiteCommand::RttFair(args) => flent::run(FlentTest::RttFair, &args),
        SuiteCommand::TcpNup(args) => flent::run(FlentTest::TcpNup, &args),
    }
}

fn evaluate(suite: &'static Suite, args: &SuiteArgs) -> Result<ExitCode, Failure> {
    let mut request = SuiteRequest::new(suite, with_knobs(sender(&args.cc)?, &args.knob)?);
    if !args.against.is_empty() {
        request.against = args.against.iter().map(|name| sender(name)).collect::<Result<_, _>>()?;
    }
    if suite.is_drawn {
        request.phases = args.phases;
        request.budget = args.budget.unwrap_or(suite::DEFAULT_BUDGET).max(args.phases);
        request.noise = args.noise;
        request.seed = args.seed;
    }
    let criteria = chosen(suite, &args.criterion)?;
    let before = args.baseline.as_deref().map(read_baseline).transpose()?;
    let mut junit = args.junit.as_deref().map(OutFile::create).transpose()?;
    let mut sarif = args.sarif.as_deref().map(OutFile::create).transpose()?;
    let mut page = args.report.as_deref().map(OutFile::create).transpose()?;
    let markdown_path = args.markdown.as_ref().and_then(Option::as_deref);
    let mut markdown = markdown_path.map(OutFile::create).transpose()?;
    let threads = args.jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get)
    });
    let stop = interrupt::orderly();
    let progress = CountProgress::new(0, "runs");
    let finished = |done: usize, runs: usize| progress.of(done as u64, runs as u64);
    let report = suite::decide(&request, &criteria, threads, stop, &finished);
    drop(progress);
    if interrupt::is_raised() {
        return Ok(interrupt::status());
    }
    let report = report.map_err(|error| Failure::new(error.to_string()))?;
    let worse = match &before {
        Some(before) => baseline::regressions(before, &report)
            .map_err(|error| Failure::new(error.to_string()))?,
        None => Vec::new(),
    };
    if let (Some(out), Some(path)) = (&mut junit, &args.junit) {
        let written = out.write_all(suite::junit::render(&report).as_bytes());
        written.map_err(|error| Failure::file("write", path, &error))?;
    }
    if let (Some(out), Some(path)) = (&mut sarif, &args.sarif) {
        let written = out.write_all(suite::sarif::render(&report, &worse).as_bytes());
        written.map_err(|error| Failure::file("write", path, &error))?;
    }
    if let (Some(out), Some(path)) = (&mut page, &args.report) {
        let written = suite::page::page(&report).write(out);
        written.map_err(|error| Failure::file("write", path, &error))?;
    }
    if let (Some(out), Some(path)) = (&mut markdown, markdown_path) {
        let written = out.write_all(suite::markdown::render(&report).as_bytes());
        written.map_err(|error| Failure::file("write", path, &error))?;
    }
    for out in [junit, sarif, page, markdown].into_iter().flatten() {
        out.commit()?;
    }
    if let Some(dir) = &args.worlds {
        write_worlds(&report, dir)?;
    }
    if args.json {
        print(&report.to_json())?;
    } else if matches!(args.markdown, Some(None)) {
        print(&suite::markdown::render(&report))?;
    } else {
        print(&suite::text::render(&report, args.full))?;
    }
    if before.is_some() && !args.json {
        print(&against_baseline(&worse))?;
    }
    let fails = if before.is_some() { !worse.is_empty() } else { !report.passes() };
    Ok(match report.count(CriterionVerdict::Undecided) {
        _ if fails => ExitCode::from(1),
        0 => ExitCode::SUCCESS,
        // A baseline asks only what became worse.
        _ if before.is_some() => ExitCode::SUCCESS,
        _ => ExitCode::from(UNDECIDED),
    })
}

/// The regressions as text.
fn against_baseline(worse: &[SuiteRegression]) -> String {
    if worse.is_empty() {
        return "nothing is worse than the baseline\n".to_owned();
    }
    let lines = worse.iter().map(|one| format!("worse: {} {}\n", one.section, one.what));
    lines.collect()
}

fn sender(name: &str) -> Result<SuiteSender, Failure> {
    super::sender(name)
}

fn with_knobs(sender: SuiteSender, knobs: &[String]) -> Result<SuiteSender, Failure> {
    knobs.iter().try_fold(sender, |sender, knob| {
        sender.with_knob(knob).map_err(|error| Failure::new(error.message).hint(error.hint))
    })
}

fn chosen(
    suite: &'static Suite,
    sections: &[String],
) -> Result<Vec<&'static SuiteCriterion>, Failure> {
    for section in sections {
        if !suite.criteria.iter().any(|criterion| criterion.section == section) {
            let names: Vec<&str> =
                suite.criteria.iter().map(|criterion| criterion.section).collect();
            let failure = Failure::new(format!("{} has no criterion `{section}`", suite.title));
            return Err(failure.hint(match nearest(section, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the criteria are {}", names.join(", ")),
            }));
        }
    }
    let all = suite.criteria.iter();
    Ok(all
        .filter(|one| sections.is_empty() || sections.iter().any(|name| name == one.section))
        .collect())
}

fn read_baseline(path: &Path) -> Result<SuiteReport, Failure> {
    let bytes = input::read(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("{}: not a text file", path.shown())))?;
    SuiteReport::from_json(&text).map_err(|error| {
        Failure::new(format!("{}: not a report of a suite: {error}", path.shown()))
            .hint("write one with: ackclock suite rfc9743 --cc SENDER --json > FILE")
    })
}

fn write_worlds(report: &SuiteReport, dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| Failure::file("create", dir, &error))?;
    for world in report.criteria.iter().flat_map(|criterion| &criterion.texts) {
        let path = dir.join(format!("{}.toml", world.name));
        let mut out = OutFile::create(&path)?;
        let written = out.write_all(world.text.as_bytes());
        written.map_err(|error| Failure::file("write", &path, &error))?;
        out.commit()?;
    }
    Ok(())
}
