//! Captures: diagnosis of a transfer, and simulation with other senders.

use std::fs::File;
use std::io::{self, BufReader, Read};

use ::runner::stop::NEVER;
use ::runner::workers::Workers;
use ::whatif::{WhatIf, WhatIfError, WhatIfRequest, scenario_of};
use diagnose::AnalysisSettings;
use ingest::diagnosis::{DiagnosisReport, TextStyle};
use ingest::inputs::{self, CapturedConnection, InputFile, ReadError, ReadMode, Reason};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use scenario::ReportStyle;

use crate::errors::{RunError, wrong_scenario};
use crate::published::threads;
use crate::watch::{LongCall, watch};

/// Connections shown in full in the text.
const SHOWN: usize = 10;
/// Bytes per read of a Python file.
const AT_ONCE: usize = 1 << 20;

/// A name and the binary file to read, or `None` to open the file of that name.
type NamedFile = (String, Option<Py<PyAny>>);

/// Diagnoses captures, as JSON, as text, and as a page with the verdicts alone; only connection `flow`, if given.
#[pyfunction]
#[pyo3(signature = (sources, flow=None, cures=true, progress=None))]
pub(crate) fn diagnose_files(
    py: Python<'_>,
    sources: Vec<NamedFile>,
    flow: Option<u32>,
    cures: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String, String)> {
    let files = sources.into_iter().map(open_file).collect::<PyResult<Vec<_>>>()?;
    let total = files.iter().map(|file| file.size).sum();
    // As the command does; the size of a stream is unknown.
    let tries_cures =
        cures && files.iter().all(|file| file.size > 0) && total <= ::whatif::MOST_CAPTURED;
    watch(py, total, progress, |watched| {
        let files = files.into_iter().map(|file| file.source(watched)).collect();
        let packets = if tries_cures { ::whatif::MOST_PACKETS } else { 0 };
        let mode = ReadMode { keeps_quic: tries_cures, ..ReadMode::default() };
        let mut report = DiagnosisReport::read_with(files, packets, mode)
            .map_err(|error| useless("diagnose", &error))?;
        if let Some(flow) = flow
            && !report.retain_flow(flow)
        {
            return Err(PyValueError::new_err(format!("there is no connection {flow}")));
        }
        if tries_cures {
            ::whatif::try_worst(&mut report, &Workers::new(threads(), &NEVER));
        }
        let text = report.text(TextStyle { limit: SHOWN, look: ReportStyle::Plain });
        let mut cards = Vec::new();
        pages::diagnosis_page::cards(&report).write(&mut cards)?;
        Ok((report.json(usize::MAX), text, String::from_utf8_lossy(&cards).into_owned()))
    })?
}

/// Simulates a captured transfer with its own sender and with others, as JSON and as text.
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
    let file = open_file((path.to_owned(), None))?;
    let question = WhatIfRequest { compare, set, sender };
    let answer = watch(py, file.size, None, |watched| {
        let (stream, others) = stream(file.source(watched), flow)?;
        let others: Vec<_> = others.iter().collect();
        let workers = Workers::new(threads(), watched.stop());
        Ok::<_, PyErr>(WhatIf::on(&stream, &others, &question, &workers, None))
    })??;
    match answer {
        Ok(answer) => Ok((answer.to_json(), answer.to_text())),
        Err(WhatIfError::Fit(unfit)) => Err(RunError::new_err(format!("{path}: {unfit}"))),
        Err(WhatIfError::Scenario(mistakes)) => Err(wrong_scenario(py, &mistakes)),
        Err(WhatIfError::Run(error)) => Err(RunError::new_err(format!("{path}: {error}"))),
        Err(error @ WhatIfError::Value { .. }) => Err(RunError::new_err(error.to_string())),
        Err(WhatIfError::Kernel(error)) => Err(RunError::new_err(error)),
    }
}

/// The scenario fitted to a captured transfer, as text.
#[pyfunction]
#[pyo3(signature = (path, flow=None))]
pub(crate) fn scenario_text(py: Python<'_>, path: &str, flow: Option<u32>) -> PyResult<String> {
    let file = open_file((path.to_owned(), None))?;
    watch(py, file.size, None, |watched| {
        let (stream, _) = stream(file.source(watched), flow)?;
        scenario_of(&stream).map_err(|unfit| RunError::new_err(format!("{path}: {unfit}")))
    })?
}

/// An open file.
struct OpenFile {
    name: String,
    /// Its size in bytes; 0 if unknown.
    size: u64,
    bytes: Box<dyn Read + Send>,
}

impl OpenFile {
    /// Its bytes; reading fails when the call is cancelled.
    fn source(self, watched: &LongCall) -> InputFile<'_> {
        InputFile {
            name: self.name,
            bytes: Box::new(CountingReader { bytes: self.bytes, watched }),
        }
    }
}

/// Bytes of a Python file from here on; an error if it is a stream.
fn size_of(file: &Bound<'_, PyAny>) -> PyResult<u64> {
    let here: u64 = file.call_method0("tell")?.extract()?;
    let end: u64 = file.call_method1("seek", (0, 2))?.extract()?;
    file.call_method1("seek", (here,))?;
    Ok(end.saturating_sub(here))
}

fn open_file((name, file): NamedFile) -> PyResult<OpenFile> {
    if let Some(file) = file {
        let size = Python::attach(|py| size_of(file.bind(py))).unwrap_or_default();
        let bytes = Box::new(BufReader::with_capacity(AT_ONCE, PyFile(file)));
        return Ok(OpenFile { name, size, bytes });
    }
    let failed = |error: io::Error| {
        PyOSError::new_err((error.raw_os_error(), error.to_string(), name.clone()))
    };
    let file = File::open(&name).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::Error::from_raw_os_error(EISDIR)));
    }
    Ok(OpenFile { size: metadata.len(), bytes: Box::new(file), name })
}

/// The errno of "Is a directory", for which Python raises IsADirectoryError.
const EISDIR: i32 = 21;

/// Counts the bytes read.
struct CountingReader<'w> {
    bytes: Box<dyn Read + Send>,
    watched: &'w LongCall,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.watched.is_to_end() {
            return Err(io::Error::other("interrupted"));
        }
        let read = self.bytes.read(buffer)?;
        self.watched.more(read as u64);
        Ok(read)
    }
}

/// A Python file opened for reading bytes.
struct PyFile(Py<PyAny>);

impl Read for PyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let read = self.0.bind(py).call_method1("read", (buffer.len(),))?;
            let Ok(bytes) = read.cast::<PyBytes>() else {
                let kind = read.get_type().name()?.to_string();
                let message = format!("read() of a binary file must return bytes, found {kind}");
                return Err(PyTypeError::new_err(message).into());
            };
            let bytes = bytes.as_bytes();
            let Some(target) = buffer.get_mut(..bytes.len()) else {
                return Err(io::Error::other("read() returned more bytes than requested"));
            };
            target.copy_from_slice(bytes);
            Ok(bytes.len())
        })
    }
}

/// An unreadable file raises OSError, a file that is not a capture ValueError.
fn useless(what: &str, error: &ReadError) -> PyErr {
    let message = format!("cannot {what} {error}");
    match error.reason {
        Reason::Read(_) => PyOSError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}

/// A connection, and the others of its capture.
type SelectedConnection = (CapturedConnection, Vec<CapturedConnection>);

fn stream(source: InputFile<'_>, flow: Option<u32>) -> PyResult<SelectedConnection> {
    let settings = AnalysisSettings { packets: usize::MAX, turns: ::whatif::MAX_EVENTS };
    let reading = inputs::read(vec![source], settings).map_err(|error| useless("read", &error))?;
    let found = ::whatif::selected(reading.streams, flow);
    found.ok_or_else(|| match flow {
        Some(number) => PyValueError::new_err(format!("there is no connection {number}")),
        None => PyValueError::new_err("the capture contains no connection"),
    })
}
