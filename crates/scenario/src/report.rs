//! Formats scenario errors with the source line and the error marked.

use super::ScenarioError;
pub use crate::snippet::ReportStyle;
use crate::snippet::{Annotated, SnippetSeverity, render};

/// Formats all errors, one block each, separated by blank lines, with a final newline.
pub fn report(errors: &[ScenarioError], look: ReportStyle) -> String {
    let marked = errors.iter().map(|error| Annotated {
        weight: SnippetSeverity::Error,
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
