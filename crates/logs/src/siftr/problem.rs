//! What is wrong with a log, where, and what is missing from it.

use core::fmt;

/// Something wrong, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiftrProblem {
    /// Line, from 1; 0 among rows that are not text.
    pub line: u64,
    /// Byte of the line, from 1.
    pub column: usize,
    /// Byte offset in the file.
    pub offset: u64,
    /// What.
    pub kind: SiftrProblemKind,
}

/// What can be wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiftrProblemKind {
    /// A row comes before any header: the format is taken from its columns.
    NoHeader,
    /// A cell is not what it should be.
    Cell {
        /// Name of the column.
        name: &'static str,
        /// What stands there, cut after 32 bytes.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// A row has too few or too many columns.
    Columns {
        /// Columns found.
        found: usize,
        /// Columns expected.
        expected: &'static str,
    },
    /// A line is longer than any of a log.
    Long {
        /// Bytes of it.
        bytes: u64,
    },
    /// The last line has no end: its last cell may be cut.
    Unfinished,
    /// Bytes among the rows of a binary log that are none.
    Skipped {
        /// How many.
        bytes: u64,
    },
}

impl fmt::Display for SiftrProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "byte {}: {}", self.offset, self.kind),
            line => write!(f, "line {line}, column {}: {}", self.column, self.kind),
        }
    }
}

impl core::error::Error for SiftrProblem {}

impl fmt::Display for SiftrProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHeader => f.write_str("a row before any header"),
            Self::Cell { name, found, expected } => {
                write!(f, "{name}: expected {expected}, found {found:?}")
            }
            Self::Columns { found, expected } => {
                write!(f, "a row of {found} columns, expected {expected}")
            }
            Self::Long { bytes } => write!(f, "a line of {bytes} bytes"),
            Self::Unfinished => f.write_str("the last line has no end"),
            Self::Skipped { bytes } => write!(f, "{bytes} bytes skipped: no row"),
        }
    }
}

/// The beginning of a text, for a message.
pub(super) fn short(text: &str) -> String {
    text[..text.floor_char_boundary(32)].to_owned()
}

/// What a log has and has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Rows read.
    pub rows: u64,
    /// Lines that are no row.
    pub bad_lines: u64,
    /// Bytes skipped among binary rows.
    pub skipped_bytes: u64,
    /// Packets that the log says it has no row of.
    pub lost_packets: u64,
    /// Does the log have its last line?
    pub ended: bool,
    /// Problems told.
    pub problems: u64,
}
