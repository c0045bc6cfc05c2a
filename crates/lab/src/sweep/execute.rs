//! The runs of a study on several threads. What a run gives depends on its number alone, so the
//! rows are the same for any number of threads; only the order in which they come differs.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use cc::outside::Gone;
use record::{Event, Movement, Recorder, SenderState, Who};
use sim::Observer;
use trace::series::Form;
use units::Instant;

use super::Row;
use crate::leave::{Leaving, Left};
use crate::scenario::{ScenarioError, Study};
use crate::series::{Plan, SenderSeries};
use crate::sharing::Sharing;

/// Rows that wait for the one who keeps them, for each thread.
const WAITING: usize = 64;

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

/// Runs those `runs` of `study` that are not `done`, on `threads` threads, and hands each row to
/// `keep` on the calling thread. Ends early, without an error, once `stop` is set: runs under way
/// are left.
///
/// # Errors
/// The first that happened; rows that were finished by then have been kept.
pub fn execute<E>(
    study: &Study<'_>,
    runs: Range<u64>,
    done: &(dyn Fn(u64) -> bool + Sync),
    threads: usize,
    stop: &AtomicBool,
    mut keep: impl FnMut(Row) -> Result<(), E>,
) -> Result<(), Broken<E>> {
    execute_with_series(study, runs, done, threads, None, stop, |row, _| keep(row))
}

/// The same; each row comes with the series of its run as CSV, if `series` are wanted.
///
/// # Errors
/// The first that happened; rows that were finished by then have been kept.
pub fn execute_with_series<E>(
    study: &Study<'_>,
    runs: Range<u64>,
    done: &(dyn Fn(u64) -> bool + Sync),
    threads: usize,
    series: Option<&Plan>,
    stop: &AtomicBool,
    mut keep: impl FnMut(Row, Option<Vec<u8>>) -> Result<(), E>,
) -> Result<(), Broken<E>> {
    let threads = threads.max(1);
    let end = runs.end.min(study.runs());
    let next = AtomicU64::new(runs.start);
    let over = AtomicBool::new(false);
    let (sender, rows) = mpsc::sync_channel(WAITING * threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, over) = (&next, &over);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= end {
                        break;
                    }
                    if !done(run) && sender.send(simulate(study, run, series, stop)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut broken = None;
        for row in rows {
            let kept = match row {
                Ok((row, series)) if broken.is_none() => keep(row, series).map_err(Broken::Kept),
                Ok(_) => Ok(()),
                Err(Fault::Scenario(run, errors)) => Err(Broken::Scenario(run, errors)),
                Err(Fault::Run(run, message)) => Err(Broken::Run(run, message)),
                Err(Fault::Left) => Ok(()),
            };
            if let Err(error) = kept {
                over.store(true, Ordering::Relaxed);
                broken.get_or_insert(error);
            }
        }
        broken.map_or(Ok(()), Err)
    })
}

/// Why there is no row.
enum Fault {
    Scenario(u64, Vec<ScenarioError>),
    Run(u64, String),
    Left,
}

/// A row, and the series of its run.
type Done = (Row, Option<Vec<u8>>);

fn simulate(
    study: &Study<'_>,
    run: u64,
    series: Option<&Plan>,
    stop: &AtomicBool,
) -> Result<Done, Fault> {
    let scenario = study.scenario(run).map_err(|errors| Fault::Scenario(run, errors))?;
    let mut told = series.map(|plan| SenderSeries::new(&scenario, plan));
    // A fault of the program in one run must not take the others with it.
    let work = || {
        let mut seen = Sharing::concerns(&scenario).then(|| Sharing::new(&scenario));
        let outcome = match (&mut told, &mut seen) {
            (None, None) => sim::run(&scenario, &mut Leaving(&mut record::Off, stop))?,
            (None, Some(seen)) => sim::run(&scenario, &mut Leaving(seen, stop))?,
            (Some(told), None) => sim::run(&scenario, &mut Leaving(told, stop))?,
            (Some(told), Some(seen)) => {
                sim::run(&scenario, &mut Leaving(&mut Beside(told, seen), stop))?
            }
        };
        let report = seen.map(|seen| seen.report(&scenario, &outcome)).unwrap_or_default();
        Ok::<_, sim::SetupError>((outcome, report))
    };
    let (outcome, sharing) = catch_unwind(AssertUnwindSafe(work))
        .map_err(|thrown| match Left::is(&*thrown) {
            true => Fault::Left,
            false => Fault::Run(run, why(&thrown)),
        })?
        .map_err(|error| Fault::Run(run, format!("the scenario cannot be set up: {error:?}")))?;
    let series = told.map(|told| {
        let mut csv = Vec::new();
        // Writing into memory does not fail.
        let written = told.into_collector().write(Form::Csv, &mut csv);
        debug_assert!(written.is_ok());
        csv
    });
    Ok((Row::new(study, run, &outcome, sharing), series))
}

/// Why a run was left.
fn why(thrown: &Box<dyn Any + Send>) -> String {
    match thrown.downcast_ref::<Gone>() {
        Some(Gone(why)) => why.clone(),
        None => "the program failed, which is a fault of its own".to_owned(),
    }
}

/// Two that watch one run, lent for it.
struct Beside<'a>(&'a mut SenderSeries, &'a mut Sharing);

impl Recorder for Beside<'_> {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        self.0.record(at, who, event, state);
        self.1.record(at, who, event, state);
    }

    fn moved(&mut self, at: Instant, movement: Movement) {
        self.1.moved(at, movement);
    }
}

impl Observer for Beside<'_> {}
