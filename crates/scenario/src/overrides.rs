//! `--set KEY=VALUE`: changes one value, in the parsed tree and in the text of the run.
//!
//! Keys are dotted as in TOML; an entry of a list is addressed by its index from 0:
//! `path.0.forward.1.delay=20ms`. `shorthand` expands shorter keys. The rest after
//! `host.NAME.knobs.` is one name, quoted or not, since shells remove quotes. A value that is not
//! TOML is read as a string.

use core::ops::Range;

use toml::de::{DeTable, DeValue};
use toml_edit::{DocumentMut, Item, TableLike};
use units::Duration;

use super::shorthand;
use super::source::{Sources, SpannedError, TextSpan};
use super::tree::{self, TomlEntry, TomlNode, TomlValue};

/// Source name in errors about arguments.
const SOURCE: &str = "--set";

/// A change of one value.
#[derive(Debug)]
pub(super) struct Override {
    path: Vec<(String, TextSpan)>,
    value: TomlNode,
    toml: toml_edit::Value,
}

impl Override {
    /// Parses an argument that changes `root`.
    ///
    /// # Errors
    /// The argument is not of the form `KEY=VALUE`, or its key is ambiguous.
    pub(super) fn parse<'t>(
        argument: &'t str,
        root: &TomlNode,
        sources: &mut Sources<'t>,
    ) -> Result<Self, SpannedError> {
        let source = sources.add(SOURCE, argument);
        let whole = source.span(0..argument.len());
        let Some((key, text, start)) = split_argument(argument) else {
            let fault = SpannedError::new(whole, "no `=` in this argument");
            return Err(fault.expected("KEY=VALUE such as duration=10s"));
        };
        let path = key_path(key).ok_or_else(|| {
            let key = source.span(0..key.len());
            SpannedError::new(key, "this is not a valid key")
                .expected("dotted keys such as host.sender.cc")
        })?;
        let path = path.into_iter().map(|(name, span)| (name, source.span(span))).collect();
        let place = source.span(start..start + text.len());
        let value = tree::argument_value(text, place, source, start);
        let toml = text.parse().unwrap_or_else(|_| text.into());
        Ok(Self { path: shorthand::resolve(path, root)?, value, toml })
    }

    /// Creates a change of the key `path` to `value`.
    pub(super) fn of(path: &[(String, TextSpan)], value: &TomlNode) -> Self {
        Self { path: path.to_vec(), value: value.clone(), toml: tree::toml_value(value) }
    }

    /// Returns the change of the argument `--seed`.
    pub(super) fn seed(seed: u64, sources: &mut Sources<'_>) -> Self {
        // The argument parser has checked the number: no error can refer to it.
        let place = sources.add("--seed", "").span(0..0);
        let value = TomlNode { span: place, value: TomlValue::Integer(seed.to_string()) };
        let toml = (seed as i64).into();
        Self { path: vec![("seed".to_owned(), place)], value, toml }
    }

    /// Returns the change of the key `noise` that repeated runs get.
    pub(super) fn noise(most: Duration, sources: &mut Sources<'_>) -> Self {
        let place = sources.add("--repeat", "").span(0..0);
        let text = format!("{}ns", most.as_nanos());
        let toml = text.as_str().into();
        let value = TomlNode { span: place, value: TomlValue::Text(text) };
        Self { path: vec![("noise".to_owned(), place)], value, toml }
    }

    /// Applies the change to the tree.
    ///
    /// # Errors
    /// The part of the key that does not exist; the tree is then unchanged.
    pub(super) fn apply(&self, root: &mut TomlNode) -> Result<(), SpannedError> {
        Self::apply_at(root, &self.path, &self.value)
    }

    /// Changes the key `path` of a tree to `value`.
    ///
    /// # Errors
    /// As [`Override::apply`].
    pub(super) fn apply_at(
        root: &mut TomlNode,
        path: &[(String, TextSpan)],
        value: &TomlNode,
    ) -> Result<(), SpannedError> {
        set_node(root, path, value, "the scenario")
    }

    /// Applies the change to the text, after [`Override::apply`] succeeded.
    pub(super) fn compose(&self, document: &mut DocumentMut) {
        set_table(document.as_table_mut(), &self.path, &self.toml);
    }
}

/// Splits an argument into key, trimmed value and the byte offset of the value.
pub(super) fn split_argument(argument: &str) -> Option<(&str, &str, usize)> {
    let equals = equals_sign(argument)?;
    let text = &argument[equals + 1..];
    let skipped = text.len() - text.trim_start().len();
    Some((&argument[..equals], text.trim(), equals + 1 + skipped))
}

/// Returns the offset of the first `=` outside of quotes.
fn equals_sign(argument: &str) -> Option<usize> {
    let mut quote = None;
    argument.char_indices().find_map(|(at, c)| match (quote, c) {
        (None, '=') => Some(at),
        (None, '"' | '\'') => {
            quote = Some(c);
            None
        }
        (Some(open), _) if open == c => {
            quote = None;
            None
        }
        _ => None,
    })
}

/// Splits a dotted key into its parts with their byte ranges.
pub(super) fn key_path(text: &str) -> Option<Vec<(String, Range<usize>)>> {
    if text.contains(['\n', '\r', '#']) {
        return None;
    }
    let line = format!("{text} = 0");
    let document = DeTable::parse(&line).ok()?;
    let mut path: Vec<(String, Range<usize>)> = Vec::new();
    let mut table = document.get_ref();
    loop {
        let (key, value) = table.iter().next()?;
        path.push((key.get_ref().to_string(), key.span()));
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(path),
        }
    }
}

/// Parses the index `name` of a list of `len` entries.
fn index(name: &str, place: TextSpan, len: usize, of: &str) -> Result<usize, SpannedError> {
    match name.parse() {
        Ok(index) if index < len => Ok(index),
        _ => {
            let fault = SpannedError::new(place, format!("{of} has no entry `{name}`"));
            Err(match len {
                0 => fault.hint("the list is empty".to_owned()),
                1 => fault.expected("0, its only entry"),
                _ => fault.expected(format!("a number from 0 to {}", len - 1)),
            })
        }
    }
}

fn set_node(
    node: &mut TomlNode,
    path: &[(String, TextSpan)],
    value: &TomlNode,
    of: &str,
) -> Result<(), SpannedError> {
    let Some(((name, place), rest)) = path.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    let inner = format!("`{name}`");
    match &mut node.value {
        TomlValue::List(items) => {
            let index = index(name, *place, items.len(), of)?;
            set_node(&mut items[index], rest, value, &inner)
        }
        TomlValue::Table(entries) => {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *name) {
                set_node(&mut entry.node, rest, value, &inner)?;
                entry.place = if rest.is_empty() { *place } else { entry.place };
                return Ok(());
            }
            let mut fresh = TomlNode { span: *place, value: TomlValue::Table(Vec::new()) };
            set_node(&mut fresh, rest, value, &inner)?;
            entries.push(TomlEntry { key: name.clone(), place: *place, node: fresh });
            Ok(())
        }
        _ => Err(SpannedError::new(*place, format!("{of} is not a table, it has no `{name}`"))),
    }
}

fn set_item(item: &mut Item, path: &[(String, TextSpan)], value: &toml_edit::Value) {
    let Some(((name, _), rest)) = path.split_first() else {
        // Keep a comment beside the old value.
        let decor = item.as_value().map(|old| old.decor().clone());
        *item = Item::Value(value.clone());
        if let (Some(decor), Some(new)) = (decor, item.as_value_mut()) {
            *new.decor_mut() = decor;
        }
        return;
    };
    if let Some(table) = item.as_table_like_mut() {
        return set_table(table, path, value);
    }
    let Ok(index) = name.parse::<usize>() else { return };
    if let Some(table) = item.as_array_of_tables_mut().and_then(|list| list.get_mut(index)) {
        match value.as_inline_table() {
            Some(whole) if rest.is_empty() => *table = whole.clone().into_table(),
            _ => set_table(table, rest, value),
        }
    } else if let Some(slot) = item.as_array_mut().and_then(|list| list.get_mut(index)) {
        let mut entry = Item::Value(slot.clone());
        set_item(&mut entry, rest, value);
        if let Ok(changed) = entry.into_value() {
            *slot = changed;
        }
    }
}

fn set_table(table: &mut dyn TableLike, path: &[(String, TextSpan)], value: &toml_edit::Value) {
    let Some(((name, _), rest)) = path.split_first() else { return };
    if let Some(item) = table.get_mut(name) {
        return set_item(item, rest, value);
    }
    if rest.is_empty() {
        table.insert(name, Item::Value(value.clone()));
        return;
    }
    let mut fresh = toml_edit::InlineTable::new();
    set_table(&mut fresh, rest, value);
    table.insert(name, Item::Value(fresh.into()));
}
