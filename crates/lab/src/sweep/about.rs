//! What stands beside the results of a sweep: which program did it, and of what.

use serde::{Deserialize, Serialize};

use super::FORMAT;
use crate::scenario::Study;

/// What a directory says of its sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of Ackclock.
    pub ackclock: String,
    /// SHA-256 of the definition in lower-case hexadecimal.
    pub sha256: String,
    /// Runs there are to be.
    pub runs: u64,
    /// Keys of each axis.
    pub axes: Vec<Vec<String>>,
    /// What the runs depend on besides the program.
    pub definition: serde_json::Value,
}

impl About {
    /// Of `study`.
    pub fn new(study: &Study<'_>) -> Self {
        Self {
            format: FORMAT,
            ackclock: env!("CARGO_PKG_VERSION").to_owned(),
            sha256: study.sha256(),
            runs: study.runs(),
            axes: study.axes(),
            definition: study.definition(),
        }
    }

    /// As JSON, pretty-printed, with a newline at the end.
    pub fn to_json(&self) -> String {
        // No map with keys other than strings and no fallible serializer is in it.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads what [`About::to_json`] wrote.
    ///
    /// # Errors
    /// Where it is no such JSON.
    pub fn from_json(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }
}
