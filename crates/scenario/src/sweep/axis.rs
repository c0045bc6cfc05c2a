//! An axis: keys that change together, and the values they take.

use serde_json::{Value as Json, json};

use super::super::keys::{Kind, Located, Reader, Shape};
use super::super::overrides::{key_path, split_argument};
use super::super::setting::{Setting, Settings, write_settings};
use super::super::shorthand;
use super::super::source::{Fault, Place, SourceId, Sources};
use super::super::tree::{self, Entry, Node, Value};
use super::range;

/// The table of all axes.
pub(crate) struct Axes;

/// Keys that change together, with the values they take.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    keys: Vec<AxisKey>,
    /// One node for each key.
    values: Vec<Vec<Node>>,
    place: Place,
}

/// A key as the user wrote it and where it leads.
#[derive(Debug, Clone)]
struct AxisKey {
    name: String,
    path: Vec<(String, Place)>,
}

/// A path of keys with their places.
pub(super) type KeyPath = [(String, Place)];

impl Shape for Axes {
    fn schema(&self) -> Json {
        let value = json!({ "type": ["string", "number", "boolean", "array", "object"] });
        let values = json!({ "type": "array", "items": value, "minItems": 1 });
        let range = json!({ "type": "string" });
        json!({ "type": "object", "additionalProperties": { "anyOf": [values, range] } })
    }

    fn takes(&self) -> String {
        "table of lists or ranges (`\"10ms..100ms step 10ms\"`)".into()
    }
}

impl Axis {
    /// How many values it takes.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Its keys as the user wrote them.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(|key| key.name.clone())
    }

    /// Value number `value` as text, one for each key.
    pub(super) fn labels(&self, value: usize) -> Vec<String> {
        self.values[value].iter().map(label).collect()
    }

    /// What value number `value` sets.
    pub(super) fn settings(&self, value: usize) -> impl Iterator<Item = (&KeyPath, &Node)> {
        self.keys.iter().map(|key| key.path.as_slice()).zip(&self.values[value])
    }

    /// Number of the key `name` among those of this axis: as written, or as it leads.
    pub(super) fn key(&self, name: &str) -> Option<usize> {
        let dotted = |key: &AxisKey| {
            let parts: Vec<&str> = key.path.iter().map(|(part, _)| part.as_str()).collect();
            parts.join(".")
        };
        self.keys.iter().position(|key| key.name == name || dotted(key) == name)
    }

    /// Does it change a key that `other` changes too?
    fn meets(&self, other: &Self) -> bool {
        let same = |a: &AxisKey, b: &AxisKey| {
            a.path.len() == b.path.len() && a.path.iter().zip(&b.path).all(|(a, b)| a.0 == b.0)
        };
        self.keys.iter().any(|a| other.keys.iter().any(|b| same(a, b)))
    }
}

/// A value as people write it.
pub(super) fn label(node: &Node) -> String {
    match &node.value {
        Value::Text(text) | Value::Integer(text) | Value::Float(text) | Value::Date(text) => {
            text.clone()
        }
        Value::Switch(on) => on.to_string(),
        Value::List(_) | Value::Table(_) => tree::toml_value(node).to_string().trim().to_owned(),
    }
}

/// Dotted keys without quotes are tables in TOML: those that hold values are found below them.
fn flatten(above: &str, entries: &[Entry], found: &mut Settings) {
    for Entry { key, place, node } in entries {
        let name = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match &node.value {
            Value::Table(inner) => flatten(&name, inner, found),
            _ => found.push((Located { value: name, place: *place }, Setting(node.clone()))),
        }
    }
}

impl Kind for Axes {
    type Value = Settings;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Settings> {
        let mut found = Settings::new();
        flatten("", reader.table(node, &format!("`{key}`"))?, &mut found);
        Some(found)
    }

    fn write(&self, value: &Settings) -> toml_edit::Value {
        write_settings(value)
    }
}

/// The axes of `[sweep.axes]`, whose keys lead to places of the scenario `root`.
pub(super) fn axes(settings: &Settings, root: &Node, reader: &mut Reader) -> Vec<Axis> {
    let axes = settings.iter().map(|(name, Setting(node))| axis(name, node, root, reader));
    axes.collect::<Vec<_>>().into_iter().flatten().collect()
}

fn axis(name: &Located<String>, node: &Node, root: &Node, reader: &mut Reader) -> Option<Axis> {
    let keys = keys(&name.value, |_| name.place, root, reader)?;
    let values: Vec<Node> = match &node.value {
        Value::List(items) => items.clone(),
        Value::Text(text) => match range::read(text, node.place) {
            Ok(Some(values)) => values,
            Ok(None) => vec![node.clone()],
            Err(fault) => {
                reader.report(fault);
                return None;
            }
        },
        _ => vec![node.clone()],
    };
    finish(keys, values, name.place, reader)
}

/// Reads an argument `KEY=VALUE,VALUE`, `KEY=RANGE` or `KEY,KEY=(VALUE,VALUE),(VALUE,VALUE)`.
pub(super) fn parse(
    argument: &str,
    source: SourceId,
    root: &Node,
    reader: &mut Reader,
) -> Option<Axis> {
    let whole = source.place(0..argument.len());
    let Some((names, text, start)) = split_argument(argument) else {
        let fault = Fault::new(whole, "no `=` in this argument");
        reader.report(fault.expected("KEY=VALUE,VALUE or KEY=10ms..100ms step 10ms"));
        return None;
    };
    let at = |span: core::ops::Range<usize>| source.place(span);
    let keys = keys(names, at, root, reader)?;
    let place = source.place(start..start + text.len());
    match range::read(text, place) {
        Ok(Some(values)) => return finish(keys, values, whole, reader),
        Ok(None) => {}
        Err(fault) => {
            reader.report(fault);
            return None;
        }
    }
    let values = pieces(text)
        .into_iter()
        .map(|span| {
            let place =
                |span: &core::ops::Range<usize>| source.place(start + span.start..start + span.end);
            let piece = &text[span.clone()];
            let group = piece.strip_prefix('(').and_then(|piece| piece.strip_suffix(')'));
            match group.filter(|_| keys.len() > 1) {
                Some(group) => {
                    let items = pieces(group).into_iter().map(|inner| {
                        let span = span.start + 1 + inner.start..span.start + 1 + inner.end;
                        tree::argument_value(
                            &text[span.clone()],
                            place(&span),
                            source,
                            start + span.start,
                        )
                    });
                    Node { place: place(&span), value: Value::List(items.collect()) }
                }
                None => tree::argument_value(piece, place(&span), source, start + span.start),
            }
        })
        .collect();
    finish(keys, values, whole, reader)
}

/// The stretches between commas that stand outside of quotes and brackets, without blanks around.
fn pieces(text: &str) -> Vec<core::ops::Range<usize>> {
    let mut found = Vec::new();
    let (mut depth, mut quote, mut start) = (0_u32, None, 0);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                found.push(trimmed(text, start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(trimmed(text, start..text.len()));
    found
}

fn trimmed(text: &str, span: core::ops::Range<usize>) -> core::ops::Range<usize> {
    let piece = &text[span.clone()];
    let start = span.start + (piece.len() - piece.trim_start().len());
    start..start + piece.trim().len()
}

/// The keys of an axis; `at` gives the place of a stretch of `names`.
fn keys(
    names: &str,
    at: impl Fn(core::ops::Range<usize>) -> Place,
    root: &Node,
    reader: &mut Reader,
) -> Option<Vec<AxisKey>> {
    let mut found = Vec::new();
    for span in pieces(names) {
        let name = &names[span.clone()];
        let place = at(span.clone());
        let path = key_path(name).map(|path| {
            let part = |(name, inner): (String, core::ops::Range<usize>)| {
                (name, at(span.start + inner.start..span.start + inner.end))
            };
            path.into_iter().map(part).collect()
        });
        let Some(path) = path else {
            let fault = Fault::new(place, "this is no key");
            reader.report(fault.expected("dotted keys such as host.sender.cc"));
            return None;
        };
        match shorthand::resolve(path, root) {
            Ok(path) => found.push(AxisKey { name: name.to_owned(), path }),
            Err(fault) => {
                reader.report(fault);
                return None;
            }
        }
    }
    Some(found)
}

/// Gives each key its value.
fn finish(
    keys: Vec<AxisKey>,
    values: Vec<Node>,
    place: Place,
    reader: &mut Reader,
) -> Option<Axis> {
    if values.is_empty() {
        reader.report(Fault::new(place, "this axis has no values"));
        return None;
    }
    if keys.len() == 1 {
        return Some(Axis {
            keys,
            values: values.into_iter().map(|value| vec![value]).collect(),
            place,
        });
    }
    let mut together = Vec::new();
    for value in values {
        match value.value {
            Value::List(items) if items.len() == keys.len() => together.push(items),
            _ => {
                let message = format!("this axis has {} keys", keys.len());
                let fault = Fault::new(value.place, message).found(value.describe());
                reader.report(fault.expected(format!("{} values together", keys.len())));
                return None;
            }
        }
    }
    Some(Axis { keys, values: together, place })
}

/// Adds an axis, in the place of one that has the same keys.
pub(super) fn put(axes: &mut Vec<Axis>, axis: Axis) {
    match axes.iter_mut().find(|known| known.keys.len() == axis.keys.len() && known.meets(&axis)) {
        Some(known) => *known = axis,
        None => axes.push(axis),
    }
}

/// Refuses two axes over one key.
pub(super) fn check(axes: &[Axis], sources: &Sources<'_>, reader: &mut Reader) {
    for (number, axis) in axes.iter().enumerate() {
        if let Some(first) = axes[..number].iter().find(|first| first.meets(axis)) {
            let fault = Fault::new(axis.place, "a second axis over the same key");
            reader
                .report(fault.hint(format!("the first is on line {}", sources.line(first.place))));
        }
    }
}
