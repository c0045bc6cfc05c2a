//! Displays FreeBSD's stack logs, qlog and data files of flent as text, JSON lines or CSV.
//!
//! [`view`] detects the kind of log by its first bytes. Problems of a log are printed between its
//! records, in CSV on a separate output; a summary ends the text and the JSON.

mod black_box;
mod flent;
mod qlog;
mod siftr;

use core::fmt;
use std::io::{self, BufRead, BufReader, Write};

use trace::unpack::Unpacked;
use units::Duration;

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for each record.
    Text,
    /// A JSON object for each record, problem and summary.
    Json,
    /// A row for each record, every field a column.
    Csv,
}

/// Status of a displayed log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogStatus {
    /// The log is complete.
    Whole,
    /// Parts of the log are damaged or missing; the output reports them.
    Damaged,
    /// The log has no record; nothing was written.
    NoLog {
        /// The kind of log that it was read as.
        taken_for: &'static str,
        /// The first problem, with its position.
        problem: Option<String>,
    },
    /// The log is compressed in this format.
    Packed(&'static str),
}

/// Why a log could not be displayed.
#[derive(Debug)]
pub enum ViewError {
    /// Reading failed.
    Read(io::Error),
    /// Writing failed.
    Write(io::Error),
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot read the log: {error}"),
            Self::Write(error) => write!(f, "cannot write: {error}"),
        }
    }
}

impl core::error::Error for ViewError {}

/// Displays `log` on `out`; with CSV, problems go to `aside`.
///
/// # Errors
/// Those of `log` and of the outputs.
pub fn view(
    mut log: impl BufRead,
    form: LogFormat,
    out: &mut dyn Write,
    aside: &mut dyn Write,
) -> Result<LogStatus, ViewError> {
    let begin = log.fill_buf().map_err(ViewError::Read)?;
    let packed = [
        (&[0xfd, b'7', b'z', b'X', b'Z'][..], "xz"),
        (&[0x1f, 0x8b], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    ];
    if let Some((_, name)) = packed.iter().find(|(magic, _)| begin.starts_with(magic)) {
        if *name == "gzip" {
            // Data files of flent are always packed.
            let unpacked = Unpacked::new(log).map_err(ViewError::Read)?;
            let mut unpacked = BufReader::new(unpacked);
            if unpacked.fill_buf().is_ok_and(logs::flent::is_flent) {
                let mut show =
                    LogWriter { form, out, aside, begun: false, first: None, held: vec![] };
                return flent::view(unpacked, &mut show);
            }
        }
        return Ok(LogStatus::Packed(name));
    }
    // A siftr log begins with a line of text, even the binary one.
    let text =
        begin.iter().take(64).all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'));
    // qlog begins with an object or with a record separator, after an optional byte order mark and
    // blanks.
    let json = [&b"\xef\xbb\xbf"[..], b""].iter().any(|mark| {
        let begin = begin.strip_prefix(*mark).unwrap_or(begin);
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let first = begin.iter().find(|byte| !blank(byte));
        matches!(first, Some(b'{' | 0x1e))
    });
    let mut show = LogWriter { form, out, aside, begun: false, first: None, held: Vec::new() };
    if logs::flent::is_flent(begin) {
        flent::view(log, &mut show)
    } else if json {
        qlog::view(log, &mut show)
    } else if text && !begin.is_empty() {
        siftr::view(log, &mut show)
    } else {
        black_box::view(log, &mut show)
    }
}

/// Most lines buffered before the first record.
const MAX_BUFFERED_LINES: usize = 100;

/// The outputs and the lines buffered before the first record.
struct LogWriter<'a> {
    form: LogFormat,
    out: &'a mut dyn Write,
    aside: &'a mut dyn Write,
    begun: bool,
    first: Option<String>,
    held: Vec<String>,
}

impl LogWriter<'_> {
    fn line(&mut self, line: &str) -> Result<(), ViewError> {
        self.begun = true;
        for held in core::mem::take(&mut self.held) {
            self.write_problem(&held)?;
        }
        writeln!(self.out, "{line}").map_err(ViewError::Write)
    }

    /// Writes a heading; before the first record it is buffered, and dropped if no record follows.
    fn heading(&mut self, line: String) -> Result<(), ViewError> {
        if self.begun {
            return self.line(&line);
        }
        self.hold(line);
        Ok(())
    }

    fn hold(&mut self, line: String) {
        if self.held.len() < MAX_BUFFERED_LINES {
            self.held.push(line);
        }
    }

    fn problem(
        &mut self,
        problem: &impl fmt::Display,
        json: &serde_json::Value,
    ) -> Result<(), ViewError> {
        let text = problem.to_string();
        self.first.get_or_insert_with(|| text.clone());
        let line = match self.form {
            LogFormat::Text => format!("! {text}"),
            LogFormat::Csv => text,
            LogFormat::Json => serde_json::json!({ "problem": json }).to_string(),
        };
        if self.begun {
            return self.write_problem(&line);
        }
        self.hold(line);
        Ok(())
    }

    fn write_problem(&mut self, line: &str) -> Result<(), ViewError> {
        let to: &mut dyn Write = if self.form == LogFormat::Csv { self.aside } else { self.out };
        writeln!(to, "{line}").map_err(ViewError::Write)
    }

    fn verdict(&mut self, taken_for: &'static str, records: u64, whole: bool) -> LogStatus {
        match (records, whole) {
            (0, _) => LogStatus::NoLog { taken_for, problem: self.first.take() },
            (_, true) => LogStatus::Whole,
            (_, false) => LogStatus::Damaged,
        }
    }
}

/// Displays seconds with six decimals; `-` for an unknown time.
struct DisplaySeconds(Option<Duration>);

impl fmt::Display for DisplaySeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("-"),
            Some(span) => {
                let micros = span.as_micros();
                write!(f, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)
            }
        }
    }
}

/// Displays a value, or nothing for `None`.
struct DisplayOption<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for DisplayOption<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}
