//! Reference of all keys and knobs as Markdown tables, generated from the reader's declarations.

use std::fmt::Write;

use tcp::knobs::{self, Knob};
use tcp::profile::{Family, NAMES, TcpProfile};

use super::keys::{AnyKey, TableSpec};
use super::knobs::{kind_name, of_tcp};
use super::{
    apps, arrivals, bucket, chance, changes, element, exchange, fabric, flow, host, jitter, listen,
    middlebox, netem, offload, page, path, queue, reorder, slot, sweep, tap, video, world,
};

/// Meaning of the words in the columns of the tables.
const COLUMNS: &str = "\
*Switch*: `true` or `false`, of a knob also 0 or 1. *Integer from 1*: at most 4294967295. *Queue size*: a size, packets \
(`\"100p\"`, `\"45mss\"`) or `\"1bdp\"`. *Or changes*: a table with `at`. A key without a default is one of several that \
exclude each other, or belongs to another key.

";

/// More alternatives than this are not listed where the table shows them.
const MANY: usize = 4;

/// Heading of the keys of elements.
const ELEMENTS: &str = "Elements of a path";

/// Reference of `[shared.NAME]`, which has the keys of an element.
const SHARED: &str = "\
### `[shared.NAME]`

The keys of an element of a path, except `shared`.

";

/// Returns every key of a scenario file, by table, and every knob, by system, in Markdown.
pub fn reference() -> String {
    let mut text = COLUMNS.to_owned();
    let sections = [
        ("Top of the file", &world::SECTION),
        ("`[host.NAME]`", &host::SECTION),
        ("`lro` as a table", &offload::LRO),
        ("`rss_hash` as a table", &offload::RSS_HASH_SECTION),
        ("`gro` as a table", &offload::GRO),
        ("`listen`", &listen::SECTION),
        ("`[[path]]`", &path::SECTION),
        ("`[fabric]`", &fabric::SECTION),
        (ELEMENTS, &element::ELEMENT),
        ("`link`", &element::LINK_SECTION),
        ("`rate` as a table", &changes::RATE_CHANGES),
        ("`buffer` as a table", &changes::BUFFER_CHANGES),
        ("`delay` and `wifi` as a table", &changes::DELAY_CHANGES),
        ("`jitter` as a table", &jitter::SECTION),
        ("`netem`", &netem::SECTION),
        ("`slot`", &slot::SECTION),
        ("`queue` as a table", &queue::SECTION),
        ("`codel`", &queue::CODEL_SECTION),
        ("`fq_codel`", &queue::FQ_CODEL_SECTION),
        ("`pie`", &queue::PIE_SECTION),
        ("`red`", &queue::RED_SECTION),
        ("`loss`, `duplicate` and `corrupt` as a table", &chance::RULE_SECTION),
        ("`gilbert_elliott`", &chance::GILBERT_ELLIOTT_SECTION),
        ("`four_state`", &chance::FOUR_STATE_SECTION),
        ("`reorder`", &reorder::SECTION),
        ("`thin`", &element::THIN_SECTION),
        ("`outage`", &element::OUTAGE_SECTION),
        ("`policer`", &bucket::POLICER_SECTION),
        ("`shaper`", &bucket::SHAPER_SECTION),
        ("`mtu` as a table", &middlebox::MTU_SECTION),
        ("`forget`", &middlebox::FORGET_SECTION),
        ("`reset`", &middlebox::RESET_SECTION),
        ("`[[flow]]`", &flow::SECTION),
        ("`paced`", &apps::PACED_SECTION),
        ("`on_off`", &apps::ON_OFF_SECTION),
        ("`off` as a table", &apps::PAUSE_SECTION),
        ("`requests`", &apps::REQUESTS_SECTION),
        ("`exchange`", &exchange::EXCHANGE_SECTION),
        ("steps of `exchange`", &exchange::STEP_SECTION),
        ("`video`", &video::VIDEO_SECTION),
        ("`page`", &page::PAGE_SECTION),
        ("`object` as a table", &page::OBJECT_SECTION),
        ("`udp`", &apps::UDP_SECTION),
        ("`ping`", &apps::PING_SECTION),
        ("`transfer`", &arrivals::TRANSFER_SECTION),
        ("`arrivals`", &arrivals::ARRIVALS_SECTION),
        ("`reads`", &apps::READS_SECTION),
        ("`keepalive` as a table", &apps::KEEPALIVE_SECTION),
        ("`[[tap]]`", &tap::SECTION),
        ("`[sweep]`", &sweep::SECTION),
        ("`series` of a sweep", &sweep::series::SECTION),
    ];
    for (heading, section) in sections {
        keys(&mut text, heading, section);
        if heading == ELEMENTS {
            text.push_str(SHARED);
        }
    }
    for (system, family) in [("FreeBSD", Family::FreeBsd), ("Linux", Family::Linux)] {
        knobs_of(&mut text, system, family);
    }
    knobs_of_rack(&mut text);
    knobs_of_quic(&mut text);
    text
}

fn keys(text: &mut String, heading: &str, section: &TableSpec) {
    // Writing to a String cannot fail.
    let _ = write!(text, "### {heading}\n\n");
    let alternatives = |key: &&dyn AnyKey| !key.required() && key.default_text().is_empty();
    if section.one_of.len() > MANY
        && section
            .keys
            .iter()
            .copied()
            .filter(alternatives)
            .map(AnyKey::name)
            .eq(section.one_of.iter().copied())
    {
        text.push_str("Exactly one of the keys without a default.\n\n");
    } else if !section.one_of.is_empty() {
        let names: Vec<String> = section.one_of.iter().map(|name| format!("`{name}`")).collect();
        let (last, rest) = names.split_last().map_or(("", &[][..]), |(l, rest)| (l, rest));
        let _ = write!(text, "Exactly one of {} and {last}.\n\n", rest.join(", "));
    }
    let _ = write!(text, "| key | type | default | meaning |\n|---|---|---|---|\n");
    for key in section.keys {
        let without = match (key.required(), key.default_text()) {
            (true, _) => "required",
            (false, words) => words,
        };
        let (name, takes, help) = (key.name(), key.shape().type_name(), key.help());
        let without = if without.is_empty() { "" } else { &format!("{without} ") };
        let _ = writeln!(text, "| `{name}` | {takes} | {without}| {help} |");
    }
    text.push('\n');
}

fn knobs_of(text: &mut String, system: &str, family: Family) {
    let profiles: Vec<TcpProfile> = NAMES
        .iter()
        .filter_map(|name| TcpProfile::named(name))
        .filter(|profile| profile.family == family)
        .collect();
    let Some(first) = profiles.first() else { return };
    let names: Vec<String> = profiles.iter().map(|profile| format!("`{}`", profile.name)).collect();
    let _ = write!(text, "### Knobs of {system}\n\nProfiles: {}.\n\n", names.join(", "));
    let _ = write!(text, "| knob | type | meaning |\n|---|---|---|\n");
    knob_rows(text, knobs::of(first));
}

fn knobs_of_rack(text: &mut String) {
    let racks = NAMES.iter().filter(|name| TcpProfile::named(name).is_some_and(|p| p.has_rack()));
    let names: Vec<String> = racks.map(|name| format!("`{name}`")).collect();
    let _ = write!(
        text,
        "### Knobs of FreeBSD's RACK stack\n\nProfiles: {}, which also have the other knobs of \
         FreeBSD. Names without a system's prefix are defined by Ackclock.\n\n",
        names.join(", ")
    );
    let _ = write!(text, "| knob | type | meaning |\n|---|---|---|\n");
    knob_rows(text, knobs::of_rack());
}

fn knob_rows(text: &mut String, knobs: impl Iterator<Item = &'static Knob>) {
    for knob in knobs {
        let _ = writeln!(text, "| `{}` | {} | {} |", knob.name, kind_name(knob.kind()), knob.help);
    }
    text.push('\n');
}

fn knobs_of_quic(text: &mut String) {
    let names: Vec<String> = quic::profile::NAMES.iter().map(|name| format!("`{name}`")).collect();
    let _ = write!(text, "### Knobs of QUIC\n\nProfiles: {}.\n\n", names.join(", "));
    let _ = write!(text, "| knob | type | meaning |\n|---|---|---|\n");
    for knob in quic::knobs::KNOBS {
        let takes = kind_name(of_tcp(knob.kind()));
        let _ = writeln!(text, "| `{}` | {takes} | {} |", knob.name, knob.help);
    }
    text.push('\n');
}
