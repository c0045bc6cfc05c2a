//! Short keys of arguments: `sender.cc` for `host.sender.cc`, `path.delay` for the only delay of
//! the paths, `path.return.delay` for the only one of the reverse direction, `upload.bulk` for
//! `flow.0.bulk`.
//!
//! A key that resolves as written is never changed. An ambiguous key is rejected, with all
//! candidates.

use super::keys::TableSpec;
use super::nearest::did_you_mean;
use super::source::{SpannedError, TextSpan};
use super::tree::{TomlNode, TomlValue};
use super::{flow, path, tap};

/// Parts of a key with their positions.
type KeyParts = Vec<(String, TextSpan)>;

/// Expands a key; joins everything after `knobs` to one name.
///
/// # Errors
/// The key is ambiguous.
pub(super) fn resolve(path: KeyParts, root: &TomlNode) -> Result<KeyParts, SpannedError> {
    let full = match path.first() {
        None => return Ok(path),
        Some((first, place)) => match first.as_str() {
            "path" => on_paths(&path, root)?,
            "flow" => entry(&path, first, &flow::SECTION, root),
            "tap" => entry(&path, first, &tap::SECTION, root),
            _ if root.get(first).is_none() => named(&path, first, *place, root),
            _ => None,
        },
    };
    Ok(with_knob(full.unwrap_or(path)))
}

/// Joins the parts after `host.NAME.knobs` to one name.
fn with_knob(mut path: KeyParts) -> KeyParts {
    if path.len() > 4 && path[0].0 == "host" && path[2].0 == "knobs" {
        let rest = path.split_off(3);
        let name = rest.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        let place = rest[0].1.to(rest[rest.len() - 1].1);
        path.push((name, place));
    }
    path
}

/// Expands `sender.cc`, `upload.bulk`, `line.link.rate`: a host, flow or shared element by name.
fn named(path: &KeyParts, name: &str, place: TextSpan, root: &TomlNode) -> Option<KeyParts> {
    let with = |front: &[&str], rest: &[(String, TextSpan)]| -> KeyParts {
        let front = front.iter().map(|part| ((*part).to_owned(), place));
        front.chain(rest.iter().cloned()).collect()
    };
    for table in ["host", "shared"] {
        if root.get(table).is_some_and(|node| node.get(name).is_some()) {
            return Some(with(&[table], path));
        }
    }
    let TomlValue::List(flows) = &root.get("flow")?.value else { return None };
    let called = |flow: &TomlNode| {
        flow.get("name").is_some_and(|node| node.value == TomlValue::Text(name.to_owned()))
    };
    let index = flows.iter().position(called)?;
    Some(with(&["flow", &index.to_string()], &path[1..]))
}

/// Expands `flow.bulk` if there is one flow, `flow.upload.bulk` if one has that name.
fn entry(path: &KeyParts, list: &str, section: &TableSpec, root: &TomlNode) -> Option<KeyParts> {
    let TomlValue::List(entries) = &root.get(list)?.value else { return None };
    let (next, place) = path.get(1)?;
    let called = |entry: &TomlNode| {
        entry.get("name").is_some_and(|node| node.value == TomlValue::Text(next.clone()))
    };
    let mut full = path.clone();
    if section.has_key(next) && entries.len() == 1 {
        full.insert(1, ("0".to_owned(), *place));
    } else {
        full[1].0 = entries.iter().position(called)?.to_string();
    }
    Some(full)
}

/// Expands `path.delay`: the only key of that name on any path.
fn on_paths(path: &KeyParts, root: &TomlNode) -> Result<Option<KeyParts>, SpannedError> {
    let (Some(paths), Some((name, place))) = (root.get("path"), path.get(1)) else {
        return Ok(None);
    };
    if name.parse::<usize>().is_ok() {
        return Ok(None);
    }
    // `path.return.delay`: only in that direction.
    let way = ["forward", "return"].into_iter().find(|way| way == name);
    let (name, place, used) = match (way, path.get(2)) {
        (Some(_), Some((next, place))) if next.parse::<usize>().is_err() => (next, place, 3),
        _ => (name, place, 2),
    };
    let mut found = Vec::new();
    search(paths, name, &mut Vec::new(), &mut found);
    if let (Some(way), 3) = (way, used) {
        found.retain(|steps| steps.iter().any(|step| step == way));
    }
    match found.as_slice() {
        [] => match misspelt(name, paths) {
            Some(guess) => {
                let fault =
                    SpannedError::new(*place, format!("nothing on the paths is called `{name}`"));
                Err(fault.hint(guess))
            }
            None => Ok(None),
        },
        [steps] => {
            let steps = steps.iter().map(|step| (step.clone(), *place));
            let full = path[..1].iter().cloned().chain(steps).chain(path[used..].iter().cloned());
            Ok(Some(full.collect()))
        }
        several => {
            let all = several.iter().map(|steps| format!("`path.{}`", steps.join(".")));
            let message =
                format!("`{name}` is ambiguous: it occurs {} times on the paths", several.len());
            let fault = SpannedError::new(*place, message);
            Err(fault.expected(format!("one of {}", all.collect::<Vec<_>>().join(", "))))
        }
    }
}

/// Suggests a key of the paths for an unknown name; `None` for a valid key of a path.
fn misspelt(name: &str, paths: &TomlNode) -> Option<String> {
    if path::SECTION.has_key(name) {
        return None;
    }
    let mut names = Vec::new();
    all_keys(paths, &mut names);
    did_you_mean(name, names)
}

fn all_keys<'n>(node: &'n TomlNode, names: &mut Vec<&'n str>) {
    match &node.value {
        TomlValue::List(items) => items.iter().for_each(|item| all_keys(item, names)),
        TomlValue::Table(entries) => entries.iter().for_each(|entry| {
            names.push(&entry.key);
            all_keys(&entry.node, names);
        }),
        _ => {}
    }
}

fn search(node: &TomlNode, name: &str, steps: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let mut below = |step: String, inner: &TomlNode, hit: bool| {
        steps.push(step);
        if hit {
            found.push(steps.clone());
        } else {
            search(inner, name, steps, found);
        }
        steps.pop();
    };
    match &node.value {
        TomlValue::List(items) => {
            items.iter().enumerate().for_each(|(i, item)| below(i.to_string(), item, false));
        }
        TomlValue::Table(entries) => entries
            .iter()
            .for_each(|entry| below(entry.key.clone(), &entry.node, entry.key == name)),
        _ => {}
    }
}

impl TomlNode {
    /// Returns the entry `key` of a table.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let TomlValue::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}
