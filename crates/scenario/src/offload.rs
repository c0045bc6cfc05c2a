//! `lro` and `gro` of a host: off, on, or on with other limits.

use core::marker::PhantomData;
use core::num::NonZeroU32;
use std::borrow::Cow;

use net::offload::{GroParams, HashRule, LroParams};
use serde_json::{Value as Json, json};
use sim::scenario::{Offload, ReceiveOffloadSpec};
use tcp::profile::{Family, TcpProfile};
use units::{Bytes, Duration};

use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader, TableSpec};
use super::kinds::{
    BoolType, DurationType, EnumType, IntegerType, SizeType, TableType, type_mismatch,
};
use super::source::{SpannedError, TextSpan};
use super::table::{KeyTable, table};
use super::tree::{TomlNode, TomlValue};

static FLUSH: Key<DurationType> = Key::optional(
    "flush",
    DurationType { least: Duration::ZERO, default_unit: "us" },
    "0s",
    "time an aggregate waits for further packets after its first; 0s flushes it at the end of the \
     receive pass",
);

static ACK_LIMIT: Key<IntegerType> = Key::optional(
    "ack_limit",
    IntegerType { least: 1, most: 65_535 },
    "65535",
    "upper bound of the packets of an aggregate, exclusive (lro_ackcnt_lim)",
);
static LENGTH_LIMIT: Key<SizeType> = Key::optional(
    "length_limit",
    SizeType { least: Bytes(1), most: Bytes(65_535) },
    "65280 B",
    "upper bound of the payload of an aggregate, exclusive (lro_length_lim)",
);
static COUNTS_PURE_ACKS: Key<BoolType> = Key::optional(
    "counts_pure_acks",
    BoolType,
    "false",
    "passes the number of merged pure ACKs to the stack, as FreeBSD 13.0",
);
static ENTRIES: Key<IntegerType> = Key::optional(
    "entries",
    IntegerType { least: 1, most: 1_024 },
    "8",
    "flows aggregated at the same time (net.inet.tcp.lro.entries)",
);
static RSS_HASH: Key<RssHashType> = Key::optional(
    "rss_hash",
    RssHashType,
    "\"flow\"",
    "hash that the NIC reports per packet, by which LRO sorts a receive pass: the flow's hash, or \
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

static CONSTANT: Key<IntegerType> = Key::optional(
    "constant",
    IntegerType { least: 0, most: u32::MAX as u64 },
    "",
    "the same hash for all packets of all connections",
);
static DECREASING: Key<IntegerType> = Key::optional(
    "decreasing",
    IntegerType { least: 1, most: 65_536 },
    "",
    "the hash counts down over each group of this many packets of a pass, above the group before: \
     LRO passes up each group in reverse order",
);

table! {
    /// An invalid hash that has a parameter.
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

static MAX_SIZE: Key<SizeType> = Key::optional(
    "max_size",
    SizeType { least: Bytes(1), most: Bytes(1 << 20) },
    "64 KiB",
    "upper bound of the IP bytes of an aggregate, exclusive (gro_max_size)",
);
static MAX_PACKETS: Key<IntegerType> = Key::optional(
    "max_packets",
    IntegerType { least: 1, most: u32::MAX as u64 },
    "no limit",
    "maximum packets of an aggregate; hardware LRO has such a limit",
);
static ENDS_AT_PUSH: Key<BoolType> =
    Key::optional("ends_at_push", BoolType, "true", "a PSH flag ends an aggregate");
static SAME_TIMESTAMPS: Key<BoolType> = Key::optional(
    "same_timestamps",
    BoolType,
    "true",
    "merges only packets with equal timestamps; hardware LRO may not require this",
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

/// An RSS hash rule: `"flow"`, `"random"` or a table.
struct RssHashType;

/// Rules without a parameter.
const HASH_NAMES: EnumType<HashRule> =
    EnumType { names: &[("flow", HashRule::Flow), ("random", HashRule::Random)] };

impl KeyType for RssHashType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [HASH_NAMES.schema(), RSS_HASH_SECTION.schema()] })
    }

    fn type_name(&self) -> String {
        format!("{} or a table", HASH_NAMES.type_name())
    }
}

impl KeyCodec for RssHashType {
    type Value = HashRule;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<HashRule> {
        match &node.value {
            TomlValue::Text(_) => HASH_NAMES.read(key, node, reader),
            TomlValue::Table(_) => {
                let hashes = TableType::<RssHashTable>::of(&RSS_HASH_SECTION);
                let RssHashTable { constant, decreasing } = hashes.table(node, reader)?;
                let constant = constant.map(|value| HashRule::Constant(value.value as u32));
                let group = decreasing.and_then(|group| NonZeroU32::new(group.value as u32));
                constant.or(group.map(HashRule::Decreasing))
            }
            _ => type_mismatch(key, node, "`flow`, `random` or a table", reader),
        }
    }

    fn write(&self, value: &HashRule) -> toml_edit::Value {
        let table = match *value {
            HashRule::Flow | HashRule::Random => return HASH_NAMES.write(value),
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
pub enum ReceiveOffload<T> {
    /// On with the system's limits, or off.
    Switch(bool),
    /// With these limits.
    Limits(T),
}

/// A receive offload: a Boolean or a table of the given section.
pub(super) struct ReceiveOffloadType<T>(&'static TableSpec, PhantomData<fn() -> T>);

impl<T> ReceiveOffloadType<T> {
    pub(super) const fn of(section: &'static TableSpec) -> Self {
        Self(section, PhantomData)
    }
}

impl<T> KeyType for ReceiveOffloadType<T> {
    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "type": "boolean" }, self.0.schema()] })
    }

    fn type_name(&self) -> String {
        "switch or table".into()
    }
}

impl<T: KeyTable> KeyCodec for ReceiveOffloadType<T> {
    type Value = ReceiveOffload<T>;

    fn read(
        &self,
        key: &str,
        node: &TomlNode,
        reader: &mut ScenarioReader,
    ) -> Option<ReceiveOffload<T>> {
        match &node.value {
            TomlValue::Switch(on) => Some(ReceiveOffload::Switch(*on)),
            TomlValue::Table(_) => {
                TableType::of(self.0).table(node, reader).map(ReceiveOffload::Limits)
            }
            _ => type_mismatch(key, node, "`true`, `false` or a table of limits", reader),
        }
    }

    fn write(&self, value: &ReceiveOffload<T>) -> toml_edit::Value {
        match value {
            ReceiveOffload::Switch(on) => (*on).into(),
            ReceiveOffload::Limits(limits) => limits.write().into(),
        }
    }
}

impl<T: Default> ReceiveOffload<T> {
    /// Returns the limits; `None` if the offload is off.
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

/// Reads the receive offload of a host; off if neither key is present.
pub(super) fn receive(
    lro: Option<&Located<ReceiveOffload<LroTable>>>,
    gro: Option<&Located<ReceiveOffload<GroTable>>>,
    profile: Option<&TcpProfile>,
    reader: &mut ScenarioReader,
) -> Offload {
    let lro = lro.and_then(|lro| {
        let limits = lro.value.limits()?;
        foreign(lro.span, Family::FreeBsd, profile, reader);
        Some(Offload {
            receive: ReceiveOffloadSpec::Lro(limits.params()),
            rss_hash: limits.rss_hash.as_ref().map_or(HashRule::Flow, |hash| hash.value),
            flush: limits.flush.as_ref().map_or(Duration::ZERO, |span| span.value),
            ..Offload::default()
        })
    });
    let gro = gro.and_then(|gro| {
        let limits = gro.value.limits()?;
        foreign(gro.span, Family::Linux, profile, reader);
        Some(Offload {
            receive: ReceiveOffloadSpec::Gro(limits.params()),
            flush: limits.flush.as_ref().map_or(Duration::ZERO, |span| span.value),
            ..Offload::default()
        })
    });
    lro.or(gro).unwrap_or_default()
}

/// Reports an offload that the host's system does not implement.
fn foreign(
    place: TextSpan,
    family: Family,
    profile: Option<&TcpProfile>,
    reader: &mut ScenarioReader,
) {
    // RFC profiles have no offload of their own and accept either.
    let fits = |profile: &TcpProfile| profile.family == family || profile.family == Family::Rfc;
    let Some(profile) = profile.filter(|profile| !fits(profile)) else { return };
    let (this, system, other) =
        if family == Family::FreeBsd { ("lro", "FreeBSD", "gro") } else { ("gro", "Linux", "lro") };
    let message = format!("`{this}` is {system}'s; {} has `{other}`", profile.name);
    reader.report(SpannedError::new(place, message).hint(format!("write {other} = true")));
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
