//! `[[tap]]`: a capture point.

use sim::scenario::{TapPoint, TapSpec};

use super::hosts::Hosts;
use super::keys::{Key, Located, ScenarioReader};
use super::kinds::{EnumType, TextType};
use super::source::SpannedError;
use super::table::table;

static HOST: Key<TextType> = Key::required("host", TextType, "host of the capture point");
static AT: Key<EnumType<TapPoint>> = Key::optional(
    "at",
    EnumType { names: &[("stack", TapPoint::Stack), ("wire", TapPoint::Wire)] },
    "\"stack\"",
    "`stack`: between stack and offloads, as tcpdump captures, with TSO bursts and aggregates; \
     `wire`: between offloads and path, single packets",
);

table! {
    /// A capture point.
    pub TapTable: SECTION = "a tap" {
        host: String = HOST,
        at: TapPoint = AT,
    }
    elsewhere: |key| match key {
        "file" | "pcap" => Some("the file is an option: ackclock run --pcap FILE"),
        _ => None,
    },
}

/// Reads a list of taps.
pub(super) fn taps(
    tables: &[Located<TapTable>],
    hosts: &Hosts,
    reader: &mut ScenarioReader,
) -> Vec<TapSpec> {
    let mut taps: Vec<TapSpec> = Vec::new();
    for table in tables {
        let TapTable { host, at } = &table.value;
        let Some(host) = host.as_ref().and_then(|host| hosts.one(host, reader)) else { continue };
        let tap = TapSpec { host, place: at.map_or(TapPoint::Stack, |at| at.value) };
        if taps.contains(&tap) {
            let message = format!("duplicate capture point on {:?}", hosts.name(tap.host));
            reader.report(SpannedError::new(table.span, message));
        }
        taps.push(tap);
    }
    taps
}
