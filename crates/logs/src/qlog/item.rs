//! Versions, containers and items of a log.

use super::model::{QlogEvent, Trace};
use super::problem::QlogProblem;

/// Versions of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QlogGeneration {
    /// `draft-00`: events are lists.
    Draft00,
    /// `draft-01`, and 0.1: events are lists.
    Draft01,
    /// `draft-02` with its candidates, and 0.2.
    Draft02,
    /// 0.3, with its candidates.
    V0_3,
    /// 0.4: the drafts 04 to 09 of the working group.
    V0_4,
    /// The drafts since then: `file_schema` instead of a version.
    Current,
}

impl QlogGeneration {
    pub(super) fn of_version(version: &str) -> Option<Self> {
        match version {
            "draft-00" | "0.0" => Some(Self::Draft00),
            "draft-01" | "0.1" => Some(Self::Draft01),
            "draft-02-wip" | "draft-02" | "draft-02-RC1" | "0.2" => Some(Self::Draft02),
            "qlog-03-WIP" | "draft-03" | "0.3" => Some(Self::V0_3),
            "0.4" => Some(Self::V0_4),
            _ => None,
        }
    }

    /// Usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft00 => "draft-00",
            Self::Draft01 => "draft-01",
            Self::Draft02 => "draft-02",
            Self::V0_3 => "0.3",
            Self::V0_4 => "0.4",
            Self::Current => "of the drafts",
        }
    }
}

/// How a file contains its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// In one JSON document.
    Document,
    /// One per line.
    Lines,
    /// In a JSON text sequence.
    Sequence,
}

/// Metadata of a file and of a trace in it.
#[derive(Debug, Clone, PartialEq)]
pub struct FileInfo {
    /// Its version.
    pub generation: QlogGeneration,
    /// How it contains its events.
    pub container: Container,
    /// Title of the file.
    pub title: String,
    /// Version of the code that wrote the file; empty if unknown.
    pub code_version: String,
    /// The trace whose events follow.
    pub trace: Trace,
}

/// An item of a log.
#[derive(Debug, Clone, PartialEq)]
pub enum QlogItem {
    /// A trace begins.
    Header(Box<FileInfo>),
    /// An event.
    Event(QlogEvent),
    /// A problem; reading continues.
    Problem(QlogProblem),
}
