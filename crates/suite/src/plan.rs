//! The runs of a suite by number, so that they can be made anywhere in any order.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::criteria::SuiteCriterion;
use crate::evaluation::{Evaluation, NO_MORE, RunTag};
use crate::report::{CriterionReport, CriterionVerdict, SuiteReport};
use crate::{SuiteError, SuiteRequest};

/// A request with the criteria to evaluate, and their runs in a fixed order: a run is a world with one
/// sender and one draw. Rounds add runs where draws so far do not decide; the number of a run stays.
#[derive(Debug)]
pub struct SuitePlan<'a> {
    request: &'a SuiteRequest,
    criteria: Vec<PlannedCriterion>,
    runs: Vec<SuiteRun>,
}

#[derive(Debug)]
struct PlannedCriterion {
    criterion: &'static SuiteCriterion,
    /// Draws of the worlds that have more than at first.
    draws: BTreeMap<u32, u32>,
}

/// A run: the index of its criterion among those of the plan, and its world, sender and draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuiteRun {
    criterion: u32,
    tag: RunTag,
}

impl SuiteRun {
    /// The run as numbers, for another process.
    pub fn to_numbers(self) -> [u32; 4] {
        [self.criterion, self.tag.world, self.tag.sender, self.tag.draw]
    }

    /// The run of these numbers.
    pub fn from_numbers([criterion, world, sender, draw]: [u32; 4]) -> Self {
        Self { criterion, tag: RunTag { world, sender, draw } }
    }

    /// True for a run of a reference, which does not depend on the sender under test.
    pub fn is_of_reference(self) -> bool {
        self.tag.sender > 0
    }
}

impl<'a> SuitePlan<'a> {
    /// The plan of these criteria, with the draws of the request.
    pub fn new(request: &'a SuiteRequest, criteria: &[&'static SuiteCriterion]) -> Self {
        let planned = |&criterion| PlannedCriterion { criterion, draws: BTreeMap::new() };
        let criteria: Vec<_> = criteria.iter().map(planned).collect();
        let of = |(number, planned): (u32, &PlannedCriterion)| {
            let tags = Evaluation::tags(request, planned.criterion, &NO_MORE);
            tags.into_iter().map(move |tag| SuiteRun { criterion: number, tag }).collect::<Vec<_>>()
        };
        let runs = (0..).zip(&criteria).flat_map(of).collect();
        Self { request, criteria, runs }
    }

    /// The runs so far.
    pub fn runs(&self) -> &[SuiteRun] {
        &self.runs
    }

    /// Makes a run, of this round or a later one; its result as JSON, for [`SuitePlan::report`] of the
    /// same version.
    ///
    /// # Errors
    /// The world cannot be run, `stop` was set, or there is no such run.
    pub fn run(&self, run: SuiteRun, stop: &AtomicBool) -> Result<String, SuiteError> {
        let planned = self.criteria.get(run.criterion as usize);
        let no_criterion = || SuiteError::NoResult(format!("no criterion {}", run.criterion));
        let criterion = planned.ok_or_else(no_criterion)?.criterion;
        Evaluation::single(self.request, criterion, run.tag, stop)
    }

    /// Makes runs on `threads` threads; their results in order. `finished` is called after each with
    /// the number of finished ones.
    ///
    /// # Errors
    /// The first error in the order of the runs; `stop` ends them with an error.
    pub fn run_all(
        &self,
        runs: &[SuiteRun],
        threads: usize,
        stop: &AtomicBool,
        finished: &(impl Fn(usize) + Sync),
    ) -> Result<Vec<String>, SuiteError> {
        let next = AtomicUsize::new(0);
        let count = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let results: Vec<Mutex<Option<Result<String, SuiteError>>>> =
            runs.iter().map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, runs.len().max(1)) {
                scope.spawn(|| {
                    while !failed.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&run) = runs.get(at) else { return };
                        let result = self.run(run, stop);
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
        Ok(SuiteReport::new(self.request, self.reports(results)?))
    }

    fn reports(&self, results: &[String]) -> Result<Vec<CriterionReport>, SuiteError> {
        if results.len() != self.runs.len() {
            let message = format!("{} results of {} runs", results.len(), self.runs.len());
            return Err(SuiteError::NoResult(message));
        }
        let mut by_criterion: Vec<BTreeMap<RunTag, &str>> =
            self.criteria.iter().map(|_| BTreeMap::new()).collect();
        for (run, result) in self.runs.iter().zip(results) {
            if let Some(of) = by_criterion.get_mut(run.criterion as usize) {
                of.insert(run.tag, result);
            }
        }
        let report = |(planned, results): (&PlannedCriterion, &BTreeMap<RunTag, &str>)| {
            Evaluation::report(self.request, planned.criterion, &planned.draws, results)
        };
        self.criteria.iter().zip(&by_criterion).map(report).collect()
    }

    /// Adds a round: the worlds whose figures keep a criterion undecided get twice as many draws, up to
    /// the budget of the request. False if there is none.
    ///
    /// # Errors
    /// Those of [`SuitePlan::report`].
    pub fn add_round(&mut self, results: &[String]) -> Result<bool, SuiteError> {
        let reports = self.reports(results)?;
        let former = self.runs.len();
        for (number, (planned, report)) in (0..).zip(self.criteria.iter_mut().zip(&reports)) {
            if report.verdict != CriterionVerdict::Undecided {
                continue;
            }
            // What no run measures, more runs do not measure either.
            let open = report.figures.iter().filter(|one| one.is_undecided() && one.samples > 0);
            let mut worlds: Vec<u32> = open.filter_map(|figure| figure.world).collect();
            worlds.sort_unstable();
            worlds.dedup();
            let known: Vec<RunTag> =
                Evaluation::tags(self.request, planned.criterion, &planned.draws);
            for world in worlds {
                let has = known.iter().filter(|tag| tag.world == world && tag.sender == 0).count();
                let more = self.request.budget.min(2 * has as u32);
                if more as usize > has {
                    planned.draws.insert(world, more);
                }
            }
            let all = Evaluation::tags(self.request, planned.criterion, &planned.draws);
            let new = all.into_iter().filter(|tag| !known.contains(tag));
            self.runs.extend(new.map(|tag| SuiteRun { criterion: number, tag }));
        }
        Ok(self.runs.len() > former)
    }
}

/// Evaluates these criteria on `threads` threads. Worlds whose figures keep a criterion undecided get
/// twice as many draws, again and again until it is decided or they have those of the budget. The
/// report is the same for any number of threads. `finished` is called after each run with the number of
/// finished ones and of those known to be needed.
///
/// # Errors
/// The first error of a run, in their order; `stop` ends the runs with an error.
pub fn decide(
    request: &SuiteRequest,
    criteria: &[&'static SuiteCriterion],
    threads: usize,
    stop: &AtomicBool,
    finished: &(impl Fn(usize, usize) + Sync),
) -> Result<SuiteReport, SuiteError> {
    decide_with(request, criteria, &mut BTreeMap::new(), threads, stop, finished)
}

/// As [`decide`], with the results of the references that former calls left in `references`: they do
/// not depend on the sender under test. Suite, criteria, references and draws of the requests must be
/// the same.
///
/// # Errors
/// Those of [`decide`].
pub fn decide_with(
    request: &SuiteRequest,
    criteria: &[&'static SuiteCriterion],
    references: &mut BTreeMap<SuiteRun, String>,
    threads: usize,
    stop: &AtomicBool,
    finished: &(impl Fn(usize, usize) + Sync),
) -> Result<SuiteReport, SuiteError> {
    let mut plan = SuitePlan::new(request, criteria);
    let mut results: Vec<String> = Vec::new();
    loop {
        let new = &plan.runs()[results.len()..];
        let open: Vec<SuiteRun> =
            new.iter().copied().filter(|run| !references.contains_key(run)).collect();
        let (before, needed) = (plan.runs().len() - open.len(), plan.runs().len());
        let made = plan.run_all(&open, threads, stop, &|done| finished(before + done, needed))?;
        let mut own: BTreeMap<SuiteRun, String> = BTreeMap::new();
        for (run, result) in open.into_iter().zip(made) {
            if run.is_of_reference() { &mut *references } else { &mut own }.insert(run, result);
        }
        for run in new {
            let result = if run.is_of_reference() { references.get(run) } else { own.get(run) };
            results.push(result.cloned().unwrap_or_default());
        }
        if !plan.add_round(&results)? {
            return plan.report(&results);
        }
    }
}
