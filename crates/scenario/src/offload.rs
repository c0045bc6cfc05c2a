//! `lro` and `gro` of a host: off, on, or on with other limits.

use core::num::NonZeroU32;

use net::offload::{GroParams, HashRule, LroParams};
use serde_json::{Value as Json, json};
use sim::scenario::{Offload, Receive};
use tcp::profile::{Family, Profile};
use units::{Bytes, Duration};

use super::keys::{Fields, Key, Kind, Reader, Section, Shape};
use super::kinds::{OneOf, Size, Span, Switch, Whole, wrong_kind};
use super::source::Fault;
use super::tree::{Node, Value};

static FLUSH: Key<Span> = Key::optional(
    "flush",
    Span { least: Duration::ZERO, usual: "us" },
    "0s",
    "keep an aggregate this long after its first packet for more to join; 0s hands it up at the \
     end of the interrupt's pass",
);

static ACK_LIMIT: Key<Whole> = Key::optional(
    "ack_limit",
    Whole { least: 1, most: 65_535 },
    "65535",
    "packets that one aggregate must stay below (lro_ackcnt_lim)",
);
static LENGTH_LIMIT: Key<Size> = Key::optional(
    "length_limit",
    Size { least: Bytes(1), most: Bytes(65_535) },
    "65280 B",
    "payload that one aggregate must stay below (lro_length_lim)",
);
static COUNTS_PURE_ACKS: Key<Switch> = Key::optional(
    "counts_pure_acks",
    Switch,
    "false",
    "the stack learns how many bare ACKs became one, as in FreeBSD 13.0",
);
static ENTRIES: Key<Whole> = Key::optional(
    "entries",
    Whole { least: 1, most: 1_024 },
    "8",
    "flows that can be held at a time (net.inet.tcp.lro.entries)",
);
static RSS_HASH: Key<Hash> = Key::optional(
    "rss_hash",
    Hash,
    "\"flow\"",
    "what the card gives as a packet's hash, by which a pass is sorted: that of its connection, or \
     garbage that the driver marks as valid",
);

/// FreeBSD's.
pub(super) static LRO: Section = Section {
    what: "`lro`",
    keys: &[&ACK_LIMIT, &LENGTH_LIMIT, &COUNTS_PURE_ACKS, &ENTRIES, &RSS_HASH, &FLUSH],
    one_of: &[],
    elsewhere: Section::NOT_ELSEWHERE,
};

static CONSTANT: Key<Whole> = Key::optional(
    "constant",
    Whole { least: 0, most: u32::MAX as u64 },
    "",
    "the same for all packets of all connections",
);
static DECREASING: Key<Whole> = Key::optional(
    "decreasing",
    Whole { least: 1, most: 65_536 },
    "",
    "it counts down over so many packets of a pass, and then over the next above them: LRO hands \
     up each such group last packet first",
);

/// Garbage that needs a number.
pub(super) static RSS_HASH_SECTION: Section = Section {
    what: "`rss_hash`",
    keys: &[&CONSTANT, &DECREASING],
    one_of: &["constant", "decreasing"],
    elsewhere: |key| match key {
        "flow" => Some("write rss_hash = \"flow\""),
        "random" => Some("write rss_hash = \"random\""),
        _ => None,
    },
};

static MAX_SIZE: Key<Size> = Key::optional(
    "max_size",
    Size { least: Bytes(1), most: Bytes(1 << 20) },
    "64 KiB",
    "IP bytes that one aggregate must stay below (gro_max_size)",
);
static MAX_PACKETS: Key<Whole> = Key::optional(
    "max_packets",
    Whole { least: 1, most: u32::MAX as u64 },
    "no limit",
    "most packets of one aggregate; cards with an LRO of their own have such a limit",
);
static ENDS_AT_PUSH: Key<Switch> =
    Key::optional("ends_at_push", Switch, "true", "a PSH flag ends an aggregate");
static SAME_TIMESTAMPS: Key<Switch> = Key::optional(
    "same_timestamps",
    Switch,
    "true",
    "only packets with equal timestamps join; a card with an LRO of its own may not ask for it",
);

/// Linux's.
pub(super) static GRO: Section = Section {
    what: "`gro`",
    keys: &[&MAX_SIZE, &MAX_PACKETS, &ENDS_AT_PUSH, &SAME_TIMESTAMPS, &FLUSH],
    one_of: &[],
    elsewhere: Section::NOT_ELSEWHERE,
};

/// The field of the hash: `"flow"`, `"random"` or a table.
struct Hash;

/// Rules that need no number.
const PLAIN_HASHES: OneOf = OneOf { names: &["flow", "random"] };

impl Shape for Hash {
    fn schema(&self) -> Json {
        json!({ "anyOf": [PLAIN_HASHES.schema(), RSS_HASH_SECTION.schema()] })
    }

    fn takes(&self) -> String {
        format!("{} or a table", PLAIN_HASHES.takes())
    }
}

impl Kind for Hash {
    type Value = HashRule;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<HashRule> {
        match &node.value {
            Value::Text(_) => PLAIN_HASHES.read(key, node, reader).map(|name| match name {
                "random" => HashRule::Random,
                _ => HashRule::Flow,
            }),
            Value::Table(_) => {
                let fields = Fields::open(&RSS_HASH_SECTION, node, reader)?;
                let constant = fields.get(&CONSTANT, reader).map(|value| value.value as u32);
                let group = fields.get(&DECREASING, reader);
                let group = group.and_then(|group| NonZeroU32::new(group.value as u32));
                constant.map(HashRule::Constant).or(group.map(HashRule::Decreasing))
            }
            _ => wrong_kind(key, node, "`flow`, `random` or a table", reader),
        }
    }
}

/// A receive offload: a switch, or a table of the given section.
pub(super) struct Merging(pub(super) &'static Section);

impl Shape for Merging {
    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "type": "boolean" }, self.0.schema()] })
    }

    fn takes(&self) -> String {
        "`true`, `false` or a table".into()
    }
}

/// Reads both offloads of a host, of which its system has one; the rest is left off.
pub(super) fn read(
    host: &Fields<'_>,
    lro: &Key<Merging>,
    gro: &Key<Merging>,
    profile: Option<&Profile>,
    reader: &mut Reader,
) -> Offload {
    let lro = host.node(lro).and_then(|node| {
        let fields = open(&LRO, node, reader)?;
        foreign(node, Family::FreeBsd, profile, reader);
        let params = fields.as_ref().map_or(LroParams::FREEBSD_14, |f| lro_params(f, reader));
        let hash = fields.as_ref().and_then(|f| f.get(&RSS_HASH, reader));
        let rss_hash = hash.map_or(HashRule::Flow, |hash| hash.value);
        Some(Offload { rss_hash, ..offload(Receive::Lro(params), fields.as_ref(), reader) })
    });
    let gro = host.node(gro).and_then(|node| {
        let fields = open(&GRO, node, reader)?;
        foreign(node, Family::Linux, profile, reader);
        let params = fields.as_ref().map_or(GroParams::LINUX, |f| gro_params(f, reader));
        Some(offload(Receive::Gro(params), fields.as_ref(), reader))
    });
    lro.or(gro).unwrap_or_default()
}

/// What both have in common.
fn offload(receive: Receive, fields: Option<&Fields<'_>>, reader: &mut Reader) -> Offload {
    let flush = fields.and_then(|f| f.get(&FLUSH, reader));
    let flush = flush.map_or(Duration::ZERO, |span| span.value);
    Offload { receive, flush, ..Offload::default() }
}

/// `None` if the offload is off, or neither a switch nor a table; `Some(None)` if simply on.
fn open<'n>(
    section: &'static Section,
    node: &'n Node,
    reader: &mut Reader,
) -> Option<Option<Fields<'n>>> {
    match &node.value {
        Value::Switch(on) => on.then_some(None),
        Value::Table(_) => Fields::open(section, node, reader).map(Some),
        _ => {
            let name = section.what.trim_matches('`');
            wrong_kind(name, node, "`true`, `false` or a table of limits", reader)
        }
    }
}

/// Reports an offload that the host's system does not have.
fn foreign(node: &Node, family: Family, profile: Option<&Profile>, reader: &mut Reader) {
    // The textbook has no card of its own and takes either.
    let fits = |profile: &Profile| profile.family == family || profile.family == Family::Rfc;
    let Some(profile) = profile.filter(|profile| !fits(profile)) else { return };
    let (this, system, other) =
        if family == Family::FreeBsd { ("lro", "FreeBSD", "gro") } else { ("gro", "Linux", "lro") };
    let message = format!("`{this}` is {system}'s; {} has `{other}`", profile.name);
    reader.report(Fault::new(node.place, message).hint(format!("write {other} = true")));
}

fn lro_params(fields: &Fields<'_>, reader: &mut Reader) -> LroParams {
    let mut params = LroParams::FREEBSD_14;
    if let Some(limit) = fields.get(&ACK_LIMIT, reader) {
        params.ack_limit = limit.value as u32;
    }
    if let Some(limit) = fields.get(&LENGTH_LIMIT, reader) {
        params.length_limit = limit.value.get() as u32;
    }
    if let Some(counts) = fields.get(&COUNTS_PURE_ACKS, reader) {
        params.counts_pure_acks = counts.value;
    }
    if let Some(entries) = fields.get(&ENTRIES, reader) {
        params.entries = entries.value as usize;
    }
    params
}

fn gro_params(fields: &Fields<'_>, reader: &mut Reader) -> GroParams {
    let mut params = GroParams::LINUX;
    if let Some(size) = fields.get(&MAX_SIZE, reader) {
        params.max_size = size.value.get() as u32;
    }
    if let Some(packets) = fields.get(&MAX_PACKETS, reader) {
        params.max_packets = packets.value as u32;
    }
    if let Some(ends) = fields.get(&ENDS_AT_PUSH, reader) {
        params.ends_at_push = ends.value;
    }
    if let Some(same) = fields.get(&SAME_TIMESTAMPS, reader) {
        params.same_timestamps = same.value;
    }
    params
}
