//! The evaluation of one criterion: worlds with the sender under test and with the references.
//!
//! The worlds of a criterion do not depend on its results. So an evaluation that runs nothing counts
//! them, one that runs a single world gives its result, and one with all results gives the report.

use std::sync::atomic::AtomicBool;

use runner::sweep::statistics::SampleStatistics;
use serde::Serialize;
use serde::de::DeserializeOwned;
use units::{Duration, RandomStream};

use crate::criteria::SuiteCriterion;
use crate::measure::RunMeasures;
use crate::report::{CriterionReport, FigureBound, FigureVerdict, SuiteFigure, WorldText};
use crate::sender::SuiteSender;
use crate::world::SuiteWorld;
use crate::{SuiteError, SuiteRequest};

/// Start phases are drawn within this time.
const PHASE: u64 = 2_000_000_000;

/// An evaluation in progress.
#[derive(Debug)]
pub(crate) struct Evaluation<'a> {
    request: &'a SuiteRequest,
    source: RunSource<'a>,
    /// Runs so far.
    tags: Vec<RunTag>,
    /// Worlds so far.
    worlds: u32,
    figures: Vec<SuiteFigure>,
    texts: Vec<WorldText>,
}

/// A run of a criterion: number of the world, of the sender and of the start phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunTag {
    world: u32,
    sender: u32,
    phase: u32,
}

/// Where the results of the runs come from.
#[derive(Debug)]
enum RunSource<'a> {
    /// Nowhere: the runs are counted.
    Count,
    /// One run is made, and its result kept as JSON.
    Single { number: usize, stop: &'a AtomicBool, result: Option<String> },
    /// Runs made before: their results as JSON, in order.
    Results(&'a [String]),
}

/// Runs of one world: with the sender under test, and with each reference.
#[derive(Debug)]
pub(crate) struct WorldRuns {
    name: String,
    tested: Vec<RunMeasures>,
    references: Vec<Vec<RunMeasures>>,
}

/// How far a figure may be from the worst reference.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Margin {
    /// At most the worst reference times the factor, and always if at most `free`.
    AtMost { factor: f64, free: f64 },
    /// At least the worst reference times the factor.
    AtLeast { factor: f64 },
    /// At least a tenth of the fair share, or half of the worst reference's.
    Starvation,
    /// At most this.
    Most(f64),
    /// No limit.
    Info,
}

impl<'a> Evaluation<'a> {
    fn new(request: &'a SuiteRequest, source: RunSource<'a>) -> Self {
        let (tags, figures, texts) = (Vec::new(), Vec::new(), Vec::new());
        Self { request, source, tags, worlds: 0, figures, texts }
    }

    /// Makes a run of a criterion; its result as JSON.
    ///
    /// # Errors
    /// The world cannot be run; there is no such run.
    pub(crate) fn single(
        request: &'a SuiteRequest,
        criterion: &SuiteCriterion,
        number: usize,
        stop: &'a AtomicBool,
    ) -> Result<String, SuiteError> {
        let source = RunSource::Single { number, stop, result: None };
        let mut evaluation = Self::new(request, source);
        (criterion.evaluate)(&mut evaluation)?;
        let result = match evaluation.source {
            RunSource::Single { result, .. } => result,
            _ => None,
        };
        result.ok_or_else(|| SuiteError::NoResult(format!("{}, run {number}", criterion.section)))
    }

    /// The report of a criterion from the results of all its runs.
    ///
    /// # Errors
    /// A result is missing, or is not one of this version.
    pub(crate) fn report(
        request: &'a SuiteRequest,
        criterion: &SuiteCriterion,
        results: &'a [String],
    ) -> Result<CriterionReport, SuiteError> {
        let mut evaluation = Self::new(request, RunSource::Results(results));
        (criterion.evaluate)(&mut evaluation)?;
        let Self { figures, texts, .. } = evaluation;
        Ok(CriterionReport::new(criterion, request.phases, figures, texts))
    }

    /// What each run of a criterion is, in order.
    pub(crate) fn tags(request: &'a SuiteRequest, criterion: &SuiteCriterion) -> Vec<RunTag> {
        let mut evaluation = Self::new(request, RunSource::Count);
        // Without runs there are no errors.
        let _ = (criterion.evaluate)(&mut evaluation);
        evaluation.tags
    }

    /// The result of the next run, from its source.
    fn run<T: Default + Serialize + DeserializeOwned>(
        &mut self,
        tag: RunTag,
        make: impl FnOnce(&AtomicBool) -> Result<T, SuiteError>,
    ) -> Result<T, SuiteError> {
        let at = self.tags.len();
        self.tags.push(tag);
        match &mut self.source {
            RunSource::Single { number, stop, result } if *number == at => {
                let made = serde_json::to_string(&make(stop)?);
                *result = Some(made.map_err(|error| SuiteError::NoResult(error.to_string()))?);
                Ok(T::default())
            }
            RunSource::Count | RunSource::Single { .. } => Ok(T::default()),
            RunSource::Results(results) => {
                let result = results.get(at).map_or("", String::as_str);
                serde_json::from_str(result).map_err(|error| {
                    SuiteError::NoResult(format!("the result of run {at} cannot be read: {error}"))
                })
            }
        }
    }

    /// Adds the scenario file of a world to the report.
    fn keep_text(&mut self, text: impl FnOnce() -> WorldText) {
        if matches!(self.source, RunSource::Results(_)) {
            self.texts.push(text());
        }
    }

    /// The references.
    pub(crate) fn references(&self) -> Vec<SuiteSender> {
        self.request.against.clone()
    }

    /// Runs a world once with each sender.
    pub(crate) fn runs(
        &mut self,
        build: impl Fn(&SuiteSender) -> SuiteWorld,
    ) -> Result<WorldRuns, SuiteError> {
        self.runs_of(|sender| vec![build(sender)])
    }

    /// Runs a world with several flows once for each start phase: all flows but the first start up
    /// to two seconds later, by the seed.
    pub(crate) fn phases(
        &mut self,
        build: impl Fn(&SuiteSender) -> SuiteWorld,
    ) -> Result<WorldRuns, SuiteError> {
        let phases = self.request.phases;
        self.runs_of(|sender| {
            let world = build(sender);
            (0..phases).map(|phase| shifted(&world, phase)).collect()
        })
    }

    fn runs_of(
        &mut self,
        worlds: impl Fn(&SuiteSender) -> Vec<SuiteWorld>,
    ) -> Result<WorldRuns, SuiteError> {
        let request = self.request;
        let number = self.next_world();
        let mut all = |at: u32, sender: &SuiteSender| -> Result<Vec<RunMeasures>, SuiteError> {
            let of_phase = |(phase, world): (u32, &SuiteWorld)| {
                let tag = RunTag { world: number, sender: at, phase };
                self.run(tag, |stop| RunMeasures::of(world, stop))
            };
            (0..).zip(&worlds(sender)).map(of_phase).collect()
        };
        let tested = all(0, &request.sender)?;
        let references = (1..).zip(&request.against).map(|(at, sender)| all(at, sender));
        let references = references.collect::<Result<_, _>>()?;
        let mut name = String::new();
        if let Some(world) = worlds(&request.sender).into_iter().next() {
            name.clone_from(&world.name);
            self.keep_text(|| WorldText { text: world.text(), name: world.name });
        }
        Ok(WorldRuns { name, tested, references })
    }

    /// Runs a world once with each sender, the one under test first, and measures it.
    pub(crate) fn each<T: Default + Serialize + DeserializeOwned>(
        &mut self,
        build: impl Fn(&SuiteSender) -> WorldText,
        measure: impl Fn(&WorldText, &AtomicBool) -> Result<T, SuiteError>,
    ) -> Result<Vec<T>, SuiteError> {
        let request = self.request;
        let number = self.next_world();
        let senders = core::iter::once(&request.sender).chain(&request.against);
        let results = (0..)
            .zip(senders)
            .map(|(at, sender)| {
                let tag = RunTag { world: number, sender: at, phase: 0 };
                self.run(tag, |stop| measure(&build(sender), stop))
            })
            .collect::<Result<_, _>>()?;
        self.keep_text(|| build(&request.sender));
        Ok(results)
    }

    fn next_world(&mut self) -> u32 {
        self.worlds += 1;
        self.worlds - 1
    }

    /// Adds a figure of these runs.
    pub(crate) fn figure(
        &mut self,
        runs: &WorldRuns,
        what: &str,
        unit: &str,
        margin: Margin,
        of: impl Fn(&RunMeasures) -> f64,
    ) {
        let samples: Vec<Vec<f64>> = core::iter::once(&runs.tested)
            .chain(&runs.references)
            .map(|runs| runs.iter().map(&of).collect())
            .collect();
        self.sampled(&runs.name, what, unit, margin, &samples);
    }

    /// Adds a figure that was measured once with each sender, the one under test first. Without a
    /// value there is no figure.
    pub(crate) fn compared(
        &mut self,
        world: &str,
        what: &str,
        unit: &str,
        margin: Margin,
        values: &[f64],
    ) {
        let samples: Vec<Vec<f64>> = values.iter().map(|&value| vec![value]).collect();
        self.sampled(world, what, unit, margin, &samples);
    }

    /// Adds a figure that was measured several times with each sender, the one under test first.
    pub(crate) fn sampled(
        &mut self,
        world: &str,
        what: &str,
        unit: &str,
        margin: Margin,
        samples: &[Vec<f64>],
    ) {
        if let Some((tested, references)) = samples.split_first() {
            let name = format!("{world}: {what}");
            self.figures.push(judged(name, unit, margin, tested, references));
        }
    }
}

impl Evaluation<'_> {
    /// Adds the least share of a flow in any ten seconds.
    pub(crate) fn starvation(&mut self, runs: &WorldRuns, of: impl Fn(&RunMeasures) -> f64) {
        self.figure(
            runs,
            "least share of a flow in 10 s, of the fair share",
            "%",
            Margin::Starvation,
            of,
        );
    }
}

/// The world with its flows, but for the first, started up to two seconds later.
fn shifted(world: &SuiteWorld, phase: u32) -> SuiteWorld {
    let mut world = world.clone();
    world.seed = u64::from(phase) + 1;
    let mut draws = RandomStream::named(world.seed, "suite", "start phases");
    for flow in world.flows.iter_mut().skip(1) {
        flow.start += Duration::from_nanos(draws.below(PHASE));
    }
    world
}

/// Judges a figure by its samples with the sender under test and with each reference, in the same start
/// phases.
fn judged(
    name: String,
    unit: &str,
    margin: Margin,
    tested: &[f64],
    references: &[Vec<f64>],
) -> SuiteFigure {
    let of = statistics(tested.iter().copied());
    let means =
        || references.iter().map(|values| (statistics(values.iter().copied()).mean, values));
    let most = means().max_by(|a, b| a.0.total_cmp(&b.0));
    let least = means().min_by(|a, b| a.0.total_cmp(&b.0));
    // The limit, and the factor of the reference that it is; none if it is fixed.
    let (bound, worst, limit, factor) = match margin {
        Margin::AtMost { factor, free } => {
            let limit = most.map(|(mean, _)| (mean * factor).max(free));
            let is_fixed = most.is_none_or(|(mean, _)| mean * factor <= free);
            (FigureBound::AtMost, most, limit, (!is_fixed).then_some(factor))
        }
        Margin::AtLeast { factor } => {
            (FigureBound::AtLeast, least, least.map(|(mean, _)| mean * factor), Some(factor))
        }
        Margin::Starvation => {
            let half = least.map(|(mean, _)| mean / 2.0).filter(|half| *half < 10.0);
            (FigureBound::AtLeast, least, Some(half.unwrap_or(10.0)), half.map(|_| 0.5))
        }
        Margin::Most(limit) => (FigureBound::AtMost, most, Some(limit), None),
        Margin::Info => (FigureBound::None, most, None, None),
    };
    let verdict = limit.map_or(FigureVerdict::Holds, |limit| {
        let limit_in = |phase: usize| match (factor, worst) {
            (Some(factor), Some((_, values))) => {
                values.get(phase).map_or(limit, |one| one * factor)
            }
            _ => limit,
        };
        // How far each phase is on the right side.
        let sign = if bound == FigureBound::AtMost { 1.0 } else { -1.0 };
        let room = (0..).zip(tested).map(|(phase, value)| sign * (limit_in(phase) - value));
        verdict(&statistics(room))
    });
    SuiteFigure {
        name,
        unit: unit.to_owned(),
        value: of.mean,
        confidence: of.confidence().filter(|half| *half > 0.0),
        reference: worst.map(|(mean, _)| mean),
        limit,
        bound,
        holds: verdict != FigureVerdict::Fails,
        verdict,
    }
}

fn statistics(values: impl Iterator<Item = f64>) -> SampleStatistics {
    let mut sample = SampleStatistics::default();
    values.for_each(|value| sample.add(value));
    sample
}

/// The verdict on a figure by the room that it leaves to its limit, negative beyond it.
fn verdict(room: &SampleStatistics) -> FigureVerdict {
    // A single run, and runs that do not differ, have no interval.
    let half = room.confidence().unwrap_or(0.0);
    match (room.mean - half >= 0.0, room.mean + half >= 0.0) {
        (true, _) => FigureVerdict::Holds,
        (false, false) => FigureVerdict::Fails,
        _ => FigureVerdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(margin: Margin, tested: &[f64], reference: &[f64]) -> FigureVerdict {
        judged(String::new(), "%", margin, tested, &[reference.to_vec()]).verdict
    }

    #[test]
    fn a_wide_interval_decides_nothing() {
        // Mean 7.0; 4.303 (Student's t, 2 degrees of freedom) times 8.2 over the root of 3 are 20.4.
        let wide = [-1.2, 7.0, 15.2];
        let ten = Margin::AtLeast { factor: 1.0 };
        assert_eq!(of(ten, &wide, &[10.0; 3]), FigureVerdict::Undecided);
        assert_eq!(of(ten, &[7.0; 3], &[10.0; 3]), FigureVerdict::Fails);
        assert_eq!(of(ten, &[11.0; 3], &[10.0; 3]), FigureVerdict::Holds);
        // On the right side is no more certain than on the wrong one.
        assert_eq!(of(Margin::Most(10.0), &wide, &[10.0; 3]), FigureVerdict::Undecided);
    }

    #[test]
    fn phases_are_compared_with_the_reference_in_the_same_phase() {
        let (tested, reference) = ([10.5, 20.5, 30.5], [10.0, 20.0, 30.0]);
        let margin = Margin::AtMost { factor: 1.0, free: 0.0 };
        assert_eq!(of(margin, &tested, &reference), FigureVerdict::Fails);
        assert_eq!(of(margin, &reference, &tested), FigureVerdict::Holds);
        assert_eq!(of(margin, &[20.5, 30.5, 10.5], &reference), FigureVerdict::Undecided);
    }

    #[test]
    fn a_figure_that_is_no_number_does_not_hold() {
        let margin = Margin::AtLeast { factor: 0.9 };
        assert_eq!(of(margin, &[f64::NAN], &[1.0]), FigureVerdict::Fails);
    }
}
