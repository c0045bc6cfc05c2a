//! Compressed rows with named columns, and the tally of a replay.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use csv::{Reader, StringRecord};
use flate2::read::MultiGzDecoder;

/// Mismatches that are kept for display.
const SHOWN: usize = 5;

/// Input that cannot be read or makes no sense.
#[derive(Debug)]
pub(super) struct Garbled {
    line: u64,
    what: String,
}

impl Garbled {
    /// At `line` of the file, counted from 1; 0 where no line can be named.
    pub(super) fn at(line: u64, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl fmt::Display for Garbled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "{}:", self.line)?;
        }
        write!(f, " {}", self.what)
    }
}

/// The rows of one file.
pub(super) struct Rows {
    reader: Reader<Box<dyn Read>>,
    names: StringRecord,
    record: StringRecord,
}

/// Place of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    at: usize,
    name: &'static str,
}

/// One row.
pub(super) struct Row<'a> {
    record: &'a StringRecord,
    line: u64,
}

impl Rows {
    /// Opens a gzip-compressed CSV file.
    pub(super) fn open(file: &Path) -> Result<Self, Garbled> {
        let file = File::open(file).map_err(|error| Garbled::at(0, error.to_string()))?;
        Self::read(Box::new(MultiGzDecoder::new(file)))
    }

    /// Reads CSV text.
    pub(super) fn read(text: Box<dyn Read>) -> Result<Self, Garbled> {
        let mut reader = Reader::from_reader(text);
        let names = reader.headers().map_err(|error| garbled(&error, 1))?.clone();
        Ok(Self { reader, names, record: StringRecord::new() })
    }

    /// The places of columns that must be there.
    pub(super) fn columns<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[Column; N], Garbled> {
        let mut columns = [Column { at: 0, name: "" }; N];
        for (column, name) in columns.iter_mut().zip(names) {
            let at = self
                .names
                .iter()
                .position(|known| known == name)
                .ok_or_else(|| Garbled::at(1, format!("no column {name:?}")))?;
            *column = Column { at, name };
        }
        Ok(columns)
    }

    /// The next row; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Row<'_>>, Garbled> {
        let line = self.reader.position().line();
        match self.reader.read_record(&mut self.record) {
            Ok(true) => {
                let line = self.record.position().map_or(line, csv::Position::line);
                Ok(Some(Row { record: &self.record, line }))
            }
            Ok(false) => Ok(None),
            Err(error) => Err(garbled(&error, line)),
        }
    }
}

/// A reader's complaint, at the line it names, else at `line`.
fn garbled(error: &csv::Error, line: u64) -> Garbled {
    let line = error.position().map_or(line, csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields instead of {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "not text".to_owned(),
        csv::ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    };
    Garbled::at(line, what)
}

impl<'a> Row<'a> {
    /// The field of a column.
    pub(super) fn text(&self, column: Column) -> &'a str {
        self.record.get(column.at).unwrap_or("")
    }

    /// The field of a column as a number.
    pub(super) fn number<T: FromStr>(&self, column: Column) -> Result<T, Garbled> {
        let text = self.text(column);
        text.parse().map_err(|_| self.garbled(column, &format!("{text:?} is no such number")))
    }

    /// A complaint about a field.
    pub(super) fn garbled(&self, column: Column, what: &str) -> Garbled {
        Garbled::at(self.line, format!("column {}: {what}", column.name))
    }

    /// Compares what we got with a column.
    pub(super) fn compare(&self, tally: &mut Tally, column: Column, got: impl fmt::Display) {
        let (expected, got) = (self.text(column), got.to_string());
        if expected != got {
            tally.mismatch(Mismatch {
                line: self.line,
                column: column.name,
                expected: expected.to_owned(),
                got,
            });
        }
    }
}

/// A field in which our crates differ from the row.
#[derive(Debug)]
pub(super) struct Mismatch {
    line: u64,
    column: &'static str,
    expected: String,
    got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, expected, got } = self;
        write!(f, "{line}: {column}: expected {expected}, got {got}")
    }
}

/// How many rows were replayed and how many fields differ.
#[derive(Debug, Default)]
pub(super) struct Tally {
    rows: u64,
    mismatches: u64,
    first: Vec<Mismatch>,
}

impl Tally {
    /// Counts a row.
    pub(super) fn row(&mut self) {
        self.rows += 1;
    }

    fn mismatch(&mut self, mismatch: Mismatch) {
        self.mismatches += 1;
        if self.first.len() < SHOWN {
            self.first.push(mismatch);
        }
    }

    /// The tally, if there was anything to count.
    pub(super) fn not_empty(self) -> Result<Self, Garbled> {
        if self.rows == 0 { Err(Garbled::at(0, "no rows")) } else { Ok(self) }
    }

    /// Rows replayed.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Fields that differ.
    pub(super) fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// The first of them.
    pub(super) fn first(&self) -> &[Mismatch] {
        &self.first
    }
}
