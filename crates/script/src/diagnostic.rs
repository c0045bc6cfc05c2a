//! Diagnostics of a script or its run; the caller formats them.

use std::fmt;

/// A byte range of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct ScriptSpan {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl ScriptSpan {
    /// Returns the range from the start of `self` to the end of `other`.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }
}

/// A diagnostic about a position in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Length in characters from that column; 0 marks a position between two characters.
    pub width: usize,
    /// The line itself.
    pub source_line: Box<str>,
    /// The error, in one sentence.
    pub message: Box<str>,
    /// The expected text or event.
    pub expected: Option<Box<str>>,
    /// The actual text or event.
    pub found: Option<Box<str>>,
    /// A suggestion or further information.
    pub hint: Option<Box<str>>,
}

impl Diagnostic {
    /// Creates a diagnostic about a range of `text`.
    pub(crate) fn new(text: &str, span: ScriptSpan, message: impl Into<String>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        // A byte-order mark has no width.
        let mark =
            if text[line_start..].starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let (line_start, start) = (line_start + mark, start.max(line_start + mark));
        let line = text[line_start..].split('\n').next().unwrap_or("");
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line_end = line_start + line.len();
        // A span at the end of the line, or over several lines, is truncated to the first line.
        let start = start.min(line_end);
        let end = text.floor_char_boundary(span.end).clamp(start, line_end);
        Self {
            line: text[..line_start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: text[start..end].chars().count(),
            source_line: line.into(),
            message: message.into().into(),
            expected: None,
            found: None,
            hint: None,
        }
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into().into());
        self
    }

    pub(crate) fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into().into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = hint.into().map(Into::into);
        self
    }

    /// Returns expected and found text in one clause.
    pub fn label(&self) -> Option<String> {
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => Some(format!("expected {expected}, found {found}")),
            (Some(expected), None) => Some(format!("expected {expected}")),
            (None, Some(found)) => Some(format!("found {found}")),
            (None, None) => None,
        }
    }
}

impl std::error::Error for Diagnostic {}

/// One line: `12:28: the PSH flag differs (expected P., found .); ...`
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        if let Some(label) = self.label() {
            write!(f, " ({label})")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters() {
        let text = "\u{feff}eins\nzwö drei\r\nvier";
        let at = text.find("drei").unwrap();
        let d = Diagnostic::new(text, ScriptSpan { start: at, end: at + 4 }, "here");
        assert_eq!((d.line, d.column, d.width), (2, 5, 4));
        assert_eq!(&*d.source_line, "zwö drei");
        let first = Diagnostic::new(text, ScriptSpan { start: 0, end: 3 }, "here");
        assert_eq!((first.line, first.column), (1, 1));
        let beyond = Diagnostic::new(text, ScriptSpan { start: 999, end: 1_000 }, "here");
        assert_eq!((beyond.line, beyond.column, beyond.width), (3, 5, 0));
    }
}
