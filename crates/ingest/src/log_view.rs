//! Logs of FreeBSD's stack and qlog for people and programs: text, JSON lines, CSV.
//!
//! [`view`] finds out which log it has before it, by its first bytes. What is wrong with a log
//! stands between its records, in CSV apart from them; a summary closes the text and the JSON.

mod black_box;
mod qlog;
mod siftr;

use core::fmt;
use std::io::{self, BufRead, Write};

use units::Duration;

/// How a log is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line for each record.
    Text,
    /// A JSON object for each record, problem and summary.
    Json,
    /// A row for each record, every field a column.
    Csv,
}

/// What came of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All is there.
    Whole,
    /// Something is wrong or missing; it has been told.
    Damaged,
    /// There is no record in it; nothing was written.
    NoLog {
        /// What it was taken for.
        taken_for: &'static str,
        /// The first thing wrong, with its place.
        problem: Option<String>,
    },
    /// It is packed in this format.
    Packed(&'static str),
}

/// Why a log could not be shown.
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

/// Shows `log` on `out`; problems that do not fit there, on `aside`.
///
/// # Errors
/// Those of `log` and of the outputs.
pub fn view(
    mut log: impl BufRead,
    form: Form,
    out: &mut dyn Write,
    aside: &mut dyn Write,
) -> Result<Verdict, ViewError> {
    let begin = log.fill_buf().map_err(ViewError::Read)?;
    let packed = [
        (&[0xfd, b'7', b'z', b'X', b'Z'][..], "xz"),
        (&[0x1f, 0x8b], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    ];
    if let Some((_, name)) = packed.iter().find(|(magic, _)| begin.starts_with(magic)) {
        return Ok(Verdict::Packed(name));
    }
    // A siftr log begins with a line of text, even the binary one.
    let text =
        begin.iter().take(64).all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'));
    // qlog begins with an object, or with the mark of a record; its blanks are part of neither.
    let json = [&b"\xef\xbb\xbf"[..], b""].iter().any(|mark| {
        let begin = begin.strip_prefix(*mark).unwrap_or(begin);
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let first = begin.iter().find(|byte| !blank(byte));
        matches!(first, Some(b'{' | 0x1e))
    });
    let mut show = Show { form, out, aside, begun: false, first: None, held: Vec::new() };
    if json {
        qlog::view(log, &mut show)
    } else if text && !begin.is_empty() {
        siftr::view(log, &mut show)
    } else {
        black_box::view(log, &mut show)
    }
}

/// Lines held back until the first record shows that it is a log.
const MOST_HELD: usize = 100;

/// The outputs, and what is held back.
struct Show<'a> {
    form: Form,
    out: &'a mut dyn Write,
    aside: &'a mut dyn Write,
    begun: bool,
    first: Option<String>,
    held: Vec<String>,
}

impl Show<'_> {
    fn line(&mut self, line: &str) -> Result<(), ViewError> {
        self.begun = true;
        for held in core::mem::take(&mut self.held) {
            self.tell(&held)?;
        }
        writeln!(self.out, "{line}").map_err(ViewError::Write)
    }

    /// A line that is worth showing only before a record.
    fn heading(&mut self, line: String) -> Result<(), ViewError> {
        if self.begun {
            return self.line(&line);
        }
        self.hold(line);
        Ok(())
    }

    fn hold(&mut self, line: String) {
        if self.held.len() < MOST_HELD {
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
            Form::Text => format!("! {text}"),
            Form::Csv => text,
            Form::Json => serde_json::json!({ "problem": json }).to_string(),
        };
        if self.begun {
            return self.tell(&line);
        }
        self.hold(line);
        Ok(())
    }

    fn tell(&mut self, line: &str) -> Result<(), ViewError> {
        let to: &mut dyn Write = if self.form == Form::Csv { self.aside } else { self.out };
        writeln!(to, "{line}").map_err(ViewError::Write)
    }

    fn verdict(&mut self, taken_for: &'static str, records: u64, whole: bool) -> Verdict {
        match (records, whole) {
            (0, _) => Verdict::NoLog { taken_for, problem: self.first.take() },
            (_, true) => Verdict::Whole,
            (_, false) => Verdict::Damaged,
        }
    }
}

/// Seconds with six decimals; `-` where the time is not known.
struct Seconds(Option<Duration>);

impl fmt::Display for Seconds {
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

/// A number, or nothing.
struct Known<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}
