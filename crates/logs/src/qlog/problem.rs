//! Problems of a log, their positions, and what is missing from it.

use core::fmt;

/// A problem and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QlogProblem {
    /// Line, from 1.
    pub line: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// Kind of the problem.
    pub kind: QlogProblemKind,
}

/// Kinds of problems of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QlogProblemKind {
    /// The version is unknown; the log is read as the nearest one.
    Generation {
        /// The field with the version.
        field: &'static str,
        /// The text found, truncated.
        found: String,
        /// The version that it is read as.
        read_as: &'static str,
    },
    /// Events before a header.
    NoHeader,
    /// A field of the trace's header follows its events, which is too late.
    Late {
        /// The field.
        field: String,
    },
    /// Bytes that cannot be parsed.
    Skipped {
        /// Number of bytes.
        bytes: u64,
        /// Why the first of them cannot be parsed.
        why: String,
    },
    /// A record exceeds the limit.
    Long {
        /// Bytes of it that were skipped.
        bytes: u64,
    },
    /// The file ends before the document is closed.
    Unfinished,
    /// A field is invalid.
    Field {
        /// Which.
        name: &'static str,
        /// What stands there, cut.
        found: String,
        /// The expected text.
        expected: &'static str,
    },
    /// An event without a required field is ignored.
    NoEvent {
        /// What is missing.
        what: &'static str,
    },
    /// A trace that its writer could not find or convert.
    TraceError {
        /// Its error description.
        description: String,
    },
}

impl fmt::Display for QlogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, byte {}: {}", self.line, self.offset, self.kind)
    }
}

impl core::error::Error for QlogProblem {}

impl fmt::Display for QlogProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generation { field, found, read_as } => {
                write!(f, "{field}: unknown version {found:?}, read as {read_as}")
            }
            Self::NoHeader => f.write_str("an event before any header"),
            Self::Late { field } => write!(f, "{field} follows the events that it describes"),
            Self::Skipped { bytes, why } => write!(f, "{bytes} bytes skipped: {why}"),
            Self::Long { bytes } => write!(f, "{bytes} bytes skipped: a record too long"),
            Self::Unfinished => f.write_str("the file ends before the document is closed"),
            Self::Field { name, found, expected } => {
                write!(f, "{name}: expected {expected}, found {found}")
            }
            Self::NoEvent { what } => write!(f, "an event without {what}"),
            Self::TraceError { description } => write!(f, "no trace: {description}"),
        }
    }
}

/// Truncates a text for a message.
pub(super) fn short(text: &str) -> String {
    text[..text.floor_char_boundary(48)].to_owned()
}

/// Counts of events and problems of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QlogStats {
    /// Events read.
    pub events: u64,
    /// Events of unknown kinds.
    pub unknown_events: u64,
    /// Events ignored.
    pub bad_events: u64,
    /// Bytes skipped.
    pub skipped_bytes: u64,
    /// Problems reported.
    pub problems: u64,
}
