//! Scenario errors as people read them: the line they wrote, with the mistake marked.

use super::ScenarioError;
pub use crate::snippet::Look;
use crate::snippet::{Marked, Weight, render};

/// All errors, one block each, a blank line between, with a newline at the end.
pub fn report(errors: &[ScenarioError], look: Look) -> String {
    let marked = errors.iter().map(|error| Marked {
        weight: Weight::Error,
        file: &error.file,
        line: error.line,
        column: error.column,
        width: error.width,
        source_line: &error.source_line,
        message: &error.message,
        label: error.label(),
        hint: error.hint.as_deref(),
    });
    render(marked, look)
}
