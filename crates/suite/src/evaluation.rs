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
use crate::report::{CriterionReport, FigureBound, SuiteFigure, WorldText};
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
    runs: usize,
    figures: Vec<SuiteFigure>,
    texts: Vec<WorldText>,
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
        Self { request, source, runs: 0, figures: Vec::new(), texts: Vec::new() }
    }

    /// The number of runs of a criterion: its worlds with each sender and start phase.
    pub(crate) fn count(request: &'a SuiteRequest, criterion: &SuiteCriterion) -> usize {
        let mut evaluation = Self::new(request, RunSource::Count);
        // Without runs there are no errors.
        let _ = (criterion.evaluate)(&mut evaluation);
        evaluation.runs
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
        Ok(CriterionReport::new(criterion, evaluation.figures, evaluation.texts))
    }

    /// The result of the next run, from its source.
    fn run<T: Default + Serialize + DeserializeOwned>(
        &mut self,
        make: impl FnOnce(&AtomicBool) -> Result<T, SuiteError>,
    ) -> Result<T, SuiteError> {
        let at = self.runs;
        self.runs += 1;
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
        let mut all = |sender: &SuiteSender| -> Result<Vec<RunMeasures>, SuiteError> {
            let worlds = worlds(sender);
            worlds.iter().map(|world| self.run(|stop| RunMeasures::of(world, stop))).collect()
        };
        let tested = all(&request.sender)?;
        let references = request.against.iter().map(all).collect::<Result<_, _>>()?;
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
        let senders = core::iter::once(&request.sender).chain(&request.against);
        let results = senders
            .map(|sender| self.run(|stop| measure(&build(sender), stop)))
            .collect::<Result<_, _>>()?;
        self.keep_text(|| build(&request.sender));
        Ok(results)
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
        let mean = |runs: &[RunMeasures]| {
            let mut sample = SampleStatistics::default();
            runs.iter().for_each(|run| sample.add(of(run)));
            sample
        };
        let tested = mean(&runs.tested);
        let references: Vec<f64> = runs.references.iter().map(|runs| mean(runs).mean).collect();
        self.add(format!("{}: {what}", runs.name), unit, margin, tested, &references);
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
        let mut samples = samples.iter().map(|values| {
            let mut sample = SampleStatistics::default();
            values.iter().for_each(|&value| sample.add(value));
            sample
        });
        let Some(tested) = samples.next() else { return };
        let references: Vec<f64> = samples.map(|sample| sample.mean).collect();
        self.add(format!("{world}: {what}"), unit, margin, tested, &references);
    }

    fn add(
        &mut self,
        name: String,
        unit: &str,
        margin: Margin,
        tested: SampleStatistics,
        references: &[f64],
    ) {
        let most = references.iter().copied().reduce(f64::max);
        let least = references.iter().copied().reduce(f64::min);
        let (bound, reference, limit) = match margin {
            Margin::AtMost { factor, free } => {
                (FigureBound::AtMost, most, most.map(|worst| (worst * factor).max(free)))
            }
            Margin::AtLeast { factor } => {
                (FigureBound::AtLeast, least, least.map(|worst| worst * factor))
            }
            Margin::Starvation => (
                FigureBound::AtLeast,
                least,
                Some(least.map_or(10.0, |worst| (worst / 2.0).min(10.0))),
            ),
            Margin::Most(limit) => (FigureBound::AtMost, most, Some(limit)),
            Margin::Info => (FigureBound::None, most, None),
        };
        let confidence = tested.confidence();
        let slack = confidence.unwrap_or(0.0);
        let holds = match (bound, limit) {
            (FigureBound::AtMost, Some(limit)) => tested.mean - slack <= limit,
            (FigureBound::AtLeast, Some(limit)) => tested.mean + slack >= limit,
            _ => true,
        };
        self.figures.push(SuiteFigure {
            name,
            unit: unit.to_owned(),
            value: tested.mean,
            confidence,
            reference,
            limit,
            bound,
            holds,
        });
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
