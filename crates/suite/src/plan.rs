//! The runs of a suite by number, so that they can be made anywhere in any order.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::criteria::SuiteCriterion;
use crate::evaluation::{Evaluation, RunTag};
use crate::report::{CriterionVerdict, SuiteReport};
use crate::{SuiteError, SuiteRequest};

/// A request with the criteria to evaluate, and their runs in a fixed order: a run is a world with one
/// sender and one start phase.
#[derive(Debug)]
pub struct SuitePlan<'a> {
    request: &'a SuiteRequest,
    /// Each criterion with the number of its first run.
    criteria: Vec<(&'static SuiteCriterion, usize)>,
    runs: usize,
}

impl<'a> SuitePlan<'a> {
    /// The plan of these criteria.
    pub fn new(request: &'a SuiteRequest, criteria: &[&'static SuiteCriterion]) -> Self {
        let mut runs = 0;
        let mut first = |criterion: &'static SuiteCriterion| {
            let first = runs;
            runs += Evaluation::tags(request, criterion).len();
            (criterion, first)
        };
        let criteria = criteria.iter().map(|criterion| first(criterion)).collect();
        Self { request, criteria, runs }
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Makes a run; its result as JSON, for [`SuitePlan::report`] of the same version.
    ///
    /// # Errors
    /// The world cannot be run, `stop` was set, or there is no such run.
    pub fn run(&self, number: usize, stop: &AtomicBool) -> Result<String, SuiteError> {
        let after = self.criteria.partition_point(|&(_, first)| first <= number);
        let (criterion, first) = after
            .checked_sub(1)
            .and_then(|at| self.criteria.get(at))
            .ok_or_else(|| SuiteError::NoResult(format!("there is no run {number}")))?;
        Evaluation::single(self.request, criterion, number - first, stop)
    }

    /// Makes runs on `threads` threads; their results in the order of `numbers`. `finished` is called
    /// after each with the number of finished ones.
    ///
    /// # Errors
    /// The first error in the order of the runs; `stop` ends them with an error.
    pub fn run_all(
        &self,
        numbers: core::ops::Range<usize>,
        threads: usize,
        stop: &AtomicBool,
        finished: &(impl Fn(usize) + Sync),
    ) -> Result<Vec<String>, SuiteError> {
        self.run_some(&numbers.collect::<Vec<_>>(), threads, stop, finished)
    }

    fn run_some(
        &self,
        numbers: &[usize],
        threads: usize,
        stop: &AtomicBool,
        finished: &(impl Fn(usize) + Sync),
    ) -> Result<Vec<String>, SuiteError> {
        let next = AtomicUsize::new(0);
        let count = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let results: Vec<Mutex<Option<Result<String, SuiteError>>>> =
            numbers.iter().map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, numbers.len().max(1)) {
                scope.spawn(|| {
                    while !failed.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&number) = numbers.get(at) else { return };
                        let result = self.run(number, stop);
                        failed.fetch_or(result.is_err(), Ordering::Relaxed);
                        if let Ok(mut kept) = results[at].lock() {
                            *kept = Some(result);
                        }
                        finished(count.fetch_add(1, Ordering::Relaxed) + 1);
                    }
                });
            }
        });
        let results: Vec<_> =
            results.into_iter().map(|kept| kept.into_inner().ok().flatten()).collect();
        if let Some(error) = results.iter().flatten().find_map(|result| result.as_ref().err()) {
            return Err(error.clone());
        }
        let no_result = || SuiteError::NoResult("a thread ended early".to_owned());
        results.into_iter().map(|result| result.ok_or_else(no_result)?).collect()
    }

    /// The report from the results of all runs, in their order.
    ///
    /// # Errors
    /// A result is missing, or is not one of this version and these criteria.
    pub fn report(&self, results: &[String]) -> Result<SuiteReport, SuiteError> {
        if results.len() != self.runs {
            let message = format!("{} results of {} runs", results.len(), self.runs);
            return Err(SuiteError::NoResult(message));
        }
        let ends = self.criteria.iter().skip(1).map(|&(_, first)| first).chain([self.runs]);
        let reports = self.criteria.iter().zip(ends).map(|(&(criterion, first), end)| {
            Evaluation::report(self.request, criterion, &results[first..end])
        });
        Ok(SuiteReport::new(self.request, reports.collect::<Result<_, _>>()?))
    }
}

/// Evaluates these criteria on `threads` threads, those that stay undecided with twice as many start
/// phases, again and again until they are decided or have `budget`. The report is the same for any number
/// of threads. `finished` is called after each run with the number of finished ones and of those known to
/// be needed.
///
/// # Errors
/// The first error of a run, in their order; `stop` ends the runs with an error.
pub fn decide(
    request: &SuiteRequest,
    criteria: &[&'static SuiteCriterion],
    budget: u32,
    threads: usize,
    stop: &AtomicBool,
    finished: &(impl Fn(usize, usize) + Sync),
) -> Result<SuiteReport, SuiteError> {
    let mut report = SuiteReport::new(request, Vec::new());
    let mut known: BTreeMap<(&str, RunTag), String> = BTreeMap::new();
    let mut request = request.clone();
    let mut open = criteria.to_vec();
    let mut before = 0;
    loop {
        let plan = SuitePlan::new(&request, &open);
        let tags: Vec<(&str, RunTag)> = plan
            .criteria
            .iter()
            .flat_map(|(criterion, _)| {
                let tags = Evaluation::tags(&request, criterion);
                tags.into_iter().map(|tag| (criterion.section, tag))
            })
            .collect();
        let missing: Vec<usize> =
            (0..tags.len()).filter(|&number| !known.contains_key(&tags[number])).collect();
        let runs = before + missing.len();
        let results =
            plan.run_some(&missing, threads, stop, &|done| finished(before + done, runs))?;
        known.extend(missing.iter().zip(results).map(|(&number, result)| (tags[number], result)));
        before = runs;
        let results: Vec<String> =
            tags.iter().map(|tag| known.get(tag).cloned().unwrap_or_default()).collect();
        for criterion in plan.report(&results)?.criteria {
            let same = report.criteria.iter_mut().find(|one| one.section == criterion.section);
            match same {
                Some(same) => *same = criterion,
                None => report.criteria.push(criterion),
            }
        }
        open.retain(|criterion| {
            let is_open = |one: &crate::CriterionReport| {
                one.section == criterion.section && one.verdict == CriterionVerdict::Undecided
            };
            report.criteria.iter().any(is_open)
        });
        // More phases are of no use where nothing depends on them.
        let more = SuiteRequest { phases: budget.min(2 * request.phases), ..request.clone() };
        open.retain(|criterion| {
            Evaluation::tags(&more, criterion).len() > Evaluation::tags(&request, criterion).len()
        });
        if open.is_empty() {
            return Ok(report);
        }
        request = more;
    }
}
