//! `ackclock hunt`: the search for the worst case of a congestion controller.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use hunt::{HuntError, HuntReport, HuntRequest};
use scenario::nearest;

use crate::cli::HuntArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{OutFile, print};
use crate::progress::CountProgress;

pub(super) fn run(args: &HuntArgs) -> Result<ExitCode, Failure> {
    let goal = args.goal;
    let sender = super::sender(&args.cc)?;
    let limit = args.limit.unwrap_or(goal.default_limit());
    if !(limit.is_finite() && limit > 0.0) {
        return Err(Failure::new(format!("--limit {limit}: expected a number above 0")));
    }
    let request = HuntRequest {
        sender,
        goal,
        limit,
        without: args.without.clone(),
        worlds: args.worlds,
        seed: args.seed,
    };
    if args.space {
        print(&hunt::describe_space(&request).map_err(|error| failure(&error))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let threads = args.jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get)
    });
    let stop = interrupt::orderly();
    let progress = CountProgress::new(args.worlds as u64, "worlds");
    let report = hunt::run(&request, threads, stop, &|tried| progress.at(tried as u64));
    drop(progress);
    if interrupt::is_raised() {
        return Ok(interrupt::status());
    }
    let report = report.map_err(|error| failure(&error))?;
    if let Some(dir) = &args.out {
        write_cases(&report, dir)?;
    }
    print(&if args.json { report.to_json() } else { report.to_text() })?;
    Ok(ExitCode::from(u8::from(!report.cases.is_empty())))
}

fn failure(error: &HuntError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        HuntError::Unknown(name) => failure.hint(match nearest(name, hunt::dimension_names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`ackclock hunt --space` lists the names".to_owned(),
        }),
        HuntError::World(_) => failure,
    }
}

fn write_cases(report: &HuntReport, dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| Failure::file("create", dir, &error))?;
    for (number, case) in (1..).zip(&report.cases) {
        let path = dir.join(format!("{}.toml", case.file_name(number)));
        let mut out = OutFile::create(&path)?;
        let written = out.write_all(case.scenario.as_bytes());
        written.map_err(|error| Failure::file("write", &path, &error))?;
        out.commit()?;
    }
    Ok(())
}
