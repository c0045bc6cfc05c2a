//! Problems of a log, their positions, and what is missing from it.

use core::fmt;

/// A problem and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiftrProblem {
    /// Line, from 1; 0 in binary rows.
    pub line: u64,
    /// Byte of the line, from 1.
    pub column: usize,
    /// Byte offset in the file.
    pub offset: u64,
    /// Kind of the problem.
    pub kind: SiftrProblemKind,
}

/// Kinds of problems of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiftrProblemKind {
    /// A row before any header: the format is derived from its columns.
    NoHeader,
    /// A cell is invalid.
    Cell {
        /// Name of the column.
        name: &'static str,
        /// The text found, truncated to 32 bytes.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
    /// A row has too few or too many columns.
    Columns {
        /// Columns found.
        found: usize,
        /// Columns expected.
        expected: &'static str,
    },
    /// A line exceeds the limit.
    Long {
        /// Its length in bytes.
        bytes: u64,
    },
    /// The last line has no newline: its last cell may be truncated.
    Unfinished,
    /// Bytes of a binary log that are not a row.
    Skipped {
        /// Number of bytes.
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
            Self::Unfinished => f.write_str("the last line has no newline"),
            Self::Skipped { bytes } => write!(f, "{bytes} bytes skipped: no row"),
        }
    }
}

/// Truncates a text for a message.
pub(super) fn short(text: &str) -> String {
    text[..text.floor_char_boundary(32)].to_owned()
}

/// Counts of rows, losses and problems of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SiftrStats {
    /// Rows read.
    pub rows: u64,
    /// Invalid lines.
    pub bad_lines: u64,
    /// Bytes skipped between binary rows.
    pub skipped_bytes: u64,
    /// Packets without a row, by the footer.
    pub lost_packets: u64,
    /// Whether the log has its footer.
    pub ended: bool,
    /// Problems reported.
    pub problems: u64,
}
