//! Short keys of arguments: `sender.cc` for `host.sender.cc`, `path.delay` for the one delay there
//! is on the paths, `path.return.delay` for the one on the way back, `upload.bulk` for
//! `flow.0.bulk`.
//!
//! A key that leads somewhere as it stands is never changed. What is short for several places is
//! refused, with all of them.

use super::keys::Section;
use super::nearest::did_you_mean;
use super::source::{Fault, Place};
use super::tree::{Node, Value};
use super::{flow, path, tap};

/// Parts of a key with their places.
type Path = Vec<(String, Place)>;

/// The key in full, `knobs` and what follows as one name.
///
/// # Errors
/// It is short for several places.
pub(super) fn resolve(path: Path, root: &Node) -> Result<Path, Fault> {
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

/// What follows `host.NAME.knobs` is one name.
fn with_knob(mut path: Path) -> Path {
    if path.len() > 4 && path[0].0 == "host" && path[2].0 == "knobs" {
        let rest = path.split_off(3);
        let name = rest.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
        let place = rest[0].1.to(rest[rest.len() - 1].1);
        path.push((name, place));
    }
    path
}

/// `sender.cc`, `upload.bulk`, `line.link.rate`: a host, flow or shared element by its name.
fn named(path: &Path, name: &str, place: Place, root: &Node) -> Option<Path> {
    let with = |front: &[&str], rest: &[(String, Place)]| -> Path {
        let front = front.iter().map(|part| ((*part).to_owned(), place));
        front.chain(rest.iter().cloned()).collect()
    };
    for table in ["host", "shared"] {
        if root.get(table).is_some_and(|node| node.get(name).is_some()) {
            return Some(with(&[table], path));
        }
    }
    let Value::List(flows) = &root.get("flow")?.value else { return None };
    let called = |flow: &Node| {
        flow.get("name").is_some_and(|node| node.value == Value::Text(name.to_owned()))
    };
    let index = flows.iter().position(called)?;
    Some(with(&["flow", &index.to_string()], &path[1..]))
}

/// `flow.bulk` where there is one flow, `flow.upload.bulk` where one has that name.
fn entry(path: &Path, list: &str, section: &Section, root: &Node) -> Option<Path> {
    let Value::List(entries) = &root.get(list)?.value else { return None };
    let (next, place) = path.get(1)?;
    let called = |entry: &Node| {
        entry.get("name").is_some_and(|node| node.value == Value::Text(next.clone()))
    };
    let mut full = path.clone();
    if section.knows(next) && entries.len() == 1 {
        full.insert(1, ("0".to_owned(), *place));
    } else {
        full[1].0 = entries.iter().position(called)?.to_string();
    }
    Some(full)
}

/// `path.delay`: the one place of that name on any path.
fn on_paths(path: &Path, root: &Node) -> Result<Option<Path>, Fault> {
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
                let fault = Fault::new(*place, format!("nothing on the paths is called `{name}`"));
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
            let message = format!("`{name}` stands in {} places of the paths", several.len());
            let fault = Fault::new(*place, message);
            Err(fault.expected(format!("one of {}", all.collect::<Vec<_>>().join(", "))))
        }
    }
}

/// What on the paths may be meant by a name that is not there; `None` for one that a path may have.
fn misspelt(name: &str, paths: &Node) -> Option<String> {
    if path::SECTION.knows(name) {
        return None;
    }
    let mut names = Vec::new();
    all_keys(paths, &mut names);
    did_you_mean(name, names)
}

fn all_keys<'n>(node: &'n Node, names: &mut Vec<&'n str>) {
    match &node.value {
        Value::List(items) => items.iter().for_each(|item| all_keys(item, names)),
        Value::Table(entries) => entries.iter().for_each(|entry| {
            names.push(&entry.key);
            all_keys(&entry.node, names);
        }),
        _ => {}
    }
}

fn search(node: &Node, name: &str, steps: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let mut below = |step: String, inner: &Node, hit: bool| {
        steps.push(step);
        if hit {
            found.push(steps.clone());
        } else {
            search(inner, name, steps, found);
        }
        steps.pop();
    };
    match &node.value {
        Value::List(items) => {
            items.iter().enumerate().for_each(|(i, item)| below(i.to_string(), item, false));
        }
        Value::Table(entries) => entries
            .iter()
            .for_each(|entry| below(entry.key.clone(), &entry.node, entry.key == name)),
        _ => {}
    }
}

impl Node {
    /// The entry `key` of a table.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}
