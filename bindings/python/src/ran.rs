//! The result of a run.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use lab::run_report::{RunReport, table};
use lab::scenario::Loaded;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sim::Outcome;

use crate::table::Table;

/// What a run measured.
#[pyclass(frozen, module = "ackclock")]
pub(crate) struct Run {
    json: String,
    text: String,
    series: Option<RecordBatch>,
    events: Option<RecordBatch>,
}

type Kept = Result<Option<RecordBatch>, ArrowError>;

impl Run {
    pub(crate) fn new(
        loaded: &Loaded,
        outcome: &Outcome,
        series: Kept,
        events: Kept,
    ) -> PyResult<Self> {
        let broken = |error: ArrowError| PyRuntimeError::new_err(error.to_string());
        Ok(Self {
            json: RunReport::new(loaded, outcome).to_json(),
            text: table(loaded, outcome),
            series: series.map_err(broken)?,
            events: events.map_err(broken)?,
        })
    }
}

#[pymethods]
impl Run {
    /// The report as JSON, as `ackclock run --json` prints it.
    #[getter]
    fn json(&self) -> &str {
        &self.json
    }

    /// The report as a table, as `ackclock run` prints it.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The senders' states over time, if they were kept.
    #[getter]
    fn series(&self) -> Option<Table> {
        self.series.clone().map(Table::from)
    }

    /// All events, if they were kept.
    #[getter]
    fn events(&self) -> Option<Table> {
        self.events.clone().map(Table::from)
    }
}
