//! `ackclock reproduce`: published figures next to Ackclock's measurements.

use std::process::ExitCode;

use reproduce::cases::{CASES, Case, CaseReport, Workers, find, summary, text};
use reproduce::reproduce_page;
use scenario::nearest;

use crate::cli::ReproduceArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{OutFile, print};
use crate::progress::{CountProgress, Spinner};
use crate::threads::threads;

pub(super) fn run(args: &ReproduceArgs) -> Result<ExitCode, Failure> {
    let cases = chosen(&args.cases)?;
    if args.list {
        list(&cases, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = args.report.as_deref().map(OutFile::create).transpose()?;
    let stop = interrupt::orderly();
    let workers = Workers::new(threads(args.jobs), stop);
    let progress = CountProgress::new(cases.len() as u64, "cases");
    let report = CaseReport::of(&cases, &workers, &|done| progress.at(done as u64));
    drop(progress);
    if interrupt::is_raised() {
        return Ok(interrupt::status());
    }
    let report = report.map_err(|(case, error)| Failure::new(format!("{}: {error}", case.id)))?;
    if let (Some(out), Some(path)) = (&mut page, &args.report) {
        let spinner = Spinner::new("the page");
        let page =
            reproduce_page::page(&report).map_err(|error| Failure::new(error.to_string()))?;
        drop(spinner);
        page.write(out).map_err(|error| Failure::file("write", path, &error))?;
    }
    page.map_or(Ok(()), OutFile::commit)?;
    if args.json {
        print(&report.to_json())?;
    } else {
        print(&as_text(&report, args.full))?;
    }
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The answer, then each case.
fn as_text(report: &CaseReport, full: bool) -> String {
    let mut text = summary::answer(report);
    for case in &report.cases {
        text.push('\n');
        text += &if full { text::render(case) } else { summary::summary(case) };
    }
    if !full {
        text += &summary::hint(report);
    }
    text
}

fn chosen(names: &[String]) -> Result<Vec<&'static Case>, Failure> {
    if names.is_empty() {
        return Ok(CASES.iter().collect());
    }
    let ids = || CASES.iter().map(|case| case.id);
    let case = |name: &String| {
        find(name).ok_or_else(|| {
            let failure = Failure::new(format!("unknown case `{name}`"));
            failure.hint(match nearest(name, ids()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("cases are {}", ids().collect::<Vec<_>>().join(", ")),
            })
        })
    };
    names.iter().map(case).collect()
}

fn list(cases: &[&'static Case], json: bool) -> Result<(), Failure> {
    if json {
        return print(&text::list_json(cases));
    }
    let lines = cases.iter().map(|case| format!("{:<16}  {}\n", case.id, case.title));
    print(&lines.collect::<String>())
}
