//! `lro` and `gro` of a host: off, on, or on with other limits.

use core::marker::PhantomData;
use core::num::NonZeroU32;
use std::borrow::Cow;

use net::offload::{GroParams, HashRule, LroParams};
use serde_json::{Value as Json, json};
use sim::scenario::{Offload, Receive};
use tcp::profile::{Family, Profile};
use units::{Bytes, Duration};

use super::keys::{Key, Kind, Located, Reader, Section, Shape};
use super::kinds::{OneOf, Size, Span, Sub, Switch, Whole, wrong_kind};
use super::source::{Fault, Place};
use super::table::{Table, table};
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

table! {
    /// FreeBSD's receive offload with other limits.
    pub LroTable: LRO = "`lro`" {
        ack_limit: u64 = ACK_LIMIT,
        length_limit: Bytes = LENGTH_LIMIT,
        counts_pure_acks: bool = COUNTS_PURE_ACKS,
        entries: u64 = ENTRIES,
        rss_hash: HashRule = RSS_HASH,
        flush: Duration = FLUSH,
    }
}

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

table! {
    /// Garbage that needs a number.
    RssHashTable: RSS_HASH_SECTION = "`rss_hash`" {
        constant: u64 = CONSTANT,
        decreasing: u64 = DECREASING,
    }
    one_of: &["constant", "decreasing"],
    elsewhere: |key| match key {
        "flow" => Some("write rss_hash = \"flow\""),
        "random" => Some("write rss_hash = \"random\""),
        _ => None,
    },
}

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

table! {
    /// Linux's receive offload with other rules.
    pub GroTable: GRO = "`gro`" {
        max_size: Bytes = MAX_SIZE,
        max_packets: u64 = MAX_PACKETS,
        ends_at_push: bool = ENDS_AT_PUSH,
        same_timestamps: bool = SAME_TIMESTAMPS,
        flush: Duration = FLUSH,
    }
}

/// The field of the hash: `"flow"`, `"random"` or a table.
struct Hash;

/// Rules that need no number.
const PLAIN_HASHES: OneOf<HashRule> =
    OneOf { names: &[("flow", HashRule::Flow), ("random", HashRule::Random)] };

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
            Value::Text(_) => PLAIN_HASHES.read(key, node, reader),
            Value::Table(_) => {
                let hashes = Sub::<RssHashTable>::of(&RSS_HASH_SECTION);
                let RssHashTable { constant, decreasing } = hashes.table(node, reader)?;
                let constant = constant.map(|value| HashRule::Constant(value.value as u32));
                let group = decreasing.and_then(|group| NonZeroU32::new(group.value as u32));
                constant.or(group.map(HashRule::Decreasing))
            }
            _ => wrong_kind(key, node, "`flow`, `random` or a table", reader),
        }
    }

    fn write(&self, value: &HashRule) -> toml_edit::Value {
        let table = match *value {
            HashRule::Flow | HashRule::Random => return PLAIN_HASHES.write(value),
            HashRule::Constant(n) => {
                RssHashTable { constant: Some(u64::from(n).into()), ..Default::default() }
            }
            HashRule::Decreasing(n) => {
                let group = u64::from(n.get());
                RssHashTable { decreasing: Some(group.into()), ..Default::default() }
            }
        };
        table.write().into()
    }
}

/// A receive offload: off, on, or on with other limits.
#[derive(Debug, Clone, PartialEq)]
pub enum Merging<T> {
    /// On as the system has it, or off.
    Switch(bool),
    /// With these limits.
    Limits(T),
}

/// A receive offload: a switch, or a table of the given section.
pub(super) struct AnyMerging<T>(&'static Section, PhantomData<fn() -> T>);

impl<T> AnyMerging<T> {
    pub(super) const fn of(section: &'static Section) -> Self {
        Self(section, PhantomData)
    }
}

impl<T> Shape for AnyMerging<T> {
    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "type": "boolean" }, self.0.schema()] })
    }

    fn takes(&self) -> String {
        "`true`, `false` or a table".into()
    }
}

impl<T: Table> Kind for AnyMerging<T> {
    type Value = Merging<T>;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Merging<T>> {
        match &node.value {
            Value::Switch(on) => Some(Merging::Switch(*on)),
            Value::Table(_) => Sub::of(self.0).table(node, reader).map(Merging::Limits),
            _ => wrong_kind(key, node, "`true`, `false` or a table of limits", reader),
        }
    }

    fn write(&self, value: &Merging<T>) -> toml_edit::Value {
        match value {
            Merging::Switch(on) => (*on).into(),
            Merging::Limits(limits) => limits.write().into(),
        }
    }
}

impl<T: Default> Merging<T> {
    /// The limits; `None` if it is off.
    fn limits(&self) -> Option<Cow<'_, T>>
    where
        T: Clone,
    {
        match self {
            Self::Switch(on) => on.then(|| Cow::Owned(T::default())),
            Self::Limits(limits) => Some(Cow::Borrowed(limits)),
        }
    }
}

/// Both offloads of a host, of which its system has one; without either, off.
pub(super) fn receive(
    lro: Option<&Located<Merging<LroTable>>>,
    gro: Option<&Located<Merging<GroTable>>>,
    profile: Option<&Profile>,
    reader: &mut Reader,
) -> Offload {
    let lro = lro.and_then(|lro| {
        let limits = lro.value.limits()?;
        foreign(lro.place, Family::FreeBsd, profile, reader);
        Some(Offload {
            receive: Receive::Lro(limits.params()),
            rss_hash: limits.rss_hash.as_ref().map_or(HashRule::Flow, |hash| hash.value),
            flush: limits.flush.as_ref().map_or(Duration::ZERO, |span| span.value),
            ..Offload::default()
        })
    });
    let gro = gro.and_then(|gro| {
        let limits = gro.value.limits()?;
        foreign(gro.place, Family::Linux, profile, reader);
        Some(Offload {
            receive: Receive::Gro(limits.params()),
            flush: limits.flush.as_ref().map_or(Duration::ZERO, |span| span.value),
            ..Offload::default()
        })
    });
    lro.or(gro).unwrap_or_default()
}

/// Reports an offload that the host's system does not have.
fn foreign(place: Place, family: Family, profile: Option<&Profile>, reader: &mut Reader) {
    // The textbook has no card of its own and takes either.
    let fits = |profile: &Profile| profile.family == family || profile.family == Family::Rfc;
    let Some(profile) = profile.filter(|profile| !fits(profile)) else { return };
    let (this, system, other) =
        if family == Family::FreeBsd { ("lro", "FreeBSD", "gro") } else { ("gro", "Linux", "lro") };
    let message = format!("`{this}` is {system}'s; {} has `{other}`", profile.name);
    reader.report(Fault::new(place, message).hint(format!("write {other} = true")));
}

impl LroTable {
    fn params(&self) -> LroParams {
        let Self { ack_limit, length_limit, counts_pure_acks, entries, .. } = self;
        let mut params = LroParams::FREEBSD_14;
        if let Some(limit) = ack_limit {
            params.ack_limit = limit.value as u32;
        }
        if let Some(limit) = length_limit {
            params.length_limit = limit.value.get() as u32;
        }
        if let Some(counts) = counts_pure_acks {
            params.counts_pure_acks = counts.value;
        }
        if let Some(entries) = entries {
            params.entries = entries.value as usize;
        }
        params
    }
}

impl GroTable {
    fn params(&self) -> GroParams {
        let Self { max_size, max_packets, ends_at_push, same_timestamps, .. } = self;
        let mut params = GroParams::LINUX;
        if let Some(size) = max_size {
            params.max_size = size.value.get() as u32;
        }
        if let Some(packets) = max_packets {
            params.max_packets = packets.value as u32;
        }
        if let Some(ends) = ends_at_push {
            params.ends_at_push = ends.value;
        }
        if let Some(same) = same_timestamps {
            params.same_timestamps = same.value;
        }
        params
    }
}
