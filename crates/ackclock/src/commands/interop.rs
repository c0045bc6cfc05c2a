//! `ackclock interop`: stacks in pairs over the path of a scenario.

use std::process::ExitCode;

use suite::interop::{self, InteropRequest, InteropStack};
use units::Duration;

use crate::cli::InteropArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{OutFile, print};
use crate::progress::CountProgress;
use crate::visible::ShownPath as _;

pub(super) fn run(args: InteropArgs) -> Result<ExitCode, Failure> {
    let (file, loaded) = super::load_scenario(args.scenario)?;
    let stacks: Vec<InteropStack> = args
        .stacks
        .iter()
        .map(|name| InteropStack::read(name, super::stack::programs(None)))
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::new(error.message).hint(error.hint))?;
    for (at, name) in args.stacks.iter().enumerate() {
        if args.stacks[..at].contains(name) {
            return Err(Failure::new(format!("--stacks names `{name}` twice")));
        }
    }
    let request = InteropRequest {
        scenario: &loaded.scenario,
        file: file.shown(),
        sha256: loaded.sha256.clone(),
        stacks,
        phases: args.phases,
        length: Duration::from_secs(u64::from(args.length)),
    };
    interop::validate(&request).map_err(|error| {
        Failure::new(error.to_string())
            .hint("the path needs a link: { link = { rate = ..., buffer = ... } }")
    })?;
    let mut page = args.report.as_deref().map(OutFile::create).transpose()?;
    let threads = args.jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get)
    });
    let stop = interrupt::orderly();
    let progress = CountProgress::new(request.simulations(), "runs");
    let report = interop::run(&request, threads, stop, &|done| progress.at(done));
    drop(progress);
    if interrupt::is_raised() {
        return Ok(interrupt::status());
    }
    let report = report.map_err(|error| Failure::new(error.to_string()))?;
    if let (Some(out), Some(path)) = (&mut page, &args.report) {
        let written = interop::page(&report).write(out);
        written.map_err(|error| Failure::file("write", path, &error))?;
    }
    if let Some(out) = page {
        out.commit()?;
    }
    print(&if args.json { report.to_json() } else { interop::render(&report) })?;
    Ok(ExitCode::SUCCESS)
}
