//! The text as a tree in which every key and value knows its place.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::{Fault, Place, SourceId};
use super::syntax;

/// A value with its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A value of the text. Numbers stay text, so that no digit is lost.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(String),
    Float(String),
    Switch(bool),
    Date(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) node: Node,
}

/// Equal in content, wherever it stands.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Equal in content, wherever it stands.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.node == other.node
    }
}

/// Reads a whole text.
///
/// # Errors
/// The places where it is not TOML, as far as they do not follow from one another.
pub(super) fn parse(text: &str, source: SourceId) -> Result<Node, Vec<Fault>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let value = Value::Table(entries(table.get_ref(), source, 0));
        return Ok(Node { place: source.place(0..0), value });
    }
    Err(syntax::faults(&errors, text, source))
}

/// Reads one value that begins `offset` bytes into its source; `None` if it is not TOML.
pub(super) fn parse_value(text: &str, source: SourceId, offset: usize) -> Option<Node> {
    DeValue::parse(text).ok().map(|value| node(&value, source, offset))
}

/// The value of an argument that stands at `place`, `offset` bytes into its source: what is no
/// TOML is taken as a string.
pub(super) fn argument_value(text: &str, place: Place, source: SourceId, offset: usize) -> Node {
    let plain = || Node { place, value: Value::Text(text.to_owned()) };
    parse_value(text, source, offset).unwrap_or_else(plain)
}

/// The value as it is written in a text.
pub(super) fn toml_value(node: &Node) -> toml_edit::Value {
    match &node.value {
        Value::Text(text) => text.into(),
        Value::Integer(text) | Value::Float(text) | Value::Date(text) => {
            text.parse().unwrap_or_else(|_| text.into())
        }
        Value::Switch(on) => (*on).into(),
        Value::List(items) => toml_edit::Array::from_iter(items.iter().map(toml_value)).into(),
        Value::Table(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.as_str(), toml_value(&entry.node)));
            toml_edit::InlineTable::from_iter(pairs).into()
        }
    }
}

fn entries(table: &DeTable<'_>, source: SourceId, offset: usize) -> Vec<Entry> {
    let mut entries: Vec<(usize, Entry)> = table
        .iter()
        .map(|(key, value)| {
            let span = key.span();
            let entry = Entry {
                key: key.get_ref().to_string(),
                place: source.place(span.start + offset..span.end + offset),
                node: node(value, source, offset),
            };
            (span.start, entry)
        })
        .collect();
    // The parser sorts keys by name; hosts count in the order they were written.
    entries.sort_by_key(|(start, _)| *start);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

fn node(value: &Spanned<DeValue<'_>>, source: SourceId, offset: usize) -> Node {
    let span = value.span();
    let content = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Integer(number.to_string()),
        DeValue::Float(number) => Value::Float(number.to_string()),
        DeValue::Boolean(on) => Value::Switch(*on),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| node(item, source, offset)).collect())
        }
        DeValue::Table(table) => Value::Table(entries(table, source, offset)),
    };
    Node { place: source.place(span.start + offset..span.end + offset), value: content }
}

impl Node {
    /// Takes the places of the parts of `other` that it has too, by key and number.
    pub(super) fn take_places(&mut self, other: &Self) {
        self.place = other.place;
        match (&mut self.value, &other.value) {
            (Value::List(items), Value::List(others)) => {
                items.iter_mut().zip(others).for_each(|(item, other)| item.take_places(other));
            }
            (Value::Table(entries), Value::Table(others)) => {
                for entry in entries {
                    if let Some(other) = others.iter().find(|other| other.key == entry.key) {
                        entry.place = other.place;
                        entry.node.take_places(&other.node);
                    }
                }
            }
            _ => {}
        }
    }

    /// Everything in it stands at `place`.
    pub(super) fn stand_at(&mut self, place: Place) {
        self.place = place;
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.stand_at(place)),
            Value::Table(entries) => {
                for entry in entries {
                    entry.place = place;
                    entry.node.stand_at(place);
                }
            }
            _ => {}
        }
    }

    /// What it is, for an error: the value as it was written, or its kind if it has parts.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("{:?}", shortened(text)),
            Value::Integer(number) | Value::Float(number) => shortened(number),
            Value::Switch(on) => on.to_string(),
            Value::Date(date) => format!("the date {date}"),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
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
