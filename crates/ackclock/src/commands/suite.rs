//! `ackclock suite`: standard evaluations of a congestion controller.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use scenario::nearest;
use suite::baseline::{self, SuiteRegression};
use suite::{RFC9743, SuiteCriterion, SuiteReport, SuiteRequest, SuiteSender};

use crate::cli::{SuiteArgs, SuiteCommand};
use crate::failure::Failure;
use crate::input;
use crate::interrupt;
use crate::output::{OutFile, print};
use crate::progress::CountProgress;

pub(super) fn run(command: SuiteCommand) -> Result<ExitCode, Failure> {
    match command {
        SuiteCommand::Rfc9743(args) => rfc9743(&args),
    }
}

fn rfc9743(args: &SuiteArgs) -> Result<ExitCode, Failure> {
    let request = SuiteRequest {
        sender: sender(&args.cc)?,
        against: args.against.iter().map(|name| sender(name)).collect::<Result<_, _>>()?,
        phases: args.phases,
    };
    let criteria = chosen(&args.criterion)?;
    let before = args.baseline.as_deref().map(read_baseline).transpose()?;
    let mut junit = args.junit.as_deref().map(OutFile::create).transpose()?;
    let mut sarif = args.sarif.as_deref().map(OutFile::create).transpose()?;
    let mut page = args.report.as_deref().map(OutFile::create).transpose()?;
    let threads = args.jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get)
    });
    let stop = interrupt::orderly();
    let progress = CountProgress::new(criteria.len() as u64, "criteria");
    let report = suite::run(&request, &criteria, threads, stop, &|done| progress.at(done as u64));
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
    for out in [junit, sarif, page].into_iter().flatten() {
        out.commit()?;
    }
    if let Some(dir) = &args.worlds {
        write_worlds(&report, dir)?;
    }
    if args.json {
        print(&report.to_json())?;
    } else if args.markdown {
        print(&suite::markdown::render(&report))?;
    } else {
        print(&suite::text::render(&report, args.full))?;
    }
    if before.is_some() && !args.json {
        print(&against_baseline(&worse))?;
    }
    let fails = if before.is_some() { !worse.is_empty() } else { !report.passes() };
    Ok(ExitCode::from(u8::from(fails)))
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
    SuiteSender::read(name).map_err(|error| Failure::new(error.message).hint(error.hint))
}

fn chosen(sections: &[String]) -> Result<Vec<&'static SuiteCriterion>, Failure> {
    for section in sections {
        if !RFC9743.iter().any(|criterion| criterion.section == section) {
            let names: Vec<&str> = RFC9743.iter().map(|criterion| criterion.section).collect();
            let failure = Failure::new(format!("RFC 9743 has no criterion `{section}`"));
            return Err(failure.hint(match nearest(section, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the criteria are {}", names.join(", ")),
            }));
        }
    }
    let all = RFC9743.iter();
    Ok(all
        .filter(|one| sections.is_empty() || sections.iter().any(|name| name == one.section))
        .collect())
}

fn read_baseline(path: &Path) -> Result<SuiteReport, Failure> {
    let bytes = input::read(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("{}: not a text file", path.display())))?;
    SuiteReport::from_json(&text).map_err(|error| {
        Failure::new(format!("{}: not a report of a suite: {error}", path.display()))
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
