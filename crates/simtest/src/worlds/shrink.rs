//! Minimises a failing scenario while it fails.
//!
//! Works on the tree of the text: it removes items of lists and keys of tables, moves the flows of
//! one path to another, replaces references to shared elements by the element, and reduces numbers.
//! It has no knowledge of the keys: an edit that makes the scenario invalid does not fail as
//! required and is reverted. Greedy and deterministic.

use toml::{Table, Value};

use super::written;

/// Maximum number of texts tried; a world has some hundred parts.
const MOST_TRIES: u32 = 2_000;

/// Path to a value in a tree.
type TreePath = Vec<TreeKey>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum TreeKey {
    Key(String),
    Item(usize),
}

/// Returns a minimal scenario that `fails` as the one of `text` does; `text` itself if it is not
/// TOML.
pub fn shrink(text: &str, mut fails: impl FnMut(&str) -> bool) -> String {
    let Ok(mut root) = text.parse::<Table>() else { return text.to_owned() };
    if !fails(&written(&root)) {
        // The layout matters, or the text does not fail.
        return text.to_owned();
    }
    let mut tries = 0;
    loop {
        let before = root.clone();
        for edits in [without_items, rerouted, keys, references, numbers] {
            let mut all = edits(&root);
            let mut next = 0;
            while next < all.len() {
                tries += 1;
                if tries > MOST_TRIES {
                    return written(&root);
                }
                if fails(&written(&all[next])) {
                    // After an accepted edit, the same index is another edit.
                    root = all.swap_remove(next);
                    all = edits(&root);
                } else {
                    next += 1;
                }
            }
        }
        if root == before {
            return written(&root);
        }
    }
}

/// All trees without one item of a list, or without one of the named tables.
fn without_items(root: &Table) -> Vec<Table> {
    let named = |place: &TreePath| place.len() == 2 && matches!(place[1], TreeKey::Key(_));
    without(root, |place| matches!(place.last(), Some(TreeKey::Item(_))) || named(place))
}

/// All trees without one key.
fn keys(root: &Table) -> Vec<Table> {
    without(root, |place| matches!(place.last(), Some(TreeKey::Key(_))))
}

fn without(root: &Table, which: impl Fn(&TreePath) -> bool) -> Vec<Table> {
    let places = places(root).into_iter().filter(which);
    places.filter_map(|place| edited(root, &place, |_| None)).collect()
}

/// All trees without one path, its flows moved to another.
fn rerouted(root: &Table) -> Vec<Table> {
    let paths = root.get("path").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let numbers = 0..paths.len();
    let pairs = numbers.clone().flat_map(|old| numbers.clone().map(move |new| (old, new)));
    let detour = |(old, new): (usize, usize)| {
        let place = [TreeKey::Key("path".into()), TreeKey::Item(old)];
        let mut without = edited(root, &place, |_| None)?;
        for flow in without.get_mut("flow")?.as_array_mut()? {
            let flow = flow.as_table_mut()?;
            for (from, to) in [("from", "to"), ("to", "from")] {
                let (old, new) = (&paths[old], &paths[new]);
                let joins = |key, end| flow.get(key) == old.get(end);
                let named = flow.get("path").is_none_or(|name| old.get("name") == Some(name));
                if joins("from", from) && joins("to", to) && named {
                    flow.insert("from".into(), new.get(from)?.clone());
                    flow.insert("to".into(), new.get(to)?.clone());
                    flow.remove("path");
                    flow.extend(new.get("name").map(|name| ("path".to_owned(), name.clone())));
                    break;
                }
            }
        }
        Some(without)
    };
    pairs.filter(|(old, new)| old != new).filter_map(detour).collect()
}

/// All trees with one reference replaced by its element.
fn references(root: &Table) -> Vec<Table> {
    let shared = root.get("shared").and_then(Value::as_table);
    let replaced = places(root).into_iter().filter_map(|place| {
        let name = at(root, &place)?.as_table()?.get("shared")?.as_str()?;
        let element = shared?.get(name)?.clone();
        edited(root, &place, |_| Some(element.clone()))
    });
    replaced.collect()
}

/// All trees with one number reduced, the largest reduction first.
fn numbers(root: &Table) -> Vec<Table> {
    let mut edits = Vec::new();
    for place in places(root) {
        let smaller = match at(root, &place) {
            Some(Value::Integer(n)) => smaller(n.unsigned_abs())
                .filter_map(|n| i64::try_from(n).ok().map(Value::Integer))
                .collect(),
            Some(Value::String(text)) => smaller_texts(text),
            _ => Vec::new(),
        };
        edits.extend(smaller.into_iter().filter_map(|v| edited(root, &place, |_| Some(v.clone()))));
    }
    edits
}

/// Numbers below `n`: the least, one with a single significant digit, then by ever smaller steps.
fn smaller(n: u64) -> impl Iterator<Item = u64> {
    let digit = 10_u64.pow(n.checked_ilog10().unwrap_or(0));
    let steps = (1..6).map(move |halvings| n - (n >> halvings));
    let one_less = n.saturating_sub(1);
    let all = [0, 1, n / digit * digit].into_iter().chain(steps).chain([one_less]);
    all.filter(move |&less| less < n)
}

/// A quantity such as `"12.5ms"` with smaller numbers and the same unit.
fn smaller_texts(text: &str) -> Vec<Value> {
    let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Ok(n) = whole.parse::<u64>() else { return Vec::new() };
    let rounded = (!fraction.is_empty()).then_some(n);
    let less = smaller(n).chain(rounded);
    less.map(|n| Value::String(format!("{n}{unit}"))).collect()
}

/// All paths, those of a part after the part.
fn places(root: &Table) -> Vec<TreePath> {
    fn walk(value: &Value, place: &TreePath, found: &mut Vec<TreePath>) {
        let steps: Vec<(TreeKey, &Value)> = match value {
            Value::Table(table) => {
                table.iter().map(|(k, v)| (TreeKey::Key(k.clone()), v)).collect()
            }
            Value::Array(items) => {
                items.iter().enumerate().map(|(i, v)| (TreeKey::Item(i), v)).collect()
            }
            _ => Vec::new(),
        };
        for (step, value) in steps {
            let place = [place.as_slice(), &[step]].concat();
            found.push(place.clone());
            walk(value, &place, found);
        }
    }
    let mut found = Vec::new();
    walk(&Value::Table(root.clone()), &Vec::new(), &mut found);
    found
}

fn at<'t>(root: &'t Table, place: &TreePath) -> Option<&'t Value> {
    let (first, rest) = place.split_first()?;
    let TreeKey::Key(key) = first else { return None };
    rest.iter().try_fold(root.get(key)?, |value, step| match step {
        TreeKey::Key(key) => value.get(key),
        TreeKey::Item(index) => value.get(index),
    })
}

/// Returns the tree with the value at a path replaced or removed; `None` if the path does not
/// exist.
fn edited(
    root: &Table,
    place: &[TreeKey],
    new: impl FnOnce(&Value) -> Option<Value>,
) -> Option<Table> {
    let (last, way) = place.split_last()?;
    let mut whole = Value::Table(root.clone());
    let mut holder = &mut whole;
    for step in way {
        holder = match step {
            TreeKey::Key(key) => holder.get_mut(key)?,
            TreeKey::Item(index) => holder.get_mut(index)?,
        };
    }
    match (holder, last) {
        (Value::Table(table), TreeKey::Key(key)) => match new(table.get(key)?) {
            Some(value) => drop(table.insert(key.clone(), value)),
            None => drop(table.remove(key)),
        },
        (Value::Array(items), TreeKey::Item(index)) => match new(items.get(*index)?) {
            Some(value) => items[*index] = value,
            None => drop(items.remove(*index)),
        },
        _ => return None,
    }
    match whole {
        Value::Table(table) => Some(table),
        _ => None,
    }
}
