//! Replicated hosts: a host with `count` becomes that many hosts, with the paths, flows and capture
//! points of each.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::fabric;
use super::keys::{Located, ScenarioReader};
use super::source::SpannedError;
use super::tap::TapTable;
use super::world::ScenarioFile;

/// Maximum number of paths or flows that replicated hosts give.
const MOST: u64 = 1_000_000;

/// The number of copies of each replicated host, by its name.
type Counts = BTreeMap<String, u64>;

/// Replaces replicated hosts by their copies; a file without any is returned as it is.
pub(super) fn replicated<'f>(
    file: &'f ScenarioFile,
    reader: &mut ScenarioReader,
) -> Cow<'f, ScenarioFile> {
    let hosts = file.host.iter().flat_map(|hosts| &hosts.value);
    let counts: Counts = hosts
        .filter_map(|(name, host)| Some((name.value.clone(), host.count.as_ref()?.value)))
        .collect();
    if counts.is_empty() && file.fabric.is_none() {
        return Cow::Borrowed(file);
    }
    let mut file = file.clone();
    if let Some(hosts) = &mut file.host {
        let all = hosts.value.iter().flat_map(|(name, host)| {
            let named = move |value| (Located { value, span: name.span }, host.clone());
            copies(&name.value, &counts).into_iter().map(move |(copy, _)| named(copy))
        });
        let all: Vec<_> = all.collect();
        for (name, _) in &all {
            let same = |(other, _): &&(Located<String>, _)| other.value == name.value;
            if all.iter().filter(same).count() > 1 && !counts.contains_key(&name.value) {
                let message = format!("two hosts have the name {:?}", name.value);
                reader.report(SpannedError::new(name.span, message));
                break;
            }
        }
        hosts.value = all;
    }
    if let Some(paths) = &mut file.path {
        let mut all = Vec::new();
        for path in &paths.value {
            let ends = [&path.value.from, &path.value.to].map(Option::as_ref);
            for ([from, to], _) in pairs(ends, &counts, path.span, reader) {
                let mut path = path.clone();
                (path.value.from, path.value.to) = (from, to);
                all.push(path);
            }
        }
        paths.value = all;
    }
    if let Some(flows) = &mut file.flow {
        let mut all = Vec::new();
        for flow in &flows.value {
            let ends = [&flow.value.from, &flow.value.to].map(Option::as_ref);
            for ([from, to], number) in pairs(ends, &counts, flow.span, reader) {
                let mut flow = flow.clone();
                (flow.value.from, flow.value.to) = (from, to);
                if let Some(name) = &mut flow.value.name {
                    name.value += &number;
                }
                all.push(flow);
            }
        }
        flows.value = all;
    }
    if let Some(taps) = &mut file.tap {
        let of = |tap: &Located<TapTable>| -> Vec<Located<TapTable>> {
            let Some(host) = &tap.value.host else { return vec![tap.clone()] };
            let copied = copies(&host.value, &counts).into_iter().map(|(value, _)| {
                let mut tap = tap.clone();
                tap.value.host = Some(Located { value, span: host.span });
                tap
            });
            copied.collect()
        };
        taps.value = taps.value.iter().flat_map(of).collect();
    }
    fabric::write_out(&mut file, &counts, reader);
    Cow::Owned(file)
}

/// The hosts that a name denotes, each with its number as the end of a name.
fn copies(name: &str, counts: &Counts) -> Vec<(String, String)> {
    match counts.get(name) {
        Some(&count) => {
            (0..count).map(|number| (format!("{name}-{number}"), format!("-{number}"))).collect()
        }
        None => vec![(name.to_owned(), String::new())],
    }
}

/// The hosts at the ends of a copy of a path or flow.
type Ends = [Option<Located<String>>; 2];

/// All pairs of hosts that two names denote, with the numbers of both.
fn pairs(
    ends: [Option<&Located<String>>; 2],
    counts: &Counts,
    span: super::source::TextSpan,
    reader: &mut ScenarioReader,
) -> Vec<(Ends, String)> {
    let of = |end: Option<&Located<String>>| -> Vec<(Option<Located<String>>, String)> {
        let Some(name) = end else { return vec![(None, String::new())] };
        let located = |value| Some(Located { value, span: name.span });
        let hosts = copies(&name.value, counts).into_iter();
        hosts.map(|(host, number)| (located(host), number)).collect()
    };
    let [from, to] = ends.map(of);
    if from.len() as u64 * to.len() as u64 > MOST {
        let message = format!("this gives {} pairs of hosts", from.len() * to.len());
        reader.report(SpannedError::new(span, message).expected(format!("at most {MOST}")));
        return Vec::new();
    }
    let copied = |end: Option<&Located<String>>| end.is_some_and(|e| counts.contains_key(&e.value));
    let copied = ends.into_iter().any(copied);
    let all = from.iter().flat_map(|(from, one)| {
        // A host has no path to itself.
        let to = to.iter().filter(move |(to, _)| !copied || to != from);
        to.map(move |(to, other)| ([from.clone(), to.clone()], format!("{one}{other}")))
    });
    all.collect()
}
