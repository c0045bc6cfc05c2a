//! Source texts and positions in them: the file and the arguments that override it.

use super::ScenarioError;

/// A byte range in one of the [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TextSpan {
    source: u32,
    start: usize,
    end: usize,
}

/// Maximum number of errors that are reported one by one.
const MAX_ERRORS: usize = 20;

/// Errors of a scenario, counted; only the first [`MAX_ERRORS`] in the text and the one after them
/// are kept, so that a file with an error in each word needs little memory.
#[derive(Debug, Default)]
pub(super) struct ReportedErrors {
    kept: Vec<SpannedError>,
    total: usize,
}

impl ReportedErrors {
    pub(super) fn push(&mut self, fault: SpannedError) {
        self.total += 1;
        self.kept.push(fault);
        if self.kept.len() > 4 * MAX_ERRORS {
            self.shorten();
        }
    }

    /// Sorts the errors by position and drops those that are not reported.
    fn shorten(&mut self) {
        self.kept.sort_by_key(|fault| fault.place);
        self.kept.truncate(MAX_ERRORS + 1);
    }

    /// Adds the errors that are not among these.
    pub(super) fn merge(&mut self, others: Self) {
        self.total += others.total - others.kept.len();
        for fault in others.kept {
            if !self.kept.contains(&fault) {
                self.push(fault);
            }
        }
    }

    /// Returns the number of errors, those that were not kept included.
    pub(super) const fn len(&self) -> usize {
        self.total
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns whether more errors were found than are reported: another one needs no suggestion.
    pub(super) const fn are_many(&self) -> bool {
        self.total > 4 * MAX_ERRORS
    }
}

impl From<Vec<SpannedError>> for ReportedErrors {
    fn from(faults: Vec<SpannedError>) -> Self {
        Self { total: faults.len(), kept: faults }
    }
}

/// The source texts of a scenario: the file, then the arguments.
#[derive(Debug)]
pub(super) struct Sources<'t> {
    texts: Vec<(&'t str, &'t str)>,
}

/// Index of a text in the [`Sources`].
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceId(u32);

/// An error whose position is not converted to line and column yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpannedError {
    place: TextSpan,
    message: String,
    found: Option<String>,
    expected: Option<String>,
    hint: Option<String>,
}

impl TextSpan {
    /// Span of a value without a source text.
    pub(super) const NONE: Self = Self { source: 0, start: 0, end: 0 };

    /// Returns the range from the start of `self` to the end of `last` in the same text.
    pub(super) fn to(self, last: Self) -> Self {
        Self { end: last.end.max(self.end), ..self }
    }
}

impl SourceId {
    /// Returns a byte range of this text.
    pub(super) fn span(self, span: core::ops::Range<usize>) -> TextSpan {
        TextSpan { source: self.0, start: span.start, end: span.end }
    }
}

impl<'t> Sources<'t> {
    /// Creates the sources of a file.
    pub(super) fn new(file_name: &'t str, text: &'t str) -> (Self, SourceId) {
        (Self { texts: vec![(file_name, text)] }, SourceId(0))
    }

    /// Adds a text.
    pub(super) fn add(&mut self, name: &'t str, text: &'t str) -> SourceId {
        self.texts.push((name, text));
        SourceId(self.texts.len() as u32 - 1)
    }

    /// Returns the line number of `place` in its text, from 1.
    pub(super) fn line(&self, place: TextSpan) -> usize {
        let (_, text) = self.texts[place.source as usize];
        text[..floor(text, place.start)].matches('\n').count() + 1
    }

    /// Converts `faults`, sorted by position. Of more than [`MAX_ERRORS`] the last one reported is
    /// the number of the others, at the position of the first of them.
    pub(super) fn errors(&self, faults: impl Into<ReportedErrors>) -> Vec<ScenarioError> {
        let mut faults = faults.into();
        faults.shorten();
        let others = faults.total.saturating_sub(MAX_ERRORS);
        if let Some(first_other) = faults.kept.get_mut(MAX_ERRORS).filter(|_| others > 1) {
            *first_other =
                SpannedError::new(first_other.place, format!("{others} more errors from here on"));
        }
        faults.kept.into_iter().map(|fault| self.error(fault)).collect()
    }

    fn error(&self, fault: SpannedError) -> ScenarioError {
        let (file, text) = self.texts[fault.place.source as usize];
        let start = floor(text, fault.place.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        // A byte-order mark has no width.
        let mark =
            if text[line_start..].starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let (line_start, start) = (line_start + mark, start.max(line_start + mark));
        let rest = &text[line_start..];
        let line = rest.split('\n').next().unwrap_or("");
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line_end = line_start + line.len();
        // A span at the end of the line, or over several lines, is truncated to the first line.
        let start = start.min(line_end);
        let end = floor(text, fault.place.end).clamp(start, line_end);
        ScenarioError {
            file: file.to_owned(),
            line: text[..line_start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: text[start..end].chars().count(),
            source_line: line.to_owned(),
            message: fault.message,
            found: fault.found,
            expected: fault.expected,
            hint: fault.hint,
        }
    }
}

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

impl SpannedError {
    pub(super) fn new(place: TextSpan, message: impl Into<String>) -> Self {
        Self { place, message: message.into(), found: None, expected: None, hint: None }
    }

    pub(super) fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    pub(super) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = hint.into();
        self
    }
}
