//! Suites and hunts: their worlds by number, so that any process can run them.

use hunt::{HuntError, HuntGoal, HuntReport, HuntRequest, HuntWorld, WorldFigure};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::nearest;
use suite::{SUITES, SuiteCriterion, SuiteError, SuitePlan, SuiteRequest, SuiteRun, SuiteSender};

use crate::errors::RunError;
use crate::ran::html;
use crate::watch::watch;

/// A suite with its sender and criteria. It can be pickled: a worker elsewhere gets an equal object.
#[pyclass(frozen, module = "ackclock._engine")]
pub(crate) struct SuiteStudy {
    arguments: SuiteArguments,
    request: SuiteRequest,
    criteria: Vec<&'static SuiteCriterion>,
}

/// Name, sender, references, criteria, draws at first and at most, noise, seed, and knobs.
type SuiteArguments =
    (String, String, Vec<String>, Vec<String>, Option<u32>, Option<u32>, String, u32, Vec<String>);

/// A run as numbers.
type RunNumbers = [u32; 4];

#[pymethods]
impl SuiteStudy {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the arguments of a function in Python")]
    fn new(
        name: String,
        cc: String,
        against: Vec<String>,
        criteria: Vec<String>,
        phases: Option<u32>,
        budget: Option<u32>,
        noise: String,
        seed: u32,
        knobs: Vec<String>,
    ) -> PyResult<Self> {
        let suite = SUITES.into_iter().find(|suite| suite.name == name).ok_or_else(|| {
            let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            PyValueError::new_err(format!(
                "unknown suite {name:?}: expected {}",
                names.join(" or ")
            ))
        })?;
        let tested = knobs.iter().try_fold(sender(&cc)?, |sender, knob| {
            sender.with_knob(knob).map_err(|error| PyValueError::new_err(error.to_string()))
        })?;
        let chosen = if criteria.is_empty() {
            suite.criteria.iter().collect()
        } else {
            let sections = suite.criteria.iter().map(|criterion| criterion.section);
            if let Some(unknown) =
                criteria.iter().find(|one| sections.clone().all(|of| of != **one))
            {
                let hint = match nearest(unknown, sections.clone()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("the criteria are {}", sections.collect::<Vec<_>>().join(", ")),
                };
                let message = format!("{} has no criterion {unknown:?}; {hint}", suite.title);
                return Err(PyValueError::new_err(message));
            }
            let is_chosen =
                |criterion: &&SuiteCriterion| criteria.iter().any(|one| one == criterion.section);
            suite.criteria.iter().filter(is_chosen).collect::<Vec<&'static SuiteCriterion>>()
        };
        let mut request = SuiteRequest::new(suite, tested);
        if !against.is_empty() {
            request.against = against.iter().map(|name| sender(name)).collect::<PyResult<_>>()?;
        }
        if suite.is_drawn {
            request.phases = phases.unwrap_or(request.phases);
            request.budget = budget.unwrap_or(request.budget).max(request.phases);
            request.noise = noise
                .parse()
                .map_err(|wrong| PyValueError::new_err(format!("noise {noise:?}: {wrong}")))?;
            request.seed = seed;
        }
        let arguments = (name, cc, against, criteria, phases, budget, noise, seed, knobs);
        Ok(Self { arguments, request, criteria: chosen })
    }

    /// For pickle.
    fn __getnewargs__(&self) -> SuiteArguments {
        self.arguments.clone()
    }

    /// The runs after those with these results, in order: a world with a sender and a draw each. None
    /// if the results decide.
    #[allow(clippy::needless_pass_by_value)]
    fn runs_after(&self, results: Vec<String>) -> PyResult<Vec<RunNumbers>> {
        let plan = self.plan(&results, true).map_err(|error| failed(&error))?;
        let new = plan.runs().get(results.len()..).unwrap_or_default();
        Ok(new.iter().map(|run| run.to_numbers()).collect())
    }

    /// Makes these runs on `jobs` threads; their results in order.
    #[pyo3(signature = (runs, jobs, progress=None))]
    #[allow(clippy::needless_pass_by_value)]
    fn results(
        &self,
        py: Python<'_>,
        runs: Vec<RunNumbers>,
        jobs: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let runs: Vec<SuiteRun> = runs.into_iter().map(SuiteRun::from_numbers).collect();
        let plan = SuitePlan::new(&self.request, &self.criteria);
        let results = watch(py, runs.len() as u64, progress, |watched| {
            plan.run_all(&runs, jobs, watched.stop(), &|_| watched.more(1))
        })?;
        results.map_err(|error| failed(&error))
    }

    /// The report from the results of all runs: as JSON, as text, and as a page.
    #[allow(clippy::needless_pass_by_value)]
    fn report(&self, results: Vec<String>) -> PyResult<(String, String, String)> {
        let plan = self.plan(&results, false).map_err(|error| failed(&error))?;
        let report = plan.report(&results).map_err(|error| failed(&error))?;
        let page = html(&suite::page::page(&report))?;
        Ok((report.to_json(), suite::text::render(&report, true), page))
    }
}

impl SuiteStudy {
    /// The plan with the rounds of these results, and with `next` the one after them.
    fn plan(&self, results: &[String], next: bool) -> Result<SuitePlan<'_>, SuiteError> {
        let mut plan = SuitePlan::new(&self.request, &self.criteria);
        while plan.runs().len() < results.len() || (next && plan.runs().len() == results.len()) {
            let made = plan.runs().len();
            if !plan.add_round(&results[..made])? {
                break;
            }
        }
        Ok(plan)
    }
}

fn sender(name: &str) -> PyResult<SuiteSender> {
    SuiteSender::read_any(name).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn failed(error: &SuiteError) -> PyErr {
    RunError::new_err(error.to_string())
}

/// A search for the worst case. It can be pickled.
#[pyclass(frozen, module = "ackclock._engine")]
pub(crate) struct HuntStudy {
    cc: String,
    request: HuntRequest,
}

#[pymethods]
impl HuntStudy {
    #[new]
    #[pyo3(signature = (cc, goal, limit, without, worlds, seed))]
    fn new(
        cc: String,
        goal: &str,
        limit: Option<f64>,
        without: Vec<String>,
        worlds: usize,
        seed: u64,
    ) -> PyResult<Self> {
        let goal: HuntGoal = goal.parse().map_err(|expected: String| {
            PyValueError::new_err(format!("unknown goal {goal:?}: {expected}"))
        })?;
        let limit = limit.unwrap_or(goal.default_limit());
        if !(limit.is_finite() && limit > 0.0) {
            return Err(PyValueError::new_err(format!(
                "limit: expected a number above 0, found {limit}"
            )));
        }
        let request = HuntRequest { sender: sender(&cc)?, goal, limit, without, worlds, seed };
        hunt::describe_space(&request).map_err(|error| hunt_failed(&error))?;
        Ok(Self { cc, request })
    }

    /// For pickle.
    fn __getnewargs__(&self) -> (&str, &str, f64, Vec<String>, usize, u64) {
        let HuntRequest { goal, limit, without, worlds, seed, .. } = &self.request;
        (&self.cc, goal.name(), *limit, without.clone(), *worlds, *seed)
    }

    /// Runs worlds on `jobs` threads: of each its figure and the packets that it retransmitted.
    #[allow(clippy::needless_pass_by_value)]
    fn figures(
        &self,
        py: Python<'_>,
        worlds: Vec<Vec<u32>>,
        jobs: usize,
    ) -> PyResult<Vec<(f64, u64)>> {
        let worlds: Vec<HuntWorld> = worlds
            .iter()
            .map(|levels| HuntWorld::from_levels(levels))
            .collect::<Option<_>>()
            .ok_or_else(|| PyValueError::new_err("a world of another version of Ackclock"))?;
        let figures = watch(py, worlds.len() as u64, None, |watched| {
            hunt::figures(&self.request, &worlds, jobs, watched.stop(), &|| watched.more(1))
        })?;
        let figures = figures.map_err(|error| hunt_failed(&error))?;
        Ok(figures.into_iter().map(|one| (one.value, one.retransmitted)).collect())
    }

    /// Searches with worlds that `runner` runs: a function from worlds to their figures, as
    /// [`HuntStudy::figures`]. The report as JSON and as text.
    fn search(&self, py: Python<'_>, runner: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
        let mut raised: Option<PyErr> = None;
        let found: Result<HuntReport, HuntError> = hunt::search(&self.request, &mut |worlds| {
            let levels: Vec<Vec<u32>> = worlds.iter().map(HuntWorld::levels).collect();
            let figures = py
                .check_signals()
                .and_then(|()| runner.call1((levels,)))
                .and_then(|figures| figures.extract::<Vec<(f64, u64)>>());
            match figures {
                Ok(figures) => Ok(figures
                    .into_iter()
                    .map(|(value, retransmitted)| WorldFigure { value, retransmitted })
                    .collect()),
                Err(error) => {
                    raised = Some(error);
                    Err(HuntError::World("the runner raised an exception".to_owned()))
                }
            }
        });
        match (raised, found) {
            (Some(error), _) => Err(error),
            (None, Ok(report)) => Ok((report.to_json(), report.to_text())),
            (None, Err(error)) => Err(hunt_failed(&error)),
        }
    }
}

fn hunt_failed(error: &HuntError) -> PyErr {
    match error {
        HuntError::Unknown(name) => {
            let hint = nearest(name, hunt::dimension_names())
                .map(|near| format!("; did you mean {near:?}?"))
                .unwrap_or_default();
            PyValueError::new_err(format!("without: {error}{hint}"))
        }
        HuntError::World(text) => RunError::new_err(text.clone()),
    }
}
