//! An examiner of diagnoses and cures: draws transfers with faults, runs each in virtual time with the
//! fault, without it and with its cures, and compares what the program says with what that shows.
//!
//! The truth is never the program's own word: causes are what was drawn, and a fault costs what the same
//! transfer takes without it. A fault that costs less than 3 % or 50 ms is none; where two cost alike,
//! either is right.
//!
//! Reading order: [`case`] (a draw), [`world`] (hosts, path, applications), [`faults`], [`cures`] (the
//! truth about a cure), `own` (what is no fault and costs
//! something), [`capture`] (what a user would have captured), [`mod@judge`] (the answer),
//! [`table`] (the result of an exam).

pub mod capture;
pub mod case;
pub mod cures;
mod draft;
pub mod faults;
pub mod judge;
mod own;
mod random;
pub mod table;
pub mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use capture::{CapturePoint, RunCapture};

pub use capture::Engine;
pub use case::{Case, RunCase, Truth};
pub use draft::DataDirection;
pub use faults::{Fault, FaultKind};
pub use judge::{Answer, Verdict, judge};
pub use table::DrawResult;
pub use world::Transport;

/// The results of an exam, in the order of the draws.
#[derive(Debug, Clone, Default)]
pub struct Exam {
    /// Draws with their answers.
    pub results: Vec<DrawResult>,
    /// Draws that could not be run, with the reason.
    pub failures: Vec<(u64, String)>,
}

/// Runs and judges one draw.
///
/// # Errors
/// A scenario that cannot be run, or a capture that cannot be read, as text.
pub fn examine(
    transport: Transport,
    seed: u64,
    number: u64,
    engine: &Engine,
) -> Result<(RunCase, Answer), String> {
    let case = Case::draw(transport, seed, number).run(engine)?;
    let answer = judge(&case)?;
    Ok((case, answer))
}

/// What is examined.
#[derive(Debug, Clone)]
pub struct ExamPlan {
    /// Transport of all draws.
    pub transport: Transport,
    /// Seed of all draws.
    pub seed: u64,
    /// Their numbers.
    pub numbers: Vec<u64>,
    /// What runs the hosts.
    pub engine: Engine,
}

/// Runs the draws of a plan on `jobs` threads; `done` is called after each with the number done.
pub fn exam(plan: &ExamPlan, jobs: usize, done: impl Fn(usize) + Sync) -> Exam {
    let ExamPlan { transport, seed, ref numbers, ref engine } = *plan;
    let results: Vec<_> = numbers.iter().map(|_| Mutex::new(None)).collect();
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(&number), Some(slot)) = (numbers.get(index), results.get(index))
                    else {
                        return;
                    };
                    let result = examine(transport, seed, number, engine);
                    let result = result.map(|(case, answer)| DrawResult::of(&case, &answer));
                    if let Ok(mut slot) = slot.lock() {
                        *slot = Some(result);
                    }
                    done(finished.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    let mut exam = Exam::default();
    for (&number, result) in numbers.iter().zip(results) {
        match result.into_inner().ok().flatten() {
            Some(Ok(result)) => exam.results.push(result),
            Some(Err(error)) => exam.failures.push((number, error)),
            None => exam.failures.push((number, "the draw did not end".to_owned())),
        }
    }
    exam
}

impl RunCase {
    /// The files of the case: name and bytes. The scenario, its captures or its log, and the truth about it.
    ///
    /// # Errors
    /// A capture that cannot be written, as text.
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>, String> {
        let number = self.case.number;
        let truth = serde_json::to_vec_pretty(&table::TruthJson::of(self));
        let truth = truth.map_err(|error| error.to_string())?;
        let mut files = vec![
            (format!("{number}.toml"), self.text.clone().into_bytes()),
            (format!("{number}-truth.json"), truth),
        ];
        match &self.capture {
            RunCapture::Qlog(log) => files.push((format!("{number}-sender.sqlog"), log.clone())),
            RunCapture::Packets(_) => {
                let settings = &self.case.settings;
                let names = ["client", "server", "middle"];
                let has_middle = settings.point == CapturePoint::Middle;
                for (host, name) in names.into_iter().enumerate().take(2 + usize::from(has_middle))
                {
                    let capture = self.capture.pcap(host as u32, settings)?;
                    files.push((format!("{number}-{name}.pcap"), capture));
                }
            }
        }
        Ok(files)
    }
}
