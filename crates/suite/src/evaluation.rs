//! The evaluation of one criterion: worlds with the sender under test and with the references.

use std::sync::atomic::AtomicBool;

use runner::sweep::statistics::SampleStatistics;
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
pub struct Evaluation<'a> {
    request: &'a SuiteRequest,
    stop: &'a AtomicBool,
    figures: Vec<SuiteFigure>,
    texts: Vec<WorldText>,
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
    /// Evaluates a criterion.
    ///
    /// # Errors
    /// A world cannot be run.
    pub fn of(
        request: &'a SuiteRequest,
        criterion: &SuiteCriterion,
        stop: &'a AtomicBool,
    ) -> Result<CriterionReport, SuiteError> {
        let mut evaluation = Self { request, stop, figures: Vec::new(), texts: Vec::new() };
        (criterion.evaluate)(&mut evaluation)?;
        Ok(CriterionReport::new(criterion, evaluation.figures, evaluation.texts))
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
        let all = |sender: &SuiteSender| -> Result<Vec<RunMeasures>, SuiteError> {
            worlds(sender).iter().map(|world| RunMeasures::of(world, self.stop)).collect()
        };
        let tested = all(&self.request.sender)?;
        let references = self.request.against.iter().map(all).collect::<Result<_, _>>()?;
        let mut name = String::new();
        if let Some(world) = worlds(&self.request.sender).into_iter().next() {
            name.clone_from(&world.name);
            self.texts.push(WorldText { text: world.text(), name: world.name });
        }
        Ok(WorldRuns { name, tested, references })
    }

    /// Runs a world once with each sender, the one under test first, and measures it.
    pub(crate) fn each<T>(
        &mut self,
        build: impl Fn(&SuiteSender) -> WorldText,
        measure: impl Fn(&WorldText, &AtomicBool) -> Result<T, SuiteError>,
    ) -> Result<Vec<T>, SuiteError> {
        let tested = build(&self.request.sender);
        let mut results = vec![measure(&tested, self.stop)?];
        for reference in &self.request.against {
            results.push(measure(&build(reference), self.stop)?);
        }
        self.texts.push(tested);
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
        let Some((&tested, references)) = values.split_first() else { return };
        let mut sample = SampleStatistics::default();
        sample.add(tested);
        self.add(format!("{world}: {what}"), unit, margin, sample, references);
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
