//! The result of a run.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use report::page::Page;
use runner::run_report::{RunReport, table};
use runner::sharing::{self, Sharing};
use scenario::Loaded;
use sim::RunOutcome;

use crate::table::Table;

/// The result of a run.
#[pyclass(frozen, module = "ackclock")]
pub(crate) struct Run {
    json: String,
    text: String,
    series: Option<RecordBatch>,
    events: Option<RecordBatch>,
    page: Option<Page>,
}

/// The recorded data of a run.
#[derive(Default)]
pub(crate) struct RunData {
    pub(crate) series: Option<RecordBatch>,
    pub(crate) events: Option<RecordBatch>,
    pub(crate) page: Option<Page>,
    pub(crate) sharing: Option<Sharing>,
}

impl Run {
    pub(crate) fn new(loaded: &Loaded, outcome: &RunOutcome, kept: RunData) -> Self {
        let mut report = RunReport::new(loaded, outcome);
        let mut text = table(loaded, outcome);
        if let Some(seen) = &kept.sharing {
            report = report.with(seen, loaded, outcome);
            if Sharing::concerns(&loaded.scenario) {
                text += &format!("\n{}", sharing::text(&seen.report(&loaded.scenario, outcome)));
            }
        }
        let RunData { series, events, page, .. } = kept;
        Self { json: report.to_json(), text, series, events, page }
    }
}

#[pymethods]
impl Run {
    /// The report as JSON, as in `ackclock run --json`.
    #[getter]
    fn json(&self) -> &str {
        &self.json
    }

    /// The report as a table, as in `ackclock run`.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The senders' states over time, if recorded.
    #[getter]
    fn series(&self) -> Option<Table> {
        self.series.clone().map(Table::from)
    }

    /// All events, if recorded.
    #[getter]
    fn events(&self) -> Option<Table> {
        self.events.clone().map(Table::from)
    }

    /// The page of plots and tables, as in `ackclock run --report`, if the series were recorded.
    #[getter]
    fn page(&self) -> PyResult<Option<String>> {
        self.page.as_ref().map(html).transpose()
    }
}

/// A page as text.
pub(crate) fn html(page: &Page) -> PyResult<String> {
    let mut out = Vec::new();
    page.write(&mut out)?;
    String::from_utf8(out).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// The error of building a table, which no run can cause.
pub(crate) fn broken(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
