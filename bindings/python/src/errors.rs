//! Exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::{ReportStyle, ScenarioError as Mistake, report};

create_exception!(
    ackclock,
    ScenarioError,
    PyValueError,
    "A scenario is invalid. `errors` is a list of dictionaries, one for each error: file, line \
     and column (from 1), width, source_line, message, found, expected, hint."
);
create_exception!(ackclock, RunError, PyRuntimeError, "A run failed.");

/// All errors of a scenario as one exception, with the text that the command line prints.
pub(crate) fn wrong_scenario(py: Python<'_>, mistakes: &[Mistake]) -> PyErr {
    let error = ScenarioError::new_err(report(mistakes, ReportStyle::Plain).trim_end().to_owned());
    let attach = || -> PyResult<()> {
        let rows = mistakes.iter().map(|mistake| row(py, mistake)).collect::<PyResult<Vec<_>>>()?;
        error.value(py).setattr("errors", rows)
    };
    match attach() {
        Ok(()) => error,
        Err(other) => other,
    }
}

fn row<'py>(py: Python<'py>, mistake: &Mistake) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("file", &mistake.file)?;
    row.set_item("line", mistake.line)?;
    row.set_item("column", mistake.column)?;
    row.set_item("width", mistake.width)?;
    row.set_item("source_line", &mistake.source_line)?;
    row.set_item("message", &mistake.message)?;
    row.set_item("found", &mistake.found)?;
    row.set_item("expected", &mistake.expected)?;
    row.set_item("hint", &mistake.hint)?;
    Ok(row)
}
