//! The runs of a study on several threads. What a run gives depends on its number alone, so the
//! rows are the same for any number of threads; only the order in which they come differs.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use logs::series::Form;
use sim::scenario::Scenario;
use sim::{RunError, Watch};

use super::Row;
use crate::series::SenderSeries;
use crate::sharing::Sharing;
use crate::stop;
use scenario::Plan;
use scenario::{ScenarioError, Study};

/// Why a study came to an early end.
#[derive(Debug)]
pub enum Broken<E> {
    /// The values of this run do not go together.
    Scenario(u64, Vec<ScenarioError>),
    /// This run could not be set up, or the program failed in it.
    Run(u64, String),
    /// A row could not be kept.
    Kept(E),
}

/// Runs those `runs` of `study` that are not `done`, on `threads` threads. Each hands its row to
/// `keep` before it begins another run: what is not kept yet is under way. Ends early, without an
/// error, once `stop` is set: runs in progress are stopped.
///
/// # Errors
/// That of the run with the lowest number, for any number of threads; rows that were finished by
/// then have been kept.
pub fn execute<E: Send>(
    study: &Study<'_>,
    runs: Range<u64>,
    done: &(dyn Fn(u64) -> bool + Sync),
    threads: usize,
    stop: &AtomicBool,
    keep: impl Fn(Row) -> Result<(), E> + Sync,
) -> Result<(), Broken<E>> {
    execute_with_series(study, runs, done, threads, None, stop, |row, _| keep(row))
}

/// The same; each row comes with the series of its run as CSV, if `series` are wanted.
///
/// # Errors
/// As for [`execute`].
pub fn execute_with_series<E: Send>(
    study: &Study<'_>,
    runs: Range<u64>,
    done: &(dyn Fn(u64) -> bool + Sync),
    threads: usize,
    series: Option<&Plan>,
    stop: &AtomicBool,
    keep: impl Fn(Row, Option<Vec<u8>>) -> Result<(), E> + Sync,
) -> Result<(), Broken<E>> {
    let end = runs.end.min(study.runs());
    let next = AtomicU64::new(runs.start);
    let over = AtomicBool::new(false);
    let broken: Mutex<Option<(u64, Broken<E>)>> = Mutex::new(None);
    let work = || {
        let mut at_hand = AtHand::default();
        while !stop.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= end {
                break;
            }
            if done(run) {
                continue;
            }
            let error = match simulate(study, run, &mut at_hand, series, stop) {
                Ok((row, series)) => keep(row, series).err().map(Broken::Kept),
                Err(RunFault::Scenario(errors)) => Some(Broken::Scenario(run, errors)),
                Err(RunFault::Run(message)) => Some(Broken::Run(run, message)),
                Err(RunFault::Stopped) => None,
            };
            if let Some(error) = error {
                over.store(true, Ordering::Relaxed);
                // Runs of lower numbers have begun and come to their ends.
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

/// Why there is no row.
enum RunFault {
    Scenario(Vec<ScenarioError>),
    Run(String),
    Stopped,
}

/// The point whose scenario was read last, and that: its repetitions differ in their seeds alone.
#[derive(Default)]
struct AtHand(Option<(u64, Scenario)>);

impl AtHand {
    fn scenario(&mut self, study: &Study<'_>, run: u64) -> Result<&Scenario, Vec<ScenarioError>> {
        let point = run / study.repeat();
        let known = self.0.take().filter(|(known, _)| *known == point);
        let mut scenario = match known {
            Some((_, scenario)) => scenario,
            None => study.scenario(run)?,
        };
        scenario.seed = study.seed(run);
        Ok(&self.0.insert((point, scenario)).1)
    }
}

/// A row, and the series of its run.
type Done = (Row, Option<Vec<u8>>);

fn simulate(
    study: &Study<'_>,
    run: u64,
    at_hand: &mut AtHand,
    series: Option<&Plan>,
    stop: &AtomicBool,
) -> Result<Done, RunFault> {
    let scenario = at_hand.scenario(study, run).map_err(RunFault::Scenario)?;
    let mut told = series.map(|plan| SenderSeries::new(scenario, plan));
    // A fault of the program in one run must not take the others with it.
    let work = || {
        let mut seen = Sharing::concerns(scenario).then(|| Sharing::new(scenario));
        let outcome = match (&mut told, &mut seen) {
            (None, None) => stop::run(scenario, &mut record::Off, stop)?,
            (None, Some(seen)) => stop::run(scenario, seen, stop)?,
            (Some(told), None) => stop::run(scenario, told, stop)?,
            (Some(told), Some(seen)) => stop::run(scenario, &mut Watch(told, seen), stop)?,
        };
        let report = seen.map(|seen| seen.report(scenario, &outcome)).unwrap_or_default();
        Ok::<_, RunError>((outcome, report))
    };
    let (outcome, sharing) = catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| RunFault::Run("the program failed, which is a fault of its own".to_owned()))?
        .map_err(|error| match error {
            RunError::Stopped => RunFault::Stopped,
            RunError::Controller(_) => RunFault::Run(error.to_string()),
            _ => RunFault::Run(format!("the scenario cannot be run: {error}")),
        })?;
    let series = told.map(|told| {
        let mut csv = Vec::new();
        // Writing into memory does not fail.
        let written = told.into_collector().write(Form::Csv, &mut csv);
        debug_assert!(written.is_ok());
        csv
    });
    Ok((Row::new(study, run, &outcome, sharing), series))
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

    /// So that a crash costs no run but those under way, however slowly rows are written.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "writing takes time of the wall clock")]
    fn no_thread_begins_a_run_before_it_has_kept_the_last() {
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
                // What has begun and is not kept, this one included. Others go on between the two looks.
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
    fn the_first_run_that_cannot_be_done_is_told_whatever_the_threads() {
        // Each value is right; a sender of FreeBSD with Linux' controller is not.
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
            assert!(matches!(broken, Err(Broken::Scenario(30, _))), "{broken:?}");
            assert_eq!(kept.into_inner(), 30);
        }
    }
}
