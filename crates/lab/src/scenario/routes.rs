//! Which path a flow takes, where there may be several between two hosts.

use super::flow::FlowRead;
use super::hosts::Hosts;
use super::keys::{Located, Reader};
use super::nearest::{did_you_mean, one_of};
use super::path::PathRead;
use super::source::Fault;
use super::tree::Node;

/// Several paths between two hosts must differ in their names.
pub(super) fn check_second(
    path: &PathRead,
    before: &[PathRead],
    node: &Node,
    hosts: &Hosts,
    reader: &mut Reader,
) {
    let Some(ends) = path.ends else { return };
    let joining = || before.iter().filter(|other| other.joins(ends)).map(|other| &other.name);
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
            reader.report(Fault::new(node.place, message).hint(hint.to_owned()));
        }
    }
}

/// The path of a flow between two hosts, in whichever direction it was written.
pub(super) fn find(
    flow: &FlowRead,
    ends: (usize, usize),
    paths: &[PathRead],
    hosts: &Hosts,
    reader: &mut Reader,
) -> Option<usize> {
    let mut joining = paths.iter().enumerate().filter(|(_, path)| path.joins(ends));
    // A path with a wrong end may be the one that seems to be missing.
    let all_known = paths.iter().all(|path| path.ends.is_some());
    match (&flow.path, joining.clone().count()) {
        (_, 0) => {
            if all_known && !paths.is_empty() {
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
                report_missing(wanted, ends, paths, hosts, reader);
            }
            found
        }
        (None, 1) => joining.next().map(|(index, _)| index),
        (None, _) => {
            let names = one_of(names_between(paths, ends));
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
    paths: &[PathRead],
    hosts: &Hosts,
    reader: &mut Reader,
) {
    let between = || paths.iter().filter(|path| path.joins(ends));
    let unnamed = between().any(|path| path.name.is_none());
    // That one of several has no name has its own report.
    if unnamed && between().count() > 1 {
        return;
    }
    let message = format!("there is no path {:?} between {}", wanted.value, both(ends, hosts));
    let fault = Fault::new(wanted.place, message);
    let names = || names_between(paths, ends);
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

fn names_between(paths: &[PathRead], ends: (usize, usize)) -> impl Iterator<Item = &str> {
    let between = paths.iter().filter(move |path| path.joins(ends));
    between.filter_map(|path| path.name.as_ref().map(|name| name.value.as_str()))
}
