//! Compressed rows with named columns, and the tally of a replay.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use csv::{Reader, StringRecord};
use flate2::read::MultiGzDecoder;

/// Maximum mismatches to display.
const SHOWN: usize = 5;

/// Error of unreadable or malformed input.
#[derive(Debug)]
pub(super) struct GoldenError {
    line: u64,
    what: String,
}

impl GoldenError {
    /// Creates an error at `line` of the file, from 1; 0 for no line.
    pub(super) fn at(line: u64, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl fmt::Display for GoldenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "{}:", self.line)?;
        }
        write!(f, " {}", self.what)
    }
}

/// The rows of one file.
pub(super) struct GoldenRows {
    reader: Reader<Box<dyn Read>>,
    names: StringRecord,
    record: StringRecord,
}

/// Index of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct GoldenColumn {
    at: usize,
    name: &'static str,
}

/// One row.
pub(super) struct GoldenRow<'a> {
    record: &'a StringRecord,
    line: u64,
}

impl GoldenRows {
    /// Opens a gzip-compressed CSV file.
    pub(super) fn open(file: &Path) -> Result<Self, GoldenError> {
        let file = File::open(file).map_err(|error| GoldenError::at(0, error.to_string()))?;
        Self::read(Box::new(MultiGzDecoder::new(file)))
    }

    /// Reads CSV text.
    pub(super) fn read(text: Box<dyn Read>) -> Result<Self, GoldenError> {
        let mut reader = Reader::from_reader(text);
        let names = reader.headers().map_err(|error| garbled(&error, 1))?.clone();
        Ok(Self { reader, names, record: StringRecord::new() })
    }

    /// Returns the indices of required columns.
    pub(super) fn columns<const N: usize>(
        &self,
        names: [&'static str; N],
    ) -> Result<[GoldenColumn; N], GoldenError> {
        let mut columns = [GoldenColumn { at: 0, name: "" }; N];
        for (column, name) in columns.iter_mut().zip(names) {
            let at = self
                .names
                .iter()
                .position(|known| known == name)
                .ok_or_else(|| GoldenError::at(1, format!("no column {name:?}")))?;
            *column = GoldenColumn { at, name };
        }
        Ok(columns)
    }

    /// Reads the next row; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<GoldenRow<'_>>, GoldenError> {
        let line = self.reader.position().line();
        match self.reader.read_record(&mut self.record) {
            Ok(true) => {
                let line = self.record.position().map_or(line, csv::Position::line);
                Ok(Some(GoldenRow { record: &self.record, line }))
            }
            Ok(false) => Ok(None),
            Err(error) => Err(garbled(&error, line)),
        }
    }
}

/// Converts an error of the CSV reader; `line` is used if it has no position.
fn garbled(error: &csv::Error, line: u64) -> GoldenError {
    let line = error.position().map_or(line, csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} fields instead of {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "not text".to_owned(),
        csv::ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    };
    GoldenError::at(line, what)
}

impl<'a> GoldenRow<'a> {
    /// Returns the field of a column.
    pub(super) fn text(&self, column: GoldenColumn) -> &'a str {
        self.record.get(column.at).unwrap_or("")
    }

    /// Parses the field of a column as a number.
    pub(super) fn number<T: FromStr>(&self, column: GoldenColumn) -> Result<T, GoldenError> {
        let text = self.text(column);
        text.parse().map_err(|_| self.garbled(column, &format!("{text:?} is no such number")))
    }

    /// Creates an error about a field.
    pub(super) fn garbled(&self, column: GoldenColumn, what: &str) -> GoldenError {
        GoldenError::at(self.line, format!("column {}: {what}", column.name))
    }

    /// Compares our value with a column.
    pub(super) fn compare(
        &self,
        tally: &mut GoldenTally,
        column: GoldenColumn,
        got: impl fmt::Display,
    ) {
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

/// Number of replayed rows and differing fields.
#[derive(Debug, Default)]
pub(super) struct GoldenTally {
    rows: u64,
    mismatches: u64,
    first: Vec<Mismatch>,
}

impl GoldenTally {
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

    /// Returns the tally, or an error if there were no rows.
    pub(super) fn not_empty(self) -> Result<Self, GoldenError> {
        if self.rows == 0 { Err(GoldenError::at(0, "no rows")) } else { Ok(self) }
    }

    /// Returns the number of replayed rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of differing fields.
    pub(super) fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// Returns the first of them.
    pub(super) fn first(&self) -> &[Mismatch] {
        &self.first
    }
}
