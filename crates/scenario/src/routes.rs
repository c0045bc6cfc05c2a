//! Which path a flow takes, where there may be several between two hosts.

use std::collections::BTreeMap;

use super::flow::FlowRead;
use super::hosts::Hosts;
use super::keys::{Located, Reader};
use super::nearest::{did_you_mean, one_of};
use super::path::PathRead;
use super::source::{Fault, Place};

/// The paths, and which of them join which hosts.
#[derive(Default)]
pub(super) struct Routes {
    paths: Vec<PathRead>,
    /// By their two ends, the lower number first.
    between: BTreeMap<[usize; 2], Vec<usize>>,
    /// A path has a wrong end.
    unknown: bool,
}

impl Routes {
    /// Adds the path of the table at `place`.
    pub(super) fn add(&mut self, path: PathRead, place: Place, hosts: &Hosts, reader: &mut Reader) {
        match path.ends {
            Some(ends) => {
                check_second(&path, ends, self, place, hosts, reader);
                self.between.entry(key(ends)).or_default().push(self.paths.len());
            }
            None => self.unknown = true,
        }
        self.paths.push(path);
    }

    /// The paths between two hosts, in whichever direction they were written, with their numbers.
    fn joining(&self, ends: (usize, usize)) -> impl Iterator<Item = (usize, &PathRead)> + Clone {
        let numbers = self.between.get(&key(ends)).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|&number| (number, &self.paths[number]))
    }

    /// All paths.
    pub(super) fn into_paths(self) -> Vec<PathRead> {
        self.paths
    }
}

fn key((from, to): (usize, usize)) -> [usize; 2] {
    [from.min(to), from.max(to)]
}

/// Several paths between two hosts must differ in their names.
fn check_second(
    path: &PathRead,
    ends: (usize, usize),
    before: &Routes,
    at: Place,
    hosts: &Hosts,
    reader: &mut Reader,
) {
    let joining = || before.joining(ends).map(|(_, other)| &other.name);
    if joining().next().is_none() {
        return;
    }
    match &path.name {
        Some(name) if joining().all(Option::is_some) => {
            if joining().flatten().any(|other| other.value == name.value) {
                let (name, place) = (&name.value, name.place);
                let message =
                    format!("a second path of the name {name:?} between {}", both(ends, hosts));
                reader.report(Fault::new(place, message));
            }
        }
        _ => {
            let message = format!("a second path between {}", both(ends, hosts));
            let hint = "one path serves both directions and all flows between the two; give both \
                        a `name` if there are to be two";
            reader.report(Fault::new(at, message).hint(hint.to_owned()));
        }
    }
}

/// The path of a flow between two hosts, in whichever direction it was written.
pub(super) fn find(
    flow: &FlowRead,
    ends: (usize, usize),
    routes: &Routes,
    hosts: &Hosts,
    reader: &mut Reader,
) -> Option<usize> {
    let mut joining = routes.joining(ends);
    // A path with a wrong end may be the one that seems to be missing.
    let all_known = !routes.unknown;
    match (&flow.path, joining.clone().count()) {
        (_, 0) => {
            if all_known && !routes.paths.is_empty() {
                let hint = "add a [[path]] with these two as `from` and `to`".to_owned();
                let message = format!("there is no path between {}", both(ends, hosts));
                reader.report(Fault::new(flow.place, message).hint(hint));
            }
            None
        }
        (Some(wanted), _) => {
            let named =
                |path: &PathRead| path.name.as_ref().is_some_and(|name| name.value == wanted.value);
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
                let fault = Fault::new(flow.place, message);
                reader.report(fault.hint(format!("say which with `path`: {names}")));
            }
            None
        }
    }
}

/// No path between the hosts has this name.
fn report_missing(
    wanted: &Located<String>,
    ends: (usize, usize),
    routes: &Routes,
    hosts: &Hosts,
    reader: &mut Reader,
) {
    let between = || routes.joining(ends);
    let unnamed = between().any(|(_, path)| path.name.is_none());
    // That one of several has no name has its own report.
    if unnamed && between().count() > 1 {
        return;
    }
    let message = format!("there is no path {:?} between {}", wanted.value, both(ends, hosts));
    let fault = Fault::new(wanted.place, message);
    let names = || names_between(routes, ends);
    reader.report(match unnamed {
        true => {
            fault.hint(format!("the one there is has no name: write name = {:?}", wanted.value))
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
