//! `ackclock sweep`: runs a scenario over a grid on all cores and stores the results in a
//! directory.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use runner::sweep::{RunSeries, StudyError, SweepRow, execute_with_series};
use scenario::SeriesPlan;
use scenario::{Overrides, Study, StudyOverrides};

use super::table::{report, summary};
use crate::cli::SweepArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{OutFile, print};
use crate::progress::SweepProgress;
use crate::store::{Store, SweepDirectory};
use crate::visible::ShownPath as _;

/// More runs than this need `--yes`.
const MANY: u64 = 1_000_000;
/// Runs that a dry run shows.
const SHOWN: u64 = 20;

pub(super) fn run(args: SweepArgs) -> Result<ExitCode, Failure> {
    super::needs_features(args.parquet.is_some(), false)?;
    let Some(file) = args.scenario.file else {
        return Err(super::no_scenario());
    };
    let (name, text) = super::scenario_text(&file, true)?;
    let overrides = StudyOverrides {
        scenario: Overrides {
            set: args.scenario.set,
            seed: args.scenario.seed,
            files: super::files_beside(&file),
            stacks: super::stack::programs(None),
            ..Overrides::default()
        },
        axes: args.axis,
        repeat: args.repeat,
        only: args.only,
    };
    let study = Study::load(&text, &name, &overrides).map_err(Failure::Scenario)?;
    if let Some(run) = args.show {
        if run >= study.runs() {
            let message = format!("there is no run {run}: the last is {}", study.runs() - 1);
            return Err(Failure::new(message));
        }
        print(&study.text_of(run).map_err(Failure::Scenario)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.dry_run {
        print(&plan(&study))?;
        return Ok(ExitCode::SUCCESS);
    }
    if study.runs() > MANY && !args.yes {
        let message = format!("this sweep has {} runs", study.runs());
        return Err(Failure::new(message).hint("add --yes to run them all"));
    }
    let mut series = args.thinning.plan_or("--series", args.series.as_deref(), study.series())?;
    match &mut series {
        Some(series) => series.queues |= args.queues,
        None if args.queues => return Err(Failure::new("--queues needs --series")),
        None => {}
    }
    let dir = args.out.unwrap_or_else(|| beside(&file));
    let page = args.report.as_deref().map(OutFile::create).transpose()?;
    let store = match Store::open(&dir, &study, series.as_ref(), args.resume)? {
        SweepDirectory::Unfinished(store) => Some(store),
        SweepDirectory::Complete => None,
    };
    if let Some(store) = store
        && !work(&study, store, series.as_ref(), args.jobs)?
    {
        let message = format!("interrupted; --resume continues {}\n", dir.shown());
        crate::failure::print_error(&message);
        return Ok(interrupt::status());
    }
    if let Some(file) = &args.parquet {
        let file = file.clone().unwrap_or_else(|| dir.join("runs.parquet"));
        super::table::write_parquet(&dir, &file)?;
    }
    if let Some((path, out)) = args.report.as_deref().zip(page) {
        report(&dir, path, out)?;
    }
    print(&summary(&dir, args.json)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Executes the remaining runs; `false` if it was interrupted.
fn work(
    study: &Study<'_>,
    store: Store,
    series: Option<&SeriesPlan>,
    jobs: Option<usize>,
) -> Result<bool, Failure> {
    let stop = interrupt::orderly();
    let threads = jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get)
    });
    let done = store.done();
    let progress = SweepProgress::new(study.runs(), store.kept());
    let all = 0..study.runs();
    let is_done = |run: u64| done[run as usize];
    let keep = |row: SweepRow, series: Option<RunSeries>| {
        store.keep(&row, series.as_ref())?;
        progress.done(row.segments_simulated);
        Ok(())
    };
    let result = execute_with_series(study, all, &is_done, threads, series, stop, keep);
    drop(progress);
    result.map_err(|broken| match broken {
        StudyError::Scenario(run, errors) => {
            crate::failure::print_error(&format!("run {run} cannot be set up:\n"));
            Failure::Scenario(errors)
        }
        StudyError::Run(run, message) => Failure::new(format!("run {run}: {message}"))
            .hint(format!("add --show {run} to see its scenario")),
        StudyError::Kept(failure) => failure,
    })?;
    if !store.complete() {
        return Ok(false);
    }
    store.finish()?;
    Ok(true)
}

/// The default output directory: `slow.sweep` in the current directory for `some/where/slow.toml`.
fn beside(file: &Path) -> PathBuf {
    let name = file.to_str().and_then(|name| name.strip_prefix(samples::PREFIX));
    let file = name.map_or(file, Path::new);
    let stem = file.file_stem().unwrap_or_else(|| "sweep".as_ref());
    Path::new(stem).with_extension("sweep")
}

/// The text of a dry run.
fn plan(study: &Study<'_>) -> String {
    let runs = study.runs();
    let mut text = format!(
        "{runs} runs: {} of {} points, {} of each\n",
        runs / study.repeat(),
        study.size(),
        study.repeat()
    );
    for run in 0..runs.min(SHOWN) {
        let settings = study.settings(run).into_iter().map(|(key, value)| format!("{key}={value}"));
        let settings = settings.collect::<Vec<_>>().join("  ");
        text += &format!("{run:>6}  seed {}  {settings}\n", study.seed(run));
    }
    if runs > SHOWN {
        text += &format!("   ... and {} more\n", runs - SHOWN);
    }
    if let Some(most) = study.noise() {
        text += &format!(
            "noise {most}: without it the runs of a point would be identical, and phases decide\n"
        );
    }
    text
}
