//! `--set KEY=VALUE`: one argument changes one place, in the tree that is read and in the text
//! that stands for the run.
//!
//! Keys are dotted as in TOML; an entry of a list is named by its number from 0:
//! `path.0.forward.1.delay=20ms`. Where `shorthand` knows what is meant they may be shorter. What
//! follows `host.NAME.knobs.` is one name, quoted or not, for shells take the quotes away. A value
//! that is no TOML is taken as a string.

use core::ops::Range;

use toml::de::{DeTable, DeValue};
use toml_edit::{DocumentMut, Item, TableLike};

use super::shorthand;
use super::source::{Fault, Place, Sources};
use super::tree::{self, Entry, Node, Value};

/// Name of the source that arguments are reported under.
const SOURCE: &str = "--set";

/// A change of one place.
#[derive(Debug)]
pub(super) struct Override {
    path: Vec<(String, Place)>,
    value: Node,
    toml: toml_edit::Value,
}

impl Override {
    /// Reads an argument that changes `root`.
    ///
    /// # Errors
    /// Where it is not of the form `KEY=VALUE`, or its key is short for more than one place.
    pub(super) fn parse<'t>(
        argument: &'t str,
        root: &Node,
        sources: &mut Sources<'t>,
    ) -> Result<Self, Fault> {
        let source = sources.add(SOURCE, argument);
        let whole = source.place(0..argument.len());
        let Some((key, text, start)) = split_argument(argument) else {
            let fault = Fault::new(whole, "no `=` in this argument");
            return Err(fault.expected("KEY=VALUE such as duration=10s"));
        };
        let path = key_path(key).ok_or_else(|| {
            let key = source.place(0..key.len());
            Fault::new(key, "this is no key").expected("dotted keys such as host.sender.cc")
        })?;
        let path = path.into_iter().map(|(name, span)| (name, source.place(span))).collect();
        let place = source.place(start..start + text.len());
        let value = tree::argument_value(text, place, source, start);
        let toml = text.parse().unwrap_or_else(|_| text.into());
        Ok(Self { path: shorthand::resolve(path, root)?, value, toml })
    }

    /// The change of the place `path` to `value`.
    pub(super) fn of(path: &[(String, Place)], value: &Node) -> Self {
        Self { path: path.to_vec(), value: value.clone(), toml: tree::toml_value(value) }
    }

    /// The argument `--seed`.
    pub(super) fn seed(seed: u64, sources: &mut Sources<'_>) -> Self {
        // The parser has seen that it is a number: nothing can be wrong with it.
        let place = sources.add("--seed", "").place(0..0);
        let value = Node { place, value: Value::Integer(seed.to_string()) };
        let toml = (seed as i64).into();
        Self { path: vec![("seed".to_owned(), place)], value, toml }
    }

    /// Changes the tree.
    ///
    /// # Errors
    /// The part of the key that leads nowhere; the tree is then unchanged.
    pub(super) fn apply(&self, root: &mut Node) -> Result<(), Fault> {
        Self::apply_at(root, &self.path, &self.value)
    }

    /// Changes the place `path` of a tree to `value`.
    ///
    /// # Errors
    /// As of [`Override::apply`].
    pub(super) fn apply_at(
        root: &mut Node,
        path: &[(String, Place)],
        value: &Node,
    ) -> Result<(), Fault> {
        set_node(root, path, value, "the scenario")
    }

    /// Changes the text, once [`Override::apply`] has agreed.
    pub(super) fn compose(&self, document: &mut DocumentMut) {
        set_table(document.as_table_mut(), &self.path, &self.toml);
    }
}

/// Key and value of an argument, the value without blanks around it, and where that begins.
pub(super) fn split_argument(argument: &str) -> Option<(&str, &str, usize)> {
    let equals = equals_sign(argument)?;
    let text = &argument[equals + 1..];
    let skipped = text.len() - text.trim_start().len();
    Some((&argument[..equals], text.trim(), equals + 1 + skipped))
}

/// The first `=` outside of quotes.
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

/// Parts of a dotted key with the stretches they take in it.
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

/// Index `name` of a list of `len` entries.
fn index(name: &str, place: Place, len: usize, of: &str) -> Result<usize, Fault> {
    match name.parse() {
        Ok(index) if index < len => Ok(index),
        _ => {
            let fault = Fault::new(place, format!("{of} has no entry `{name}`"));
            Err(match len {
                0 => fault.hint("the list is empty".to_owned()),
                1 => fault.expected("0, its only entry"),
                _ => fault.expected(format!("a number from 0 to {}", len - 1)),
            })
        }
    }
}

fn set_node(
    node: &mut Node,
    path: &[(String, Place)],
    value: &Node,
    of: &str,
) -> Result<(), Fault> {
    let Some(((name, place), rest)) = path.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    let inner = format!("`{name}`");
    match &mut node.value {
        Value::List(items) => {
            let index = index(name, *place, items.len(), of)?;
            set_node(&mut items[index], rest, value, &inner)
        }
        Value::Table(entries) => {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *name) {
                set_node(&mut entry.node, rest, value, &inner)?;
                entry.place = if rest.is_empty() { *place } else { entry.place };
                return Ok(());
            }
            let mut fresh = Node { place: *place, value: Value::Table(Vec::new()) };
            set_node(&mut fresh, rest, value, &inner)?;
            entries.push(Entry { key: name.clone(), place: *place, node: fresh });
            Ok(())
        }
        _ => Err(Fault::new(*place, format!("{of} is no table, it has no `{name}`"))),
    }
}

fn set_item(item: &mut Item, path: &[(String, Place)], value: &toml_edit::Value) {
    let Some(((name, _), rest)) = path.split_first() else {
        // A comment beside the old value stays.
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

fn set_table(table: &mut dyn TableLike, path: &[(String, Place)], value: &toml_edit::Value) {
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
