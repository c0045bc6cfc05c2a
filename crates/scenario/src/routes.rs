//! Resolves the path of each flow, of which two hosts may have several.

use std::collections::BTreeMap;

use super::flow::ParsedFlow;
use super::hosts::Hosts;
use super::keys::{Located, ScenarioReader};
use super::nearest::{did_you_mean, one_of};
use super::path::ParsedPath;
use super::source::{SpannedError, TextSpan};

/// The paths, indexed by the hosts that they connect.
#[derive(Default)]
pub(super) struct Routes {
    paths: Vec<ParsedPath>,
    /// Path indices by the two hosts, the lower index first.
    between: BTreeMap<[usize; 2], Vec<usize>>,
    /// A path has an invalid endpoint.
    unknown: bool,
}

impl Routes {
    /// Adds the path of the table at `place`, and reports a duplicate.
    pub(super) fn add(
        &mut self,
        path: ParsedPath,
        place: TextSpan,
        hosts: &Hosts,
        reader: &mut ScenarioReader,
    ) {
        match path.ends {
            Some(ends) => {
                check_second(&path, ends, self, place, hosts, reader);
                self.between.entry(key(ends)).or_default().push(self.paths.len());
            }
            None => self.unknown = true,
        }
        self.paths.push(path);
    }

    /// Returns the paths between two hosts, in either direction, with their indices.
    fn joining(&self, ends: (usize, usize)) -> impl Iterator<Item = (usize, &ParsedPath)> + Clone {
        let numbers = self.between.get(&key(ends)).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|&number| (number, &self.paths[number]))
    }

    /// Returns all paths.
    pub(super) fn into_paths(self) -> Vec<ParsedPath> {
        self.paths
    }
}

fn key((from, to): (usize, usize)) -> [usize; 2] {
    [from.min(to), from.max(to)]
}

/// Reports a path between two hosts that another path already connects under the same name.
fn check_second(
    path: &ParsedPath,
    ends: (usize, usize),
    before: &Routes,
    at: TextSpan,
    hosts: &Hosts,
    reader: &mut ScenarioReader,
) {
    let joining = || before.joining(ends).map(|(_, other)| &other.name);
    if joining().next().is_none() {
        return;
    }
    match &path.name {
        Some(name) if joining().all(Option::is_some) => {
            if joining().flatten().any(|other| other.value == name.value) {
                let (name, place) = (&name.value, name.span);
                let message = format!("duplicate path name {name:?} between {}", both(ends, hosts));
                reader.report(SpannedError::new(place, message));
            }
        }
        _ => {
            let message = format!("a second path between {}", both(ends, hosts));
            let hint = "one path serves both directions and all flows between two hosts; give both \
                        paths a `name`";
            reader.report(SpannedError::new(at, message).hint(hint.to_owned()));
        }
    }
}

/// Finds the path of a flow between two hosts, in either direction.
pub(super) fn find(
    flow: &ParsedFlow,
    ends: (usize, usize),
    routes: &Routes,
    hosts: &Hosts,
    reader: &mut ScenarioReader,
) -> Option<usize> {
    let mut joining = routes.joining(ends);
    // A path with an invalid endpoint may be the missing one.
    let all_known = !routes.unknown;
    match (&flow.path, joining.clone().count()) {
        (_, 0) => {
            if all_known && !routes.paths.is_empty() {
                let hint = "add a [[path]] with these two as `from` and `to`".to_owned();
                let message = format!("there is no path between {}", both(ends, hosts));
                reader.report(SpannedError::new(flow.span, message).hint(hint));
            }
            None
        }
        (Some(wanted), _) => {
            let named = |path: &ParsedPath| {
                path.name.as_ref().is_some_and(|name| name.value == wanted.value)
            };
            let found = joining.clone().find(|(_, path)| named(path)).map(|(index, _)| index);
            if found.is_none() && all_known {
                report_missing(wanted, ends, routes, hosts, reader);
            }
            found
        }
        (None, 1) => joining.next().map(|(index, _)| index),
        (None, _) => {
            let names = one_of(names_between(routes, ends));
            if joining.all(|(_, path)| path.name.is_some()) {
                let message = format!("there are several paths between {}", both(ends, hosts));
                let fault = SpannedError::new(flow.span, message);
                reader.report(fault.hint(format!("select one with `path`: {names}")));
            }
            None
        }
    }
}

/// Reports that no path between the hosts has this name.
fn report_missing(
    wanted: &Located<String>,
    ends: (usize, usize),
    routes: &Routes,
    hosts: &Hosts,
    reader: &mut ScenarioReader,
) {
    let between = || routes.joining(ends);
    let unnamed = between().any(|(_, path)| path.name.is_none());
    // An unnamed path among several has its own error.
    if unnamed && between().count() > 1 {
        return;
    }
    let message = format!("there is no path {:?} between {}", wanted.value, both(ends, hosts));
    let fault = SpannedError::new(wanted.span, message);
    let names = || names_between(routes, ends);
    reader.report(match unnamed {
        _ if !reader.suggests() => fault,
        true => {
            fault.hint(format!("the only path there has no name: add name = {:?}", wanted.value))
        }
        false => fault.expected(one_of(names())).hint(did_you_mean(&wanted.value, names())),
    });
}

fn both((from, to): (usize, usize), hosts: &Hosts) -> String {
    format!("{:?} and {:?}", hosts.name(from), hosts.name(to))
}

fn names_between(routes: &Routes, ends: (usize, usize)) -> impl Iterator<Item = &str> {
    let names = routes.joining(ends).map(|(_, path)| path.name.as_ref());
    names.filter_map(|name| name.map(|name| name.value.as_str()))
}
