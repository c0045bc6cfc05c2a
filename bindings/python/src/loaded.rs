//! A scenario, read and found right.

use std::fs;
use std::path::Path;

use lab::curves::Curves;
use lab::scenario::{Files, Loaded, Overrides};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sim::{SetupError, Watch as Both};

use crate::columns::{Events, Series};
use crate::controller::outside;
use crate::errors::{RunError, wrong_scenario};
use crate::ran::Run;
use crate::watch::{Watched, watch};

/// A scenario that is right in itself: hosts, paths, flows.
#[pyclass(frozen, module = "ackclock")]
pub(crate) struct Scenario {
    pub(crate) loaded: Loaded,
    pub(crate) name: String,
}

/// Reads the text of a scenario file with changes `KEY=VALUE` and, if given, another seed.
#[pyfunction]
#[pyo3(signature = (text, name, set, seed=None, controllers=None))]
pub(crate) fn load(
    py: Python<'_>,
    text: &str,
    name: &str,
    set: Vec<String>,
    seed: Option<u64>,
    controllers: Option<&Bound<'_, PyDict>>,
) -> PyResult<Scenario> {
    let controllers = controllers.map(outside).transpose()?.unwrap_or_default();
    let overrides = Overrides { set, seed, controllers, files: files_beside(name) };
    let loaded = lab::scenario::load(text, name, &overrides)
        .map_err(|mistakes| wrong_scenario(py, &mistakes))?;
    Ok(Scenario { loaded, name: name.to_owned() })
}

#[pymethods]
impl Scenario {
    /// The text that stands for it, all changes worked in.
    #[getter]
    fn text(&self) -> &str {
        &self.loaded.text
    }

    /// Name of the file it came from.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of `text`.
    #[getter]
    fn sha256(&self) -> &str {
        &self.loaded.sha256
    }

    /// Its title.
    #[getter]
    fn title(&self) -> &str {
        &self.loaded.scenario.title
    }

    /// Seed of every random stream.
    #[getter]
    fn seed(&self) -> u64 {
        self.loaded.scenario.seed
    }

    /// Names of the hosts.
    #[getter]
    fn hosts(&self) -> Vec<&str> {
        self.loaded.scenario.hosts.iter().map(|host| host.name.as_str()).collect()
    }

    /// Names of the flows.
    #[getter]
    fn flows(&self) -> Vec<&str> {
        self.loaded.scenario.flows.iter().map(|flow| flow.name.as_str()).collect()
    }

    /// Virtual time at which a run ends at the latest, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.loaded.scenario.duration.as_secs_f64()
    }

    fn __repr__(&self) -> String {
        let scenario = &self.loaded.scenario;
        format!(
            "<ackclock.Scenario {:?}: {} hosts, {} flows, seed {}>",
            if scenario.title.is_empty() { &self.name } else { &scenario.title },
            scenario.hosts.len(),
            scenario.flows.len(),
            scenario.seed
        )
    }

    /// Congestion window and flight of every flow over time as SVG; runs it.
    fn picture(&self, py: Python<'_>) -> PyResult<String> {
        let scenario = &self.loaded.scenario;
        let (outcome, curves) = watch(py, 1, None, |watched| {
            let mut both = Both(Curves::new(scenario), Quiet(watched));
            (sim::run(scenario, &mut both), both.0)
        })?;
        outcome.map_err(|error| unfit(&error))?;
        let title = if scenario.title.is_empty() { &self.name } else { &scenario.title };
        let subtitle = format!("seed {}, ackclock {}", scenario.seed, env!("CARGO_PKG_VERSION"));
        Ok(curves.to_svg(title, &subtitle))
    }

    /// Runs it. `series` keeps the senders' states, `events` all that happened.
    #[pyo3(signature = (series, events, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        series: bool,
        events: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Run> {
        let scenario = &self.loaded.scenario;
        let total = scenario.duration.as_nanos();
        let result = watch(py, total, progress, |watched| {
            let quiet = Quiet(watched);
            match (series.then(|| Series::new(scenario)), events.then(|| Events::new(scenario))) {
                (None, None) => (sim::run(scenario, &mut { quiet }), None, None),
                (Some(series), None) => {
                    let mut both = Both(series, quiet);
                    (sim::run(scenario, &mut both), Some(both.0.finish()), None)
                }
                (None, Some(events)) => {
                    let mut both = Both(events, quiet);
                    (sim::run(scenario, &mut both), None, Some(both.0.finish()))
                }
                (Some(series), Some(events)) => {
                    let mut all = Both(Both(series, events), quiet);
                    let outcome = sim::run(scenario, &mut all);
                    let Both(Both(series, events), _) = all;
                    (outcome, Some(series.finish()), Some(events.finish()))
                }
            }
        })?;
        let (outcome, series, events) = result;
        let outcome = outcome.map_err(|error| unfit(&error))?;
        Run::new(&self.loaded, &outcome, series.transpose(), events.transpose())
    }
}

fn unfit(error: &SetupError) -> PyErr {
    RunError::new_err(format!("the scenario cannot be set up: {error:?}"))
}

/// Files that a scenario names are beside it; a text or a dictionary has none.
pub(crate) fn files_beside(name: &str) -> Files {
    if name.starts_with('<') {
        return Files::default();
    }
    let dir = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
    Files::new(move |file| {
        let path = dir.join(file);
        fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    })
}

/// Listens to nothing but the time.
struct Quiet<'w>(&'w Watched);

impl record::Recorder for Quiet<'_> {
    const ON: bool = false;

    fn record(
        &mut self,
        _: units::Instant,
        _: record::Who,
        _: record::Event,
        _: Option<&record::SenderState>,
    ) {
    }
}

impl sim::Observer for Quiet<'_> {
    fn progress(&mut self, now: units::Instant) {
        self.0.reached(now.as_nanos());
    }
}
