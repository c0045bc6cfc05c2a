//! Error of a text and its position.

use core::fmt;

/// A position in a text where something else was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// Line of the text, counted from 1.
    pub line: usize,
    /// Character of the line, counted from 1.
    pub column: usize,
    /// The expected text.
    pub expected: String,
    /// The text found.
    pub found: String,
}

impl TextError {
    /// An error at byte `at` of `text`.
    pub(super) fn new(text: &str, at: usize, expected: &str, found: &str) -> Self {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, expected, found } = self;
        write!(f, "line {line}, column {column}: expected {expected}, found {found}")
    }
}

impl core::error::Error for TextError {}
