//! The evaluation of one criterion: worlds with the sender under test and with the references.
//!
//! The worlds of a criterion do not depend on its results. So an evaluation that runs nothing counts
//! them, one that runs a single world gives its result, and one with all results gives the report.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use serde::de::DeserializeOwned;
use units::Duration;

use crate::criteria::SuiteCriterion;
use crate::measure::RunMeasures;
use crate::report::{CriterionReport, SuiteFigure, WorldText};
use crate::sender::SuiteSender;
pub(crate) use crate::verdict::Margin;
use crate::verdict::MeasuredFigure;
use crate::world::SuiteWorld;
use crate::{SuiteError, SuiteRequest};

/// Start phases are drawn within this time.
const PHASE: Duration = Duration::from_secs(2);

/// An evaluation in progress.
#[derive(Debug)]
pub(crate) struct Evaluation<'a> {
    request: &'a SuiteRequest,
    source: RunSource<'a>,
    /// Draws of each world that has more than at first.
    draws: &'a BTreeMap<u32, u32>,
    /// Runs so far.
    tags: Vec<RunTag>,
    /// Worlds so far.
    worlds: u32,
    /// Most draws of a world.
    most_draws: u32,
    figures: Vec<MeasuredFigure>,
    texts: Vec<WorldText>,
}

/// A run of a criterion: number of the world, of the sender (0: the one under test), and of the draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunTag {
    pub(crate) world: u32,
    pub(crate) sender: u32,
    pub(crate) draw: u32,
}

/// Where the results of the runs come from.
#[derive(Debug)]
enum RunSource<'a> {
    /// Nowhere: the runs are counted.
    Count,
    /// One run is made, and its result kept as JSON.
    Single { tag: RunTag, stop: &'a AtomicBool, result: Option<String> },
    /// Runs made before: their results as JSON.
    Results(&'a BTreeMap<RunTag, &'a str>),
}

/// Runs of one world: with the sender under test, and with each reference.
#[derive(Debug)]
pub(crate) struct WorldRuns {
    name: String,
    /// Its number; `None` if all draws of it are the same run.
    number: Option<u32>,
    look: u32,
    tested: Vec<RunMeasures>,
    references: Vec<Vec<RunMeasures>>,
}

/// No world has more draws than at first.
pub(crate) static NO_MORE: BTreeMap<u32, u32> = BTreeMap::new();

impl<'a> Evaluation<'a> {
    fn new(
        request: &'a SuiteRequest,
        source: RunSource<'a>,
        draws: &'a BTreeMap<u32, u32>,
    ) -> Self {
        let (tags, figures, texts) = (Vec::new(), Vec::new(), Vec::new());
        Self { request, source, draws, tags, worlds: 0, most_draws: 1, figures, texts }
    }

    /// Makes a run of a criterion; its result as JSON.
    ///
    /// # Errors
    /// The world cannot be run; there is no such run.
    pub(crate) fn single(
        request: &'a SuiteRequest,
        criterion: &SuiteCriterion,
        tag: RunTag,
        stop: &'a AtomicBool,
    ) -> Result<String, SuiteError> {
        let source = RunSource::Single { tag, stop, result: None };
        let mut evaluation = Self::new(request, source, &NO_MORE);
        (criterion.evaluate)(&mut evaluation)?;
        let result = match evaluation.source {
            RunSource::Single { result, .. } => result,
            _ => None,
        };
        let RunTag { world, sender, draw } = tag;
        result.ok_or_else(|| {
            let run = format!("world {world}, sender {sender}, draw {draw}");
            SuiteError::NoResult(format!("{} has no run of {run}", criterion.section))
        })
    }

    /// The report of a criterion from the results of all its runs.
    ///
    /// # Errors
    /// A result is missing, or is not one of this version.
    pub(crate) fn report(
        request: &'a SuiteRequest,
        criterion: &SuiteCriterion,
        draws: &'a BTreeMap<u32, u32>,
        results: &'a BTreeMap<RunTag, &'a str>,
    ) -> Result<CriterionReport, SuiteError> {
        let mut evaluation = Self::new(request, RunSource::Results(results), draws);
        (criterion.evaluate)(&mut evaluation)?;
        let Self { figures, texts, most_draws, .. } = evaluation;
        let limited = figures.iter().filter(|figure| figure.is_limited()).count();
        let judge = |figure: MeasuredFigure| figure.judge(limited);
        let figures: Vec<SuiteFigure> = figures.into_iter().map(judge).collect();
        Ok(CriterionReport::new(criterion, most_draws.max(request.phases), figures, texts))
    }

    /// What each run of a criterion is, in order.
    pub(crate) fn tags(
        request: &'a SuiteRequest,
        criterion: &SuiteCriterion,
        draws: &'a BTreeMap<u32, u32>,
    ) -> Vec<RunTag> {
        let mut evaluation = Self::new(request, RunSource::Count, draws);
        // Without runs there are no errors.
        let _ = (criterion.evaluate)(&mut evaluation);
        evaluation.tags
    }

    /// The result of the next run, from its source.
    fn run<T: Default + Serialize + DeserializeOwned>(
        &mut self,
        at: RunTag,
        make: impl FnOnce(&AtomicBool) -> Result<T, SuiteError>,
    ) -> Result<T, SuiteError> {
        match &mut self.source {
            RunSource::Single { tag, stop, result } if *tag == at => {
                let made = serde_json::to_string(&make(stop)?);
                *result = Some(made.map_err(|error| SuiteError::NoResult(error.to_string()))?);
                Ok(T::default())
            }
            RunSource::Single { .. } => Ok(T::default()),
            RunSource::Count => {
                self.tags.push(at);
                Ok(T::default())
            }
            RunSource::Results(results) => {
                let result = results.get(&at).copied().unwrap_or_default();
                serde_json::from_str(result).map_err(|error| {
                    let RunTag { world, sender, draw } = at;
                    SuiteError::NoResult(format!(
                        "the result of world {world}, sender {sender}, draw {draw} cannot be read: \
                         {error}"
                    ))
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

    /// Runs a world with each sender, several times if anything in it is drawn.
    pub(crate) fn runs(
        &mut self,
        build: impl Fn(&SuiteSender) -> SuiteWorld,
    ) -> Result<WorldRuns, SuiteError> {
        let request = self.request;
        let number = self.next_world();
        let own = build(&request.sender);
        let at_first = own.draws(request);
        let draws = self.draws.get(&number).copied().unwrap_or(at_first);
        self.most_draws = self.most_draws.max(draws);
        // A single run may be of a later round.
        let draws = match &self.source {
            RunSource::Single { tag, .. } if tag.world != number => 0,
            RunSource::Single { tag, .. } => tag.draw.saturating_add(1),
            _ => draws,
        };
        let mut all = |at: u32, sender: &SuiteSender| -> Result<Vec<RunMeasures>, SuiteError> {
            let of_draw = |draw: u32| {
                let tag = RunTag { world: number, sender: at, draw };
                self.run(tag, |stop| RunMeasures::of(&build(sender).drawn(draw, request), stop))
            };
            (0..draws).map(of_draw).collect()
        };
        let tested = all(0, &request.sender)?;
        let references = (1..).zip(&request.against).map(|(at, sender)| all(at, sender));
        let references = references.collect::<Result<_, _>>()?;
        let name = own.name.clone();
        self.keep_text(|| {
            let world = own.drawn(0, request);
            WorldText::new(world.name.clone(), world.text())
        });
        // Each doubling of the draws is one more look.
        let look = 1 + doublings(at_first, draws);
        let number = (at_first > 1).then_some(number);
        Ok(WorldRuns { name, number, look, tested, references })
    }

    /// Runs a world with several flows: all but the first start up to two seconds later, by the draw.
    pub(crate) fn phases(
        &mut self,
        build: impl Fn(&SuiteSender) -> SuiteWorld,
    ) -> Result<WorldRuns, SuiteError> {
        self.runs(|sender| build(sender).starts_within(PHASE))
    }

    /// Runs a world once with each sender, the one under test first, and measures it.
    pub(crate) fn each<T: Default + Serialize + DeserializeOwned>(
        &mut self,
        build: impl Fn(&SuiteSender) -> WorldText,
        measure: impl Fn(&WorldText, &AtomicBool) -> Result<T, SuiteError>,
    ) -> Result<Vec<T>, SuiteError> {
        let request = self.request;
        let number = self.next_world();
        // Worlds may have hosts of the first reference beside those of the sender.
        let all: Vec<_> = core::iter::once(&request.sender).chain(&request.against).collect();
        let controllers: Vec<_> = all.iter().filter_map(|sender| sender.controller).collect();
        let built =
            |sender: &SuiteSender| WorldText { controllers: controllers.clone(), ..build(sender) };
        let results = (0..)
            .zip(&all)
            .map(|(at, sender)| {
                let tag = RunTag { world: number, sender: at, draw: 0 };
                self.run(tag, |stop| measure(&built(sender), stop))
            })
            .collect::<Result<_, _>>()?;
        self.keep_text(|| built(&request.sender));
        Ok(results)
    }

    fn next_world(&mut self) -> u32 {
        self.worlds += 1;
        self.worlds - 1
    }

    /// Adds a figure of these runs; a run without evidence for it gives `None`.
    pub(crate) fn figure<S: Into<Option<f64>>>(
        &mut self,
        runs: &WorldRuns,
        what: &str,
        unit: &str,
        margin: Margin,
        of: impl Fn(&RunMeasures) -> S,
    ) {
        let sample = |runs: &Vec<RunMeasures>| -> Vec<Option<f64>> {
            runs.iter().map(|run| of(run).into().filter(|value: &f64| value.is_finite())).collect()
        };
        self.figures.push(MeasuredFigure {
            name: format!("{}: {what}", runs.name),
            unit: unit.to_owned(),
            margin,
            tested: sample(&runs.tested),
            references: runs.references.iter().map(sample).collect(),
            world: runs.number,
            look: runs.look,
        });
    }

    /// Adds a figure that was measured once with each sender, the one under test first; `None` without
    /// evidence. Without a value there is no figure.
    pub(crate) fn compared<S: Into<Option<f64>> + Copy>(
        &mut self,
        world: &str,
        what: &str,
        unit: &str,
        margin: Margin,
        values: &[S],
    ) {
        let samples: Vec<Vec<S>> = values.iter().map(|&value| vec![value]).collect();
        self.sampled(world, what, unit, margin, &samples);
    }

    /// Adds a figure that was measured several times with each sender, the one under test first.
    pub(crate) fn sampled<S: Into<Option<f64>> + Copy>(
        &mut self,
        world: &str,
        what: &str,
        unit: &str,
        margin: Margin,
        samples: &[Vec<S>],
    ) {
        let sample = |values: &Vec<S>| -> Vec<Option<f64>> {
            let finite = |value: &S| (*value).into().filter(|value: &f64| value.is_finite());
            values.iter().map(finite).collect()
        };
        if let Some((tested, references)) = samples.split_first() {
            self.figures.push(MeasuredFigure {
                name: format!("{world}: {what}"),
                unit: unit.to_owned(),
                margin,
                tested: sample(tested),
                references: references.iter().map(sample).collect(),
                world: None,
                look: 1,
            });
        }
    }

    /// Adds the least share of a flow in any ten seconds.
    pub(crate) fn starvation(&mut self, runs: &WorldRuns, of: impl Fn(&RunMeasures) -> f64) {
        let what = "least share of a flow in 10 s, of the fair share";
        self.figure(runs, what, "%", Margin::Starvation, of);
    }
}

/// How often the number of draws was doubled, the last time perhaps in part.
fn doublings(at_first: u32, draws: u32) -> u32 {
    let ratio = draws.max(1).div_ceil(at_first.max(1));
    ratio.next_power_of_two().trailing_zeros()
}
