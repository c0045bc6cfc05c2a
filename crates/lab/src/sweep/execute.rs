//! The runs of a study on several threads. What a run gives depends on its number alone, so the
//! rows are the same for any number of threads; only the order in which they come differs.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use cc::outside::Gone;

use super::Row;
use crate::scenario::{ScenarioError, Study};
use crate::sharing::{Sharing, SharingReport};

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
/// are finished and kept.
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
                    if !done(run) && sender.send(simulate(study, run)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut broken = None;
        for row in rows {
            let kept = match row {
                Ok(row) if broken.is_none() => keep(row).map_err(Broken::Kept),
                Ok(_) => Ok(()),
                Err(Fault::Scenario(run, errors)) => Err(Broken::Scenario(run, errors)),
                Err(Fault::Run(run, message)) => Err(Broken::Run(run, message)),
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
}

fn simulate(study: &Study<'_>, run: u64) -> Result<Row, Fault> {
    let scenario = study.scenario(run).map_err(|errors| Fault::Scenario(run, errors))?;
    // A fault of the program in one run must not take the others with it.
    let work = || {
        if !Sharing::concerns(&scenario) {
            return Ok((sim::run(&scenario, &mut record::Off)?, SharingReport::default()));
        }
        let mut seen = Sharing::new(&scenario);
        let outcome = sim::run(&scenario, &mut seen)?;
        let report = seen.report(&scenario, &outcome);
        Ok::<_, sim::SetupError>((outcome, report))
    };
    let (outcome, sharing) = catch_unwind(AssertUnwindSafe(work))
        .map_err(|thrown| Fault::Run(run, why(&thrown)))?
        .map_err(|error| Fault::Run(run, format!("the scenario cannot be set up: {error:?}")))?;
    Ok(Row::new(study, run, &outcome, sharing))
}

/// Why a run was left.
fn why(thrown: &Box<dyn Any + Send>) -> String {
    match thrown.downcast_ref::<Gone>() {
        Some(Gone(why)) => why.clone(),
        None => "the program failed, which is a fault of its own".to_owned(),
    }
}
