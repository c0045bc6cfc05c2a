//! `[[tap]]`: a capture point.

use sim::scenario::{Tap, TapPlace};

use super::hosts::Hosts;
use super::keys::{Fields, Key, Reader, Section};
use super::kinds::{OneOf, Words};
use super::source::Fault;
use super::tree::Node;

static HOST: Key<Words> = Key::required("host", Words, "host it sits on");
static AT: Key<OneOf> = Key::optional(
    "at",
    OneOf { names: &["stack", "wire"] },
    "\"stack\"",
    "`stack`: between stack and offloads, where tcpdump sits and sees bursts and aggregates; \
     `wire`: between offloads and path, where single packets pass",
);

/// A capture point.
pub(super) static SECTION: Section = Section {
    what: "a tap",
    keys: &[&HOST, &AT],
    one_of: &[],
    elsewhere: |key| match key {
        "file" | "pcap" => Some("the file is named when running: ackclock run --pcap FILE"),
        _ => None,
    },
};

/// Reads all taps of a list.
pub(super) fn read_all(nodes: &[Node], hosts: &Hosts, reader: &mut Reader) -> Vec<Tap> {
    let mut taps: Vec<Tap> = Vec::new();
    for node in nodes {
        let Some(tap) = read(node, hosts, reader) else { continue };
        if taps.contains(&tap) {
            let message =
                format!("the same capture point on {:?} for a second time", hosts.name(tap.host));
            reader.report(Fault::new(node.place, message));
        }
        taps.push(tap);
    }
    taps
}

fn read(node: &Node, hosts: &Hosts, reader: &mut Reader) -> Option<Tap> {
    let fields = Fields::open(&SECTION, node, reader)?;
    let host = hosts.one(&fields, &HOST, reader);
    let place = match fields.get(&AT, reader).map(|at| at.value) {
        Some("wire") => TapPlace::Wire,
        _ => TapPlace::Stack,
    };
    Some(Tap { host: host?, place })
}
