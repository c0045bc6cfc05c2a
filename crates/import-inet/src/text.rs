//! Parser of ini files: sections, keys and values with their positions.

use indexmap::IndexMap;
use scenario::ScenarioError;

/// The default section, also for lines before any section.
pub(super) const GENERAL: &str = "General";

/// The sections by name, in the order of the file, `General` first.
pub(super) type IniSections = IndexMap<String, Vec<IniEntry>>;

/// `key = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IniEntry {
    pub(super) key: String,
    pub(super) value: String,
    /// Line, from 1; columns also count from 1.
    pub(super) line: usize,
    pub(super) key_column: usize,
    pub(super) value_column: usize,
    /// The line itself.
    pub(super) text: String,
}

impl IniEntry {
    /// Creates an error about `width` characters of the value, from offset `at`.
    pub(super) fn error(
        &self,
        file: &str,
        (at, width): (usize, usize),
        message: String,
        expected: &str,
    ) -> ScenarioError {
        ScenarioError {
            file: file.to_owned(),
            line: self.line,
            column: self.value_column + at,
            width,
            source_line: self.text.clone(),
            message,
            found: None,
            expected: Some(expected.to_owned()),
            hint: None,
        }
    }

    /// Creates an error about the whole value.
    pub(super) fn wrong(&self, file: &str, message: String, expected: &str) -> ScenarioError {
        self.error(file, (0, self.value.chars().count()), message, expected)
    }
}

/// Parses the sections of `text`, `General` first.
pub(super) fn sections(text: &str, file: &str) -> Result<IniSections, Vec<ScenarioError>> {
    let mut sections = IniSections::from([(GENERAL.to_owned(), Vec::new())]);
    let mut at = 0;
    let mut errors = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let kept = without_comment(line);
        let column = |byte: usize| line[..byte].chars().count() + 1;
        let error = |byte: usize, width: usize, message: &str, expected: &str| ScenarioError {
            file: file.to_owned(),
            line: index + 1,
            column: column(byte),
            width,
            source_line: line.to_owned(),
            message: message.to_owned(),
            found: None,
            expected: Some(expected.to_owned()),
            hint: None,
        };
        let begin = kept.len() - kept.trim_start().len();
        let trimmed = kept.trim();
        if trimmed.is_empty() {
            continue;
        }
        let width = trimmed.chars().count();
        if let Some(head) = trimmed.strip_prefix('[') {
            let name = head.strip_suffix(']').map(str::trim);
            let name = name.map(|name| name.strip_prefix("Config ").unwrap_or(name).trim());
            match name {
                Some(name) if !name.is_empty() => {
                    let section = sections.entry(name.to_owned());
                    at = section.index();
                    section.or_default();
                }
                _ => errors.push(error(begin, width, "this is not a section", "[Config NAME]")),
            }
            continue;
        }
        let Some((key, value)) = kept.split_once('=') else {
            errors.push(error(begin, width, "this line is not a key with a value", "KEY = VALUE"));
            continue;
        };
        let value_begin = key.len() + 1 + (value.len() - value.trim_start().len());
        if key.trim().is_empty() {
            errors.push(error(begin, 1, "the key is missing", "KEY = VALUE"));
        } else if value.trim().is_empty() {
            errors.push(error(kept.len(), 0, "the value is missing", "KEY = VALUE"));
        } else {
            sections[at].push(IniEntry {
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
                line: index + 1,
                key_column: column(begin),
                value_column: column(value_begin),
                text: line.to_owned(),
            });
        }
    }
    if errors.is_empty() { Ok(sections) } else { Err(errors) }
}

/// Strips the comment of a line, which starts with # outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}
