//! `ackclock reproduce`: published figures next to Ackclock's measurements.

use std::process::ExitCode;

use reproduce::cases::{CASES, Case, CaseReport, find, text};
use reproduce::reproduce_page;
use scenario::nearest;

use crate::cli::ReproduceArgs;
use crate::failure::Failure;
use crate::output::{OutFile, print};
use crate::progress::Spinner;

pub(super) fn run(args: &ReproduceArgs) -> Result<ExitCode, Failure> {
    let cases = chosen(&args.cases)?;
    if args.list {
        list(&cases, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = args.report.as_deref().map(OutFile::create).transpose()?;
    let mut report = CaseReport::new();
    for case in cases {
        let spinner = Spinner::new(case.id);
        let result = case.run().map_err(|error| Failure::new(format!("{}: {error}", case.id)))?;
        drop(spinner);
        if !args.json {
            print(&if args.full { text::render(&result) } else { text::summary(&result) })?;
        }
        report.cases.push(result);
    }
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
    } else if !args.full {
        print(&end(&report))?;
    }
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The last lines of a summary: the verdict, and where the figures are.
fn end(report: &CaseReport) -> String {
    let rows = || report.cases.iter().flat_map(|case| &case.rows);
    let asserted = rows().filter(|row| row.holds.is_some()).count();
    let missed = rows().filter(|row| row.holds == Some(false)).count();
    let verdict = match missed {
        0 => format!("all {asserted} asserted figures hold"),
        missed => format!("{missed} of {asserted} asserted figures do not hold (exit status 1)"),
    };
    let names: Vec<&str> = report.cases.iter().map(|case| case.id).collect();
    let cases =
        if names.len() == CASES.len() { String::new() } else { format!(" {}", names.join(" ")) };
    format!("\n{verdict}\nEvery figure with its source: ackclock reproduce{cases} --full\n")
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
