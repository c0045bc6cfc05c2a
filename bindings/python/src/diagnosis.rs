//! Captures: why a transfer was slow, and what would have been with another sender.

use std::fs::File;
use std::io::{self, BufReader, Read};

use ::whatif::{Question, WhatIf, WhatIfError, scenario_of};
use diagnose::Settings;
use ingest::diagnosis::{Report, View};
use ingest::inputs::{self, ReadError, Reason, Source, Stream};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use scenario::Look;

use crate::errors::{RunError, wrong_scenario};
use crate::watch::{Watched, watch};

/// Connections that the text shows in full.
const SHOWN: usize = 10;
/// Bytes that a Python file is asked for at once.
const AT_ONCE: usize = 1 << 20;

/// A name with the binary file to read, or `None` for the file of that name.
type Named = (String, Option<Py<PyAny>>);

/// What captures say, as JSON and as text; of connection `flow` alone, if given.
#[pyfunction]
#[pyo3(signature = (sources, flow=None, progress=None))]
pub(crate) fn diagnose_files(
    py: Python<'_>,
    sources: Vec<Named>,
    flow: Option<u32>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let files = sources.into_iter().map(opened).collect::<PyResult<Vec<_>>>()?;
    let total = files.iter().map(|file| file.size).sum();
    watch(py, total, progress, |watched| {
        let files = files.into_iter().map(|file| file.source(watched)).collect();
        let mut report = Report::read(files, false).map_err(|error| useless("diagnose", &error))?;
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
    let file = opened((path.to_owned(), None))?;
    let question = Question { compare, set, sender };
    let answer = watch(py, file.size, None, |watched| {
        let stream = stream(file.source(watched), flow)?;
        Ok::<_, PyErr>(WhatIf::until(&stream, &question, watched.stop()))
    })??;
    match answer {
        Ok(answer) => Ok((answer.to_json(), answer.to_text())),
        Err(WhatIfError::Fit(unfit)) => Err(RunError::new_err(format!("{path}: {unfit}"))),
        Err(WhatIfError::Scenario(mistakes)) => Err(wrong_scenario(py, &mistakes)),
        Err(WhatIfError::Run(error)) => Err(RunError::new_err(format!("{path}: {error}"))),
    }
}

/// The scenario fitted to a captured transfer, as a text.
#[pyfunction]
#[pyo3(signature = (path, flow=None))]
pub(crate) fn scenario_text(py: Python<'_>, path: &str, flow: Option<u32>) -> PyResult<String> {
    let file = opened((path.to_owned(), None))?;
    watch(py, file.size, None, |watched| {
        let stream = stream(file.source(watched), flow)?;
        scenario_of(&stream).map_err(|unfit| RunError::new_err(format!("{path}: {unfit}")))
    })?
}

/// A file that could be opened.
struct Opened {
    name: String,
    /// Its size in bytes; 0 where nobody knows.
    size: u64,
    bytes: Box<dyn Read + Send>,
}

impl Opened {
    /// Its bytes, which end with an error once the work is to end.
    fn source(self, watched: &Watched) -> Source<'_> {
        Source { name: self.name, bytes: Box::new(Counted { bytes: self.bytes, watched }) }
    }
}

fn opened((name, file): Named) -> PyResult<Opened> {
    if let Some(file) = file {
        let bytes = Box::new(BufReader::with_capacity(AT_ONCE, PyFile(file)));
        return Ok(Opened { name, size: 0, bytes });
    }
    let failed = |error: io::Error| {
        PyOSError::new_err((error.raw_os_error(), error.to_string(), name.clone()))
    };
    let file = File::open(&name).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::Error::from_raw_os_error(EISDIR)));
    }
    Ok(Opened { size: metadata.len(), bytes: Box::new(file), name })
}

/// What systems call "Is a directory", so that Python raises its IsADirectoryError.
const EISDIR: i32 = 21;

/// Counts the bytes that are read.
struct Counted<'w> {
    bytes: Box<dyn Read + Send>,
    watched: &'w Watched,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watched.is_to_end() {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.bytes.read(buffer)?;
        self.watched.more(read as u64);
        Ok(read)
    }
}

/// A file of Python's, opened for reading bytes.
struct PyFile(Py<PyAny>);

impl Read for PyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let read = self.0.bind(py).call_method1("read", (buffer.len(),))?;
            let Ok(bytes) = read.cast::<PyBytes>() else {
                let kind = read.get_type().name()?.to_string();
                let message = format!("read() of a binary file returns bytes, found {kind}");
                return Err(PyTypeError::new_err(message).into());
            };
            let bytes = bytes.as_bytes();
            let Some(place) = buffer.get_mut(..bytes.len()) else {
                return Err(io::Error::other("read() returned more than it was asked for"));
            };
            place.copy_from_slice(bytes);
            Ok(bytes.len())
        })
    }
}

/// A file that cannot be read is an OSError, one that is no capture a ValueError.
fn useless(what: &str, error: &ReadError) -> PyErr {
    let message = format!("cannot {what} {error}");
    match error.reason {
        Reason::Read(_) => PyOSError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

fn stream(source: Source<'_>, flow: Option<u32>) -> PyResult<Stream> {
    let settings = Settings { packets: usize::MAX, turns: ::whatif::TURNS };
    let reading = inputs::read(vec![source], settings).map_err(|error| useless("read", &error))?;
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
