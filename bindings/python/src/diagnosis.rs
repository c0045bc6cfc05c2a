//! Captures: why a transfer was slow, and what would have been with another sender.

use std::fs::File;

use diagnose::Settings;
use lab::diagnosis::{Report, View};
use lab::inputs::{self, Source, Stream};
use lab::scenario::Look;
use lab::whatif::{Fault, Question, WhatIf, scenario_of};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::errors::{RunError, wrong_scenario};
use crate::watch::watch;

/// Connections that the text shows in full.
const SHOWN: usize = 10;

/// What captures say, as JSON and as text; of connection `flow` alone, if given.
#[pyfunction]
#[pyo3(signature = (paths, flow=None))]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn diagnose_files(
    py: Python<'_>,
    paths: Vec<String>,
    flow: Option<u32>,
) -> PyResult<(String, String)> {
    let files = paths.iter().map(|path| opened(path)).collect::<PyResult<Vec<_>>>()?;
    watch(py, 1, None, |_| {
        let mut report = Report::read(files.into_iter().map(source).collect(), false)
            .map_err(|error| PyValueError::new_err(format!("cannot diagnose {error}")))?;
        if let Some(flow) = flow
            && !report.keep_flow(flow)
        {
            return Err(PyValueError::new_err(format!("there is no connection {flow}")));
        }
        let text = report.text(View { limit: SHOWN, look: Look::Plain });
        Ok((report.json(usize::MAX), text))
    })?
}

/// A captured transfer with its own sender and with others, as JSON and as text.
#[pyfunction]
#[pyo3(signature = (path, flow, compare, set, sender=None))]
pub(crate) fn whatif(
    py: Python<'_>,
    path: &str,
    flow: Option<u32>,
    compare: Vec<String>,
    set: Vec<String>,
    sender: Option<String>,
) -> PyResult<(String, String)> {
    let file = opened(path)?;
    let question = Question { compare, set, sender };
    let answer = watch(py, 1, None, |_| {
        let stream = stream(source(file), flow)?;
        Ok::<_, PyErr>(WhatIf::of(&stream, &question))
    })??;
    match answer {
        Ok(answer) => Ok((answer.to_json(), answer.to_text())),
        Err(Fault::Unfit(unfit)) => Err(RunError::new_err(format!("{path}: {unfit}"))),
        Err(Fault::Scenario(mistakes)) => Err(wrong_scenario(py, &mistakes)),
    }
}

/// The scenario fitted to a captured transfer, as a text.
#[pyfunction]
#[pyo3(signature = (path, flow=None))]
pub(crate) fn scenario_text(py: Python<'_>, path: &str, flow: Option<u32>) -> PyResult<String> {
    let file = opened(path)?;
    watch(py, 1, None, |_| {
        let stream = stream(source(file), flow)?;
        scenario_of(&stream).map_err(|unfit| RunError::new_err(unfit.to_string()))
    })?
}

/// A file that could be opened, with its name.
fn opened(path: &str) -> PyResult<(String, File)> {
    let file = File::open(path).map_err(|error| {
        PyOSError::new_err((error.raw_os_error(), error.to_string(), path.to_owned()))
    })?;
    Ok((path.to_owned(), file))
}

fn source((name, file): (String, File)) -> Source<'static> {
    Source { name, bytes: Box::new(file) }
}

fn stream(source: Source<'_>, flow: Option<u32>) -> PyResult<Stream> {
    let reading =
        inputs::read(vec![source], Settings { packets: usize::MAX, ..Settings::default() })
            .map_err(|error| PyValueError::new_err(format!("cannot read {error}")))?;
    let bytes = |stream: &Stream| stream.analysis.main().map_or(0, |flow| flow.bytes);
    let found = match flow {
        Some(number) => reading.streams.into_iter().find(|one| one.analysis.stream == number),
        None => reading.streams.into_iter().max_by_key(bytes),
    };
    found.ok_or_else(|| match flow {
        Some(number) => PyValueError::new_err(format!("there is no connection {number}")),
        None => PyValueError::new_err("the capture holds no connection"),
    })
}
