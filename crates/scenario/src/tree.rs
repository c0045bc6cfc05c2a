//! The text as a tree of keys and values with their positions.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::{SourceId, SpannedError, TextSpan};
use super::syntax;

/// A value with its position.
#[derive(Debug, Clone)]
pub(super) struct TomlNode {
    pub(super) span: TextSpan,
    pub(super) value: TomlValue,
}

/// A value of the text. Numbers are kept as text to preserve all digits.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TomlValue {
    Text(String),
    Integer(String),
    Float(String),
    Switch(bool),
    Date(String),
    List(Vec<TomlNode>),
    Table(Vec<TomlEntry>),
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(super) struct TomlEntry {
    pub(super) key: String,
    pub(super) place: TextSpan,
    pub(super) node: TomlNode,
}

/// Comparison ignores the position.
impl PartialEq for TomlNode {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Comparison ignores the position.
impl PartialEq for TomlEntry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.node == other.node
    }
}

/// Parses a whole text.
///
/// # Errors
/// The independent syntax errors of the text.
pub(super) fn parse(text: &str, source: SourceId) -> Result<TomlNode, Vec<SpannedError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let value = TomlValue::Table(entries(table.get_ref(), source, 0));
        return Ok(TomlNode { span: source.span(0..0), value });
    }
    Err(syntax::faults(&errors, text, source))
}

/// Parses one value that starts `offset` bytes into its source; `None` if it is not TOML.
pub(super) fn parse_value(text: &str, source: SourceId, offset: usize) -> Option<TomlNode> {
    DeValue::parse(text).ok().map(|value| node(&value, source, offset))
}

/// Parses the value of an argument at `span`, `offset` bytes into its source; text that is not
/// TOML is read as a string.
pub(super) fn argument_value(
    text: &str,
    place: TextSpan,
    source: SourceId,
    offset: usize,
) -> TomlNode {
    let plain = || TomlNode { span: place, value: TomlValue::Text(text.to_owned()) };
    parse_value(text, source, offset).unwrap_or_else(plain)
}

/// Converts to a value of `toml_edit`.
pub(super) fn toml_value(node: &TomlNode) -> toml_edit::Value {
    match &node.value {
        TomlValue::Text(text) => text.into(),
        TomlValue::Integer(text) | TomlValue::Float(text) | TomlValue::Date(text) => {
            text.parse().unwrap_or_else(|_| text.into())
        }
        TomlValue::Switch(on) => (*on).into(),
        TomlValue::List(items) => toml_edit::Array::from_iter(items.iter().map(toml_value)).into(),
        TomlValue::Table(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.as_str(), toml_value(&entry.node)));
            toml_edit::InlineTable::from_iter(pairs).into()
        }
    }
}

fn entries(table: &DeTable<'_>, source: SourceId, offset: usize) -> Vec<TomlEntry> {
    let mut entries: Vec<(usize, TomlEntry)> = table
        .iter()
        .map(|(key, value)| {
            let span = key.span();
            let entry = TomlEntry {
                key: key.get_ref().to_string(),
                place: source.span(span.start + offset..span.end + offset),
                node: node(value, source, offset),
            };
            (span.start, entry)
        })
        .collect();
    // The parser sorts keys by name; hosts are numbered in the order of the file.
    entries.sort_by_key(|(start, _)| *start);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

fn node(value: &Spanned<DeValue<'_>>, source: SourceId, offset: usize) -> TomlNode {
    let span = value.span();
    let content = match value.get_ref() {
        DeValue::String(text) => TomlValue::Text(text.to_string()),
        DeValue::Integer(number) => TomlValue::Integer(number.to_string()),
        DeValue::Float(number) => TomlValue::Float(number.to_string()),
        DeValue::Boolean(on) => TomlValue::Switch(*on),
        DeValue::Datetime(date) => TomlValue::Date(date.to_string()),
        DeValue::Array(items) => {
            TomlValue::List(items.iter().map(|item| node(item, source, offset)).collect())
        }
        DeValue::Table(table) => TomlValue::Table(entries(table, source, offset)),
    };
    TomlNode { span: source.span(span.start + offset..span.end + offset), value: content }
}

impl TomlNode {
    /// Copies the positions of `other` for the parts that both have, by key and index.
    pub(super) fn take_spans(&mut self, other: &Self) {
        self.span = other.span;
        match (&mut self.value, &other.value) {
            (TomlValue::List(items), TomlValue::List(others)) => {
                items.iter_mut().zip(others).for_each(|(item, other)| item.take_spans(other));
            }
            (TomlValue::Table(entries), TomlValue::Table(others)) => {
                for entry in entries {
                    if let Some(other) = others.iter().find(|other| other.key == entry.key) {
                        entry.place = other.place;
                        entry.node.take_spans(&other.node);
                    }
                }
            }
            _ => {}
        }
    }

    /// Sets the position of the value and all its parts.
    pub(super) fn set_span(&mut self, place: TextSpan) {
        self.span = place;
        match &mut self.value {
            TomlValue::List(items) => items.iter_mut().for_each(|item| item.set_span(place)),
            TomlValue::Table(entries) => {
                for entry in entries {
                    entry.place = place;
                    entry.node.set_span(place);
                }
            }
            _ => {}
        }
    }

    /// Describes the value for an error: as written, or its type if it is a list or table.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            TomlValue::Text(text) => format!("{:?}", shortened(text)),
            TomlValue::Integer(number) | TomlValue::Float(number) => shortened(number),
            TomlValue::Switch(on) => on.to_string(),
            TomlValue::Date(date) => format!("the date {date}"),
            TomlValue::List(_) => "a list".into(),
            TomlValue::Table(_) => "a table".into(),
        }
    }
}

fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
