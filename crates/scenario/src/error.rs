//! What is wrong with a scenario, and where: content only, see [`super::report`] for its look.

use std::fmt;

use serde::Serialize;

/// A mistake in a scenario, with its place in the text its author wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScenarioError {
    /// The file, as it was named to Ackclock; `--set` for a mistake in such an argument.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Characters concerned, from that column on, on that line; 0 marks a place between two.
    pub width: usize,
    /// The line itself.
    pub source_line: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What stands there.
    pub found: Option<String>,
    /// What would be right.
    pub expected: Option<String>,
    /// A guess at what was meant, or an advice.
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
    /// Expected and found in one clause.
    pub(super) fn label(&self) -> Option<String> {
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => Some(format!("expected {expected}, found {found}")),
            (Some(expected), None) => Some(format!("expected {expected}")),
            (None, Some(found)) => Some(format!("found {found}")),
            (None, None) => None,
        }
    }
}
