//! Where things stand: in the file, or in an argument that overrides it.

use super::ScenarioError;

/// A stretch of one of the [`Sources`], in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    source: u32,
    start: usize,
    end: usize,
}

/// The texts a scenario is made of: the file first, then the arguments.
#[derive(Debug)]
pub(super) struct Sources<'t> {
    texts: Vec<(&'t str, &'t str)>,
}

/// Number of a text among the [`Sources`].
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceId(u32);

/// A mistake before its place is put in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    place: Place,
    message: String,
    found: Option<String>,
    expected: Option<String>,
    hint: Option<String>,
}

impl Place {
    /// Of a value that no text holds.
    pub(super) const NOWHERE: Self = Self { source: 0, start: 0, end: 0 };

    /// From the beginning of this to the end of `last`, which stands in the same text.
    pub(super) fn to(self, last: Self) -> Self {
        Self { end: last.end.max(self.end), ..self }
    }
}

impl SourceId {
    /// The stretch `span` of this text.
    pub(super) fn place(self, span: core::ops::Range<usize>) -> Place {
        Place { source: self.0, start: span.start, end: span.end }
    }
}

impl<'t> Sources<'t> {
    /// A file of that name.
    pub(super) fn new(file_name: &'t str, text: &'t str) -> (Self, SourceId) {
        (Self { texts: vec![(file_name, text)] }, SourceId(0))
    }

    /// One more text.
    pub(super) fn add(&mut self, name: &'t str, text: &'t str) -> SourceId {
        self.texts.push((name, text));
        SourceId(self.texts.len() as u32 - 1)
    }

    /// The line of `place` in its text, from 1.
    pub(super) fn line(&self, place: Place) -> usize {
        let (_, text) = self.texts[place.source as usize];
        text[..floor(text, place.start)].matches('\n').count() + 1
    }

    /// All `faults`, in the order of the texts.
    pub(super) fn errors(&self, mut faults: Vec<Fault>) -> Vec<ScenarioError> {
        faults.sort_by_key(|fault| fault.place);
        faults.into_iter().map(|fault| self.error(fault)).collect()
    }

    fn error(&self, fault: Fault) -> ScenarioError {
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
        // A place on the line's end, or one that runs over several lines, is cut to the first.
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

/// The last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

impl Fault {
    pub(super) fn new(place: Place, message: impl Into<String>) -> Self {
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
