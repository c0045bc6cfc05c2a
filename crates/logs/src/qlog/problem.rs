//! What is wrong with a log, where, and what is missing from it.

use core::fmt;

/// Something wrong, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QlogProblem {
    /// Line, from 1.
    pub line: u64,
    /// Byte offset in the file.
    pub offset: u64,
    /// What.
    pub kind: QlogProblemKind,
}

/// What can be wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QlogProblemKind {
    /// The generation is not known; it is read as the nearest one.
    Generation {
        /// Which field tells it.
        field: &'static str,
        /// What stands there, cut.
        found: String,
        /// What it is read as.
        read_as: &'static str,
    },
    /// Events come before anything tells what they are.
    NoHeader,
    /// Part of the trace's particulars stands behind its events, where it is too late.
    Late {
        /// Which.
        field: String,
    },
    /// Bytes that cannot be read.
    Skipped {
        /// How many.
        bytes: u64,
        /// Why the first of them cannot.
        why: String,
    },
    /// A record is longer than any of a log.
    Long {
        /// Bytes of it that were passed over.
        bytes: u64,
    },
    /// The file ends before it is closed.
    Unfinished,
    /// A field is not what it should be.
    Field {
        /// Which.
        name: &'static str,
        /// What stands there, cut.
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// An event without something it must have; it is left out.
    NoEvent {
        /// What is missing.
        what: &'static str,
    },
    /// A trace that its writer could not find or convert.
    TraceError {
        /// What it says.
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
                write!(f, "{field}: {found:?} is no generation known, read as {read_as}")
            }
            Self::NoHeader => f.write_str("an event before any header"),
            Self::Late { field } => write!(f, "{field} stands behind the events it is about"),
            Self::Skipped { bytes, why } => write!(f, "{bytes} bytes skipped: {why}"),
            Self::Long { bytes } => write!(f, "{bytes} bytes skipped: a record too long"),
            Self::Unfinished => f.write_str("the file ends before it is closed"),
            Self::Field { name, found, expected } => {
                write!(f, "{name}: expected {expected}, found {found}")
            }
            Self::NoEvent { what } => write!(f, "an event without {what}"),
            Self::TraceError { description } => write!(f, "no trace: {description}"),
        }
    }
}

/// The beginning of a text, for a message.
pub(super) fn short(text: &str) -> String {
    text[..text.floor_char_boundary(48)].to_owned()
}

/// What a log has and has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Events read.
    pub events: u64,
    /// Of these, those whose kind is not known here.
    pub unknown_events: u64,
    /// Events left out.
    pub bad_events: u64,
    /// Bytes skipped.
    pub skipped_bytes: u64,
    /// Problems told.
    pub problems: u64,
}
