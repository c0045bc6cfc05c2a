//! The test cases of the draft of BBR (draft-ietf-ccwg-bbr, ietf-wg-ccwg/draft-ietf-ccwg-bbr 4ce5e87d, appendix "BBR Example
//! Test Cases"): each a scenario and assertions on named state, over paths from 1 ms to 1 s and from 64 kbit/s to 10 Gbit/s.
//!
//! Reading order: `paths`, `world` (a scenario), `course` (what the sender's state did), `context` (a case on a path),
//! `cases` (one file per part of the state machine), `report`, `reference` (files that a stack can compare with), `judge` (a
//! qlog of a stack), `share` (BBR beside loss-based flows).
//!
//! A case passes if every assertion holds. An assertion of the appendix that the draft's own pseudocode cannot meet is a
//! *conflict*: it names both places and prints the figure, and does not fail the case.

mod cases;
mod context;
mod course;
mod judge;
mod paths;
mod reference;
mod report;
mod share;
mod world;

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

use crate::SuiteError;
use crate::sender::SuiteSender;

pub use cases::{BbrCase, CASES};
pub use course::{BbrCourse, PHASES};
pub use judge::{BbrLog, JudgeError, read_log};
pub use paths::{BbrPath, PATHS};
pub use reference::BbrReference;
pub use report::{BbrCheck, BbrReport, BbrResult, BbrVerdict};
pub use share::ShareTrial;

use context::CaseContext;

/// What to run.
#[derive(Debug, Clone)]
pub struct BbrRequest {
    /// The sender.
    pub sender: SuiteSender,
    /// The cases.
    pub cases: Vec<&'static BbrCase>,
    /// The paths.
    pub paths: Vec<&'static BbrPath>,
    /// Seed of the runs.
    pub seed: u64,
}

impl BbrRequest {
    /// Runs that it makes: cases times paths.
    pub fn runs(&self) -> usize {
        self.cases.len() * self.paths.len()
    }

    /// Runs every case on every path, on `threads` threads; `finished` gets the number of finished ones. The report is the
    /// same for any number of threads.
    ///
    /// # Errors
    /// The first error of a run, in their order; `stop` ends the runs with an error.
    pub fn run(
        &self,
        threads: usize,
        stop: &AtomicBool,
        finished: &(impl Fn(usize) + Sync),
    ) -> Result<(BbrReport, Vec<BbrReference>), SuiteError> {
        let pairs: Vec<(&BbrCase, &BbrPath)> = self
            .cases
            .iter()
            .flat_map(|&case| self.paths.iter().map(move |&path| (case, path)))
            .collect();
        let next = AtomicUsize::new(0);
        let done = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, pairs.len().max(1)) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&(case, path)) = pairs.get(at) else { break };
                        let mut context = CaseContext::new(path, &self.sender, self.seed, stop);
                        let result = case.run(&mut context);
                        let reference = context.into_reference(case, path);
                        if let Ok(mut all) = results.lock() {
                            all.push((at, result, reference));
                        }
                        finished(done.fetch_add(1, Ordering::Relaxed) + 1);
                    }
                });
            }
        });
        let mut all = results.into_inner().unwrap_or_default();
        all.sort_by_key(|(at, ..)| *at);
        let (mut rows, mut references) = (Vec::new(), Vec::new());
        for (_, result, reference) in all {
            rows.push(result?);
            references.extend(reference);
        }
        Ok((BbrReport::new(&self.sender, self.seed, rows), references))
    }
}
