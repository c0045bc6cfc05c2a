//! A sweep axis: keys that vary together, and their values.

use serde_json::{Value as Json, json};

use super::super::keys::{KeyCodec, KeyType, Located, ScenarioReader};
use super::super::overrides::{key_path, split_argument};
use super::super::setting::{RawValue, RawValues, write_raw_values};
use super::super::shorthand;
use super::super::source::{SourceId, Sources, SpannedError, TextSpan};
use super::super::tree::{self, TomlEntry, TomlNode, TomlValue};
use super::range;

/// The table of all axes.
pub(crate) struct AxesType;

/// Keys that vary together, with their values.
#[derive(Debug, Clone)]
pub(super) struct SweepAxis {
    keys: Vec<AxisKey>,
    /// One node for each key.
    values: Vec<Vec<TomlNode>>,
    span: TextSpan,
}

/// A key as written and its resolved path.
#[derive(Debug, Clone)]
struct AxisKey {
    name: String,
    path: Vec<(String, TextSpan)>,
}

/// A path of keys with their positions.
pub(super) type KeyPath = [(String, TextSpan)];

impl KeyType for AxesType {
    fn schema(&self) -> Json {
        let value = json!({ "type": ["string", "number", "boolean", "array", "object"] });
        let values = json!({ "type": "array", "items": value, "minItems": 1 });
        let range = json!({ "type": "string" });
        json!({ "type": "object", "additionalProperties": { "anyOf": [values, range] } })
    }

    fn type_name(&self) -> String {
        "table of lists or ranges (`\"10ms..100ms step 10ms\"`)".into()
    }
}

impl SweepAxis {
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns its keys as written.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(|key| key.name.clone())
    }

    /// Returns value number `value` as text, one for each key.
    pub(super) fn labels(&self, value: usize) -> Vec<String> {
        self.values[value].iter().map(label).collect()
    }

    /// Returns the key paths and nodes that value number `value` sets.
    pub(super) fn settings(&self, value: usize) -> impl Iterator<Item = (&KeyPath, &TomlNode)> {
        self.keys.iter().map(|key| key.path.as_slice()).zip(&self.values[value])
    }

    /// Returns the index of the key `name`, as written or in full.
    pub(super) fn key(&self, name: &str) -> Option<usize> {
        let dotted = |key: &AxisKey| {
            let parts: Vec<&str> = key.path.iter().map(|(part, _)| part.as_str()).collect();
            parts.join(".")
        };
        self.keys.iter().position(|key| key.name == name || dotted(key) == name)
    }

    /// Returns whether both axes vary a common key.
    fn shares_key_with(&self, other: &Self) -> bool {
        let same = |a: &AxisKey, b: &AxisKey| {
            a.path.len() == b.path.len() && a.path.iter().zip(&b.path).all(|(a, b)| a.0 == b.0)
        };
        self.keys.iter().any(|a| other.keys.iter().any(|b| same(a, b)))
    }
}

/// Formats a value without quotes.
pub(super) fn label(node: &TomlNode) -> String {
    match &node.value {
        TomlValue::Text(text)
        | TomlValue::Integer(text)
        | TomlValue::Float(text)
        | TomlValue::Date(text) => text.clone(),
        TomlValue::Switch(on) => on.to_string(),
        TomlValue::List(_) | TomlValue::Table(_) => {
            tree::toml_value(node).to_string().trim().to_owned()
        }
    }
}

/// Flattens nested tables, since dotted keys without quotes are tables in TOML.
fn flatten(above: &str, entries: &[TomlEntry], found: &mut RawValues) {
    for TomlEntry { key, place, node } in entries {
        let name = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        match &node.value {
            TomlValue::Table(inner) => flatten(&name, inner, found),
            _ => found.push((Located { value: name, span: *place }, RawValue(node.clone()))),
        }
    }
}

impl KeyCodec for AxesType {
    type Value = RawValues;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<RawValues> {
        let mut found = RawValues::new();
        flatten("", reader.table(node, &format!("`{key}`"))?, &mut found);
        Some(found)
    }

    fn write(&self, value: &RawValues) -> toml_edit::Value {
        write_raw_values(value)
    }
}

/// Reads the axes of `[sweep.axes]`, whose keys are resolved in the scenario `root`.
pub(super) fn axes(
    settings: &RawValues,
    root: &TomlNode,
    reader: &mut ScenarioReader,
) -> Vec<SweepAxis> {
    let axes = settings.iter().map(|(name, RawValue(node))| axis(name, node, root, reader));
    axes.collect::<Vec<_>>().into_iter().flatten().collect()
}

fn axis(
    name: &Located<String>,
    node: &TomlNode,
    root: &TomlNode,
    reader: &mut ScenarioReader,
) -> Option<SweepAxis> {
    let keys = keys(&name.value, |_| name.span, root, reader)?;
    let values: Vec<TomlNode> = match &node.value {
        TomlValue::List(items) => items.clone(),
        TomlValue::Text(text) => match range::read(text, node.span) {
            Ok(Some(values)) => values,
            Ok(None) => vec![node.clone()],
            Err(fault) => {
                reader.report(fault);
                return None;
            }
        },
        _ => vec![node.clone()],
    };
    finish(keys, values, name.span, reader)
}

/// Parses an argument `KEY=VALUE,VALUE`, `KEY=RANGE` or `KEY,KEY=(VALUE,VALUE),(VALUE,VALUE)`.
pub(super) fn parse(
    argument: &str,
    source: SourceId,
    root: &TomlNode,
    reader: &mut ScenarioReader,
) -> Option<SweepAxis> {
    let whole = source.span(0..argument.len());
    let Some((names, text, start)) = split_argument(argument) else {
        let fault = SpannedError::new(whole, "no `=` in this argument");
        reader.report(fault.expected("KEY=VALUE,VALUE or KEY=10ms..100ms step 10ms"));
        return None;
    };
    let at = |span: core::ops::Range<usize>| source.span(span);
    let keys = keys(names, at, root, reader)?;
    let place = source.span(start..start + text.len());
    match range::read(text, place) {
        Ok(Some(values)) => return finish(keys, values, whole, reader),
        Ok(None) => {}
        Err(fault) => {
            reader.report(fault);
            return None;
        }
    }
    let values = split_list(text)
        .into_iter()
        .map(|span| {
            let place =
                |span: &core::ops::Range<usize>| source.span(start + span.start..start + span.end);
            let part = &text[span.clone()];
            let group = part.strip_prefix('(').and_then(|part| part.strip_suffix(')'));
            match group.filter(|_| keys.len() > 1) {
                Some(group) => {
                    let items = split_list(group).into_iter().map(|inner| {
                        let span = span.start + 1 + inner.start..span.start + 1 + inner.end;
                        tree::argument_value(
                            &text[span.clone()],
                            place(&span),
                            source,
                            start + span.start,
                        )
                    });
                    TomlNode { span: place(&span), value: TomlValue::List(items.collect()) }
                }
                None => tree::argument_value(part, place(&span), source, start + span.start),
            }
        })
        .collect();
    finish(keys, values, whole, reader)
}

/// Splits at commas outside of quotes and brackets; returns the trimmed ranges.
fn split_list(text: &str) -> Vec<core::ops::Range<usize>> {
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
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// Parses the keys of an axis; `at` returns the position of a range of `names`.
fn keys(
    names: &str,
    at: impl Fn(core::ops::Range<usize>) -> TextSpan,
    root: &TomlNode,
    reader: &mut ScenarioReader,
) -> Option<Vec<AxisKey>> {
    let mut found = Vec::new();
    for span in split_list(names) {
        let name = &names[span.clone()];
        let place = at(span.clone());
        let path = key_path(name).map(|path| {
            let part = |(name, inner): (String, core::ops::Range<usize>)| {
                (name, at(span.start + inner.start..span.start + inner.end))
            };
            path.into_iter().map(part).collect()
        });
        let Some(path) = path else {
            let fault = SpannedError::new(place, "this is not a valid key");
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

/// Assigns the values to the keys.
fn finish(
    keys: Vec<AxisKey>,
    values: Vec<TomlNode>,
    place: TextSpan,
    reader: &mut ScenarioReader,
) -> Option<SweepAxis> {
    if values.is_empty() {
        reader.report(SpannedError::new(place, "this axis has no values"));
        return None;
    }
    if keys.len() == 1 {
        return Some(SweepAxis {
            keys,
            values: values.into_iter().map(|value| vec![value]).collect(),
            span: place,
        });
    }
    let mut together = Vec::new();
    for value in values {
        match value.value {
            TomlValue::List(items) if items.len() == keys.len() => together.push(items),
            _ => {
                let message = format!("this axis has {} keys", keys.len());
                let fault = SpannedError::new(value.span, message).found(value.describe());
                reader.report(fault.expected(format!("{} values together", keys.len())));
                return None;
            }
        }
    }
    Some(SweepAxis { keys, values: together, span: place })
}

/// Adds an axis, replacing one with the same keys.
pub(super) fn put(axes: &mut Vec<SweepAxis>, axis: SweepAxis) {
    match axes
        .iter_mut()
        .find(|known| known.keys.len() == axis.keys.len() && known.shares_key_with(&axis))
    {
        Some(known) => *known = axis,
        None => axes.push(axis),
    }
}

/// Reports two axes over one key.
pub(super) fn check(axes: &[SweepAxis], sources: &Sources<'_>, reader: &mut ScenarioReader) {
    for (number, axis) in axes.iter().enumerate() {
        if let Some(first) = axes[..number].iter().find(|first| first.shares_key_with(axis)) {
            let fault = SpannedError::new(axis.span, "a second axis over the same key");
            reader.report(fault.hint(format!("the first is on line {}", sources.line(first.span))));
        }
    }
}
