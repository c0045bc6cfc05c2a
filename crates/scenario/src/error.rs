//! Errors in a scenario with their positions; [`super::report`] formats them.

use std::fmt;

use serde::Serialize;

/// An error in a scenario, with its position in the source text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScenarioError {
    /// Name of the file, or `--set` for an error in such an argument.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Length in characters from that column; 0 marks a position between two characters.
    pub width: usize,
    /// The line itself.
    pub source_line: String,
    /// The error, in one sentence.
    pub message: String,
    /// The value found.
    pub found: Option<String>,
    /// The value expected.
    pub expected: Option<String>,
    /// A suggestion or advice.
    pub hint: Option<String>,
}

impl std::error::Error for ScenarioError {}

/// One line: `slow.toml:12:28: `delay` has no unit (expected ..., found 50); did you mean ...?`
impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        if let Some(label) = self.label() {
            write!(f, " ({label})")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl ScenarioError {
    /// Returns expected and found value in one clause.
    pub(super) fn label(&self) -> Option<String> {
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => Some(format!("expected {expected}, found {found}")),
            (Some(expected), None) => Some(format!("expected {expected}")),
            (None, Some(found)) => Some(format!("found {found}")),
            (None, None) => None,
        }
    }
}
