//! Execution of a study on several threads. The result of a run depends only on its number, so the
//! rows are the same for any number of threads; only their order of completion differs.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use logs::series::SeriesFormat;
use sim::scenario::Scenario;
use sim::{ObserverPair, RunError};

use super::SweepRow;
use crate::series::SenderSeries;
use crate::sharing::Sharing;
use crate::stop;
use scenario::SeriesPlan;
use scenario::{ScenarioError, Study};

/// Error that ends a study early.
#[derive(Debug)]
pub enum StudyError<E> {
    /// The values of this run are not a valid scenario.
    Scenario(u64, Vec<ScenarioError>),
    /// This run could not be set up, or the program panicked in it.
    Run(u64, String),
    /// A row could not be stored.
    Kept(E),
}

/// Executes the `runs` of `study` that are not `done` on `threads` threads. Each thread passes its
/// row to `keep` before it starts another run, so only runs in progress are unsaved. Ends early
/// without an error when `stop` is set; runs in progress are stopped.
///
/// # Errors
/// The error of the run with the lowest number, for any number of threads; rows finished before it
/// have been stored.
pub fn execute<E: Send>(
    study: &Study<'_>,
    runs: Range<u64>,
    done: &(dyn Fn(u64) -> bool + Sync),
    threads: usize,
    stop: &AtomicBool,
    keep: impl Fn(SweepRow) -> Result<(), E> + Sync,
) -> Result<(), StudyError<E>> {
    execute_with_series(study, runs, done, threads, None, stop, |row, _| keep(row))
}

/// The series of a run, as CSV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSeries {
    /// The columns of the senders' states.
    pub senders: Vec<u8>,
    /// Length and delay of the queue of every link, if the plan has them.
    pub queues: Option<Vec<u8>>,
}

/// As [`execute`]; each row comes with the series of its run if `series` is set.
///
/// # Errors
/// As for [`execute`].
pub fn execute_with_series<E: Send>(
    study: &Study<'_>,
    runs: Range<u64>,
    done: &(dyn Fn(u64) -> bool + Sync),
    threads: usize,
    series: Option<&SeriesPlan>,
    stop: &AtomicBool,
    keep: impl Fn(SweepRow, Option<RunSeries>) -> Result<(), E> + Sync,
) -> Result<(), StudyError<E>> {
    let end = runs.end.min(study.runs());
    let next = AtomicU64::new(runs.start);
    let over = AtomicBool::new(false);
    let broken: Mutex<Option<(u64, StudyError<E>)>> = Mutex::new(None);
    let work = || {
        let mut at_hand = CachedScenario::default();
        while !stop.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= end {
                break;
            }
            if done(run) {
                continue;
            }
            let error = match simulate(study, run, &mut at_hand, series, stop) {
                Ok((row, series)) => keep(row, series).err().map(StudyError::Kept),
                Err(RunFault::Scenario(errors)) => Some(StudyError::Scenario(run, errors)),
                Err(RunFault::Run(message)) => Some(StudyError::Run(run, message)),
                Err(RunFault::Stopped) => None,
            };
            if let Some(error) = error {
                over.store(true, Ordering::Relaxed);
                // Runs of lower numbers have started and will finish.
                let mut first = broken.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(other, _)| run < *other) {
                    *first = Some((run, error));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
    broken.map_or(Ok(()), |(_, error)| Err(error))
}

/// Error of a single run.
enum RunFault {
    Scenario(Vec<ScenarioError>),
    Run(String),
    Stopped,
}

/// The point loaded last and its scenario: its repetitions differ only in the seed.
#[derive(Default)]
struct CachedScenario(Option<(u64, Scenario)>);

impl CachedScenario {
    fn scenario(&mut self, study: &Study<'_>, run: u64) -> Result<&Scenario, Vec<ScenarioError>> {
        let point = run / study.repeat();
        let known = self.0.take().filter(|(known, _)| *known == point);
        let mut scenario = match known {
            Some((_, scenario)) => scenario,
            None => study.scenario(run)?,
        };
        scenario.set_seed(study.seed(run));
        Ok(&self.0.insert((point, scenario)).1)
    }
}

/// A row, and the series of its run.
type RunResult = (SweepRow, Option<RunSeries>);

fn simulate(
    study: &Study<'_>,
    run: u64,
    at_hand: &mut CachedScenario,
    series: Option<&SeriesPlan>,
    stop: &AtomicBool,
) -> Result<RunResult, RunFault> {
    let scenario = at_hand.scenario(study, run).map_err(RunFault::Scenario)?;
    let mut recorder = series.map(|plan| SenderSeries::new(scenario, plan));
    // A panic in one run must not affect the others.
    let work = || {
        let mut seen = match series {
            Some(plan) if plan.queues => Some(Sharing::detailed(scenario)),
            _ => Sharing::concerns(scenario).then(|| Sharing::new(scenario)),
        };
        let outcome = match (&mut recorder, &mut seen) {
            (None, None) => stop::run_shared(scenario, &mut record::NullRecorder, stop)?,
            (None, Some(seen)) => stop::run_sharing(scenario, seen, stop)?,
            (Some(recorder), None) => stop::run_shared(scenario, recorder, stop)?,
            (Some(recorder), Some(seen)) => {
                stop::run_shared(scenario, &mut ObserverPair(recorder, seen), stop)?
            }
        };
        let queues = seen.as_ref().filter(|_| series.is_some_and(|plan| plan.queues)).map(|seen| {
            let mut csv = Vec::new();
            // Writing into memory does not fail.
            let written = seen.write_queues(outcome.ended, &mut csv);
            debug_assert!(written.is_ok());
            csv
        });
        let report = seen.map(|seen| seen.report(scenario, &outcome)).unwrap_or_default();
        Ok::<_, RunError>((outcome, report, queues))
    };
    let (outcome, sharing, queues) = catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| {
            RunFault::Run("the program panicked, which is a bug; please report it".to_owned())
        })?
        .map_err(|error| match error {
            RunError::Stopped => RunFault::Stopped,
            RunError::Controller(_) | RunError::Stack(_) => RunFault::Run(error.to_string()),
            _ => RunFault::Run(format!("the scenario cannot be run: {error}")),
        })?;
    let series = recorder.map(|recorder| {
        let mut csv = Vec::new();
        // Writing into memory does not fail.
        let written = recorder.into_collector().write(SeriesFormat::Csv, &mut csv);
        debug_assert!(written.is_ok());
        RunSeries { senders: csv, queues }
    });
    Ok((SweepRow::new(study, run, scenario, &outcome, sharing), series))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::StudyOverrides;

    const STUDY: &str = "title = 'two hosts'\nduration = '10s'\nhost.a.profile = 'linux-6.18'\n\
        host.b.profile = 'linux-6.18'\n\
        path = [ { from = 'a', to = 'b', forward = [ { link = { rate = '1Gbit/s', buffer = '1MB' } }, \
        { delay = '1ms' } ], return = [ { delay = '1ms' } ] } ]\n\
        flow = [ { name = 'up', from = 'a', to = 'b', bulk = '10kB' } ]\n";

    fn grid(axes: &[&str], repeat: u64) -> StudyOverrides {
        let axes = axes.iter().map(|&axis| axis.to_owned()).collect();
        StudyOverrides { axes, repeat: Some(repeat), ..StudyOverrides::default() }
    }

    /// A crash loses only runs in progress, however slowly rows are written.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "writing takes time of the wall clock")]
    fn no_thread_starts_a_run_before_it_has_stored_the_last() {
        for threads in [1, 3] {
            let begun = AtomicU64::new(0);
            let kept = AtomicU64::new(0);
            let begins = |_| {
                begun.fetch_add(1, Ordering::SeqCst);
                false
            };
            let grid = grid(&["a.cc=cubic,reno"], 20);
            let study = Study::load(STUDY, "two.toml", &grid).unwrap();
            execute(&study, 0..40, &begins, threads, &AtomicBool::new(false), |_| {
                thread::sleep(core::time::Duration::from_millis(2));
                // Runs started and not stored, this one included. Other threads proceed between the
                // two loads.
                let begun = begun.load(Ordering::SeqCst);
                let kept = kept.fetch_add(1, Ordering::SeqCst);
                assert!(begun <= kept + threads as u64, "{begun} {kept}");
                Ok::<_, ()>(())
            })
            .unwrap();
            assert_eq!(kept.into_inner(), 40);
        }
    }

    #[test]
    fn the_first_failing_run_is_reported_for_any_number_of_threads() {
        // Each value is valid; a FreeBSD sender with Linux's controller is not.
        let grid = grid(&["a.profile=linux-6.18,freebsd-14.3", "a.cc=cubic,bbr"], 10);
        let study = Study::load(STUDY, "two.toml", &grid).unwrap();
        for threads in [1, 2, 7] {
            let kept = AtomicU64::new(0);
            let keep = |_| {
                kept.fetch_add(1, Ordering::SeqCst);
                Ok::<_, ()>(())
            };
            let stop = AtomicBool::new(false);
            let broken = execute(&study, 0..40, &|_| false, threads, &stop, keep);
            assert!(matches!(broken, Err(StudyError::Scenario(30, _))), "{broken:?}");
            assert_eq!(kept.into_inner(), 30);
        }
    }
}
