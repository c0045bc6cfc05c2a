//! Sweeps: the plan and its runs by number.

use std::sync::Mutex;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use runner::sweep::{StudyError, SweepDescription, SweepRow, execute};
use scenario::{Overrides, Study as SeriesPlan, StudyOverrides};

use crate::controller::outside;
use crate::errors::{RunError, wrong_scenario};
use crate::loaded::files_beside;
use crate::watch::watch;

/// A scenario and the grid of its runs. It can be pickled: a worker elsewhere gets an equal object.
#[pyclass(frozen, module = "ackclock._engine")]
pub(crate) struct Study {
    text: String,
    name: String,
    changes: StudyOverrides,
    classes: Option<Py<PyDict>>,
    runs: u64,
    keys: Vec<String>,
    sha256: String,
}

#[pymethods]
impl Study {
    #[new]
    #[pyo3(signature = (text, name, set, axes, repeat=None, only=None, seed=None,
        controllers=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        text: String,
        name: String,
        set: Vec<String>,
        axes: Vec<String>,
        repeat: Option<u64>,
        only: Option<String>,
        seed: Option<u64>,
        controllers: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if repeat == Some(0) {
            return Err(PyValueError::new_err("repeat: expected 1 or more, found 0"));
        }
        let known = controllers.as_ref().map(outside).transpose()?.unwrap_or_default();
        let classes = controllers.map(Bound::unbind);
        let files = files_beside(&name);
        let scenario = Overrides { set, seed, controllers: known, files, ..Overrides::default() };
        let changes = StudyOverrides { scenario, axes, repeat, only };
        let mut study =
            Self { text, name, changes, classes, runs: 0, keys: Vec::new(), sha256: String::new() };
        let plan = study.plan(py)?;
        let (runs, keys, sha256) = (plan.runs(), plan.axes().concat(), plan.sha256());
        drop(plan);
        (study.runs, study.keys, study.sha256) = (runs, keys, sha256);
        Ok(study)
    }

    /// For pickle.
    #[allow(clippy::type_complexity)]
    fn __getnewargs__(
        &self,
        py: Python<'_>,
    ) -> (
        &str,
        &str,
        Vec<String>,
        Vec<String>,
        Option<u64>,
        Option<String>,
        Option<u64>,
        Option<Py<PyDict>>,
    ) {
        let StudyOverrides { scenario, axes, repeat, only } = &self.changes;
        let (set, axes) = (scenario.set.clone(), axes.clone());
        let classes = self.classes.as_ref().map(|classes| classes.clone_ref(py));
        (&self.text, &self.name, set, axes, *repeat, only.clone(), scenario.seed, classes)
    }

    /// Name of the scenario's file.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Number of runs.
    #[getter]
    fn runs(&self) -> u64 {
        self.runs
    }

    /// Keys of the axes, in their order.
    #[getter]
    fn keys(&self) -> Vec<String> {
        self.keys.clone()
    }

    /// SHA-256 of everything besides the program that the runs depend on.
    #[getter]
    fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The content of `sweep.json`.
    fn about(&self, py: Python<'_>) -> PyResult<String> {
        Ok(SweepDescription::new(&self.plan(py)?).to_json())
    }

    /// The scenario with the settings common to all runs, as in `scenario.toml`.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.plan(py)?.text().to_owned())
    }

    /// The settings of run number `run`: pairs of a key and the text of its value.
    fn settings(&self, py: Python<'_>, run: u64) -> PyResult<Vec<(String, String)>> {
        self.within(run)?;
        Ok(self.plan(py)?.settings(run))
    }

    /// The scenario of run number `run` as text.
    fn text_of(&self, py: Python<'_>, run: u64) -> PyResult<String> {
        self.within(run)?;
        self.plan(py)?.text_of(run).map_err(|mistakes| wrong_scenario(py, &mistakes))
    }

    /// Executes the runs from `first` up to, not including, `end` on `jobs` threads; returns their
    /// rows as lines of JSON in the order of the runs.
    #[pyo3(signature = (first, end, jobs, progress=None))]
    fn rows<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        end: u64,
        jobs: usize,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let end = end.min(self.runs);
        if first > end {
            return Err(PyIndexError::new_err(format!("no runs from {first} to {end}")));
        }
        let plan = self.plan(py)?;
        let kept = Mutex::new(Vec::with_capacity((end - first) as usize));
        let result = watch(py, end - first, progress, |watched| {
            execute(&plan, first..end, &|_| false, jobs, watched.stop(), |row: SweepRow| {
                watched.more(1);
                if let Ok(mut kept) = kept.lock() {
                    kept.push((row.run, row.to_line()));
                }
                Ok::<(), ()>(())
            })
        })?;
        match result {
            Ok(()) => {}
            Err(StudyError::Scenario(run, mistakes)) => {
                let error = wrong_scenario(py, &mistakes);
                error.value(py).setattr("run", run)?;
                return Err(error);
            }
            Err(StudyError::Run(run, message)) => {
                return Err(RunError::new_err(format!("run {run}: {message}")));
            }
            Err(StudyError::Kept(())) => {}
        }
        let mut kept = kept.into_inner().unwrap_or_default();
        kept.sort_unstable_by_key(|&(run, _)| run);
        let lines: String = kept.into_iter().map(|(_, line)| line).collect();
        Ok(PyBytes::new(py, lines.as_bytes()))
    }

    fn __repr__(&self) -> String {
        format!(
            "<ackclock.Study {:?}: {} runs over {}>",
            self.name,
            self.runs,
            self.keys.join(", ")
        )
    }
}

impl Study {
    fn plan(&self, py: Python<'_>) -> PyResult<SeriesPlan<'_>> {
        SeriesPlan::load(&self.text, &self.name, &self.changes)
            .map_err(|mistakes| wrong_scenario(py, &mistakes))
    }

    fn within(&self, run: u64) -> PyResult<()> {
        if run < self.runs {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!("there is no run {run}: there are {}", self.runs)))
    }
}
