//! `[[tap]]`: a capture point.

use sim::scenario::{Tap, TapPlace};

use super::hosts::Hosts;
use super::keys::{Key, Located, Reader};
use super::kinds::{OneOf, Words};
use super::source::Fault;
use super::table::table;

static HOST: Key<Words> = Key::required("host", Words, "host it sits on");
static AT: Key<OneOf<TapPlace>> = Key::optional(
    "at",
    OneOf { names: &[("stack", TapPlace::Stack), ("wire", TapPlace::Wire)] },
    "\"stack\"",
    "`stack`: between stack and offloads, where tcpdump sits and sees bursts and aggregates; \
     `wire`: between offloads and path, where single packets pass",
);

table! {
    /// A capture point.
    pub TapTable: SECTION = "a tap" {
        host: String = HOST,
        at: TapPlace = AT,
    }
    elsewhere: |key| match key {
        "file" | "pcap" => Some("the file is named when running: ackclock run --pcap FILE"),
        _ => None,
    },
}

/// The taps of a list.
pub(super) fn taps(tables: &[Located<TapTable>], hosts: &Hosts, reader: &mut Reader) -> Vec<Tap> {
    let mut taps: Vec<Tap> = Vec::new();
    for table in tables {
        let TapTable { host, at } = &table.value;
        let Some(host) = host.as_ref().and_then(|host| hosts.one(host, reader)) else { continue };
        let tap = Tap { host, place: at.map_or(TapPlace::Stack, |at| at.value) };
        if taps.contains(&tap) {
            let message =
                format!("the same capture point on {:?} for a second time", hosts.name(tap.host));
            reader.report(Fault::new(table.place, message));
        }
        taps.push(tap);
    }
    taps
}
