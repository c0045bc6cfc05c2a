//! Boxes on a path: a small MTU, removed options, forgotten and reset connections.

use serde_json::{Value as Json, json};
use sim::scenario::{ElementSpec, ResetTrigger, SynOffers};
use toml_edit::Array;
use units::{Bytes, Duration, Instant};

use super::keys::{Key, KeyCodec, KeyType, ScenarioReader};
use super::kinds::{BoolType, DurationType, EnumType, SizeType, TableType, type_mismatch};
use super::source::SpannedError;
use super::table::{KeyTable as _, table};
use super::tree::{TomlNode, TomlValue};
use crate::units_text::MAX_SIZE;

/// RFC 791: every link carries packets of 68 bytes.
const MTU_SIZE: SizeType = SizeType { least: Bytes(68), most: Bytes(65_535) };
const SECONDS: DurationType = DurationType { least: Duration::ZERO, default_unit: "s" };

static SIZE: Key<SizeType> =
    Key::required("size", MTU_SIZE, "bytes of the largest IP packet that passes");
static ICMP: Key<BoolType> = Key::optional(
    "icmp",
    BoolType,
    "true",
    "reports each larger packet to its sender (\"fragmentation needed\", \"packet too big\"), in the \
     other direction of the path; if false, it is a black hole",
);
static FROM: Key<DurationType> =
    Key::optional("from", SECONDS, "0s", "time from which the limit applies");

table! {
    /// A link with a small MTU.
    pub MtuTable: MTU_SECTION = "`mtu`" {
        size: Bytes = SIZE,
        icmp: bool = ICMP,
        from: Duration = FROM,
    }
    elsewhere: |key| match key {
        "at" | "start" => Some("the time from which the limit applies is called `from`"),
        "blackhole" | "black_hole" => Some("a black hole is icmp = false"),
        _ => None,
    },
}

/// A largest packet size.
#[derive(Debug, Clone, PartialEq)]
pub enum MtuRule {
    /// With an ICMP error, during the whole run.
    Size(Bytes),
    /// With more keys.
    Table(Box<MtuTable>),
}

/// A size, or a table.
pub(super) struct MtuType;

impl KeyType for MtuType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [MTU_SIZE.schema(), MTU_SECTION.schema()] })
    }

    fn type_name(&self) -> String {
        format!("{} or a table", MTU_SIZE.type_name())
    }
}

impl KeyCodec for MtuType {
    type Value = MtuRule;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<MtuRule> {
        match node.value {
            TomlValue::Table(_) => {
                TableType::of(&MTU_SECTION).read(key, node, reader).map(MtuRule::Table)
            }
            _ => MTU_SIZE.read(key, node, reader).map(MtuRule::Size),
        }
    }

    fn write(&self, value: &MtuRule) -> toml_edit::Value {
        match value {
            MtuRule::Size(size) => MTU_SIZE.write(size),
            MtuRule::Table(table) => table.write().into(),
        }
    }
}

impl MtuRule {
    /// Converts to the simulator's element; `None` if a key is missing.
    pub(super) fn element(&self) -> Option<ElementSpec> {
        Some(match self {
            Self::Size(size) => ElementSpec::Mtu { size: *size, from: Duration::ZERO, icmp: true },
            Self::Table(table) => ElementSpec::Mtu {
                size: table.size.as_ref()?.value,
                from: table.from.as_ref().map_or(Duration::ZERO, |from| from.value),
                icmp: table.icmp.as_ref().is_none_or(|icmp| icmp.value),
            },
        })
    }
}

const OFFERS: EnumType<SynOffers> = EnumType {
    names: &[
        ("window-scale", SynOffers::WINDOW_SCALE),
        ("sack", SynOffers::SACK),
        ("timestamps", SynOffers::TIMESTAMPS),
        ("ecn", SynOffers::ECN),
    ],
};

/// A list of what a SYN offers.
pub(super) struct OffersType;

impl KeyType for OffersType {
    fn schema(&self) -> Json {
        json!({ "type": "array", "items": OFFERS.schema(), "minItems": 1, "uniqueItems": true })
    }

    fn type_name(&self) -> String {
        format!("list of {}", OFFERS.type_name())
    }
}

impl KeyCodec for OffersType {
    type Value = Vec<SynOffers>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        let TomlValue::List(items) = &node.value else {
            return type_mismatch(key, node, "a list such as [\"window-scale\"]", reader);
        };
        let mut offers = Vec::with_capacity(items.len());
        for item in items {
            let offer = OFFERS.read(key, item, reader)?;
            if offers.contains(&offer) {
                let message = format!("`{key}` has {} twice", item.describe());
                reader.report(SpannedError::new(item.span, message));
            }
            offers.push(offer);
        }
        if offers.is_empty() {
            reader.report(SpannedError::new(node.span, format!("`{key}` is empty")));
        }
        Some(offers)
    }

    fn write(&self, value: &Vec<SynOffers>) -> toml_edit::Value {
        value.iter().map(|offer| OFFERS.write(offer)).collect::<Array>().into()
    }
}

/// Returns the element that removes these.
pub(super) fn strip(offers: &[SynOffers]) -> ElementSpec {
    ElementSpec::Strip(offers.iter().fold(SynOffers::NONE, |all, &offer| all | offer))
}

static IDLE: Key<DurationType> = Key::required(
    "idle",
    DurationType { least: Duration::from_nanos(1), default_unit: "s" },
    "time without packets of a connection after which none passes until a SYN begins it anew",
);
const ANSWERS: EnumType<bool> = EnumType { names: &[("nothing", false), ("reset", true)] };
static ANSWER: Key<EnumType<bool>> = Key::optional(
    "answer",
    ANSWERS,
    "\"nothing\"",
    "what the sender of a packet of a forgotten connection gets: nothing, or a RST (TCP)",
);

table! {
    /// A box that forgets idle connections.
    pub ForgetTable: FORGET_SECTION = "`forget`" {
        idle: Duration = IDLE,
        answer: bool = ANSWER,
    }
    elsewhere: |key| match key {
        "timeout" | "after" => Some("the time without packets is called `idle`"),
        _ => None,
    },
}

impl ForgetTable {
    /// Converts to the simulator's element; `None` if a key is missing.
    pub(super) fn element(&self) -> Option<ElementSpec> {
        let resets = self.answer.as_ref().is_some_and(|answer| answer.value);
        Some(ElementSpec::Forget { idle: self.idle.as_ref()?.value, resets })
    }
}

static BYTES: Key<SizeType> = Key::optional(
    "bytes",
    SizeType { least: Bytes(1), most: MAX_SIZE },
    "",
    "payload of a connection in this direction after which its next packet is replaced",
);
static AT: Key<DurationType> =
    Key::optional("at", SECONDS, "", "the first packet of each connection from this time on");

table! {
    /// A box that resets connections.
    pub ResetTable: RESET_SECTION = "`reset`" {
        bytes: Bytes = BYTES,
        at: Duration = AT,
    }
    one_of: &["bytes", "at"],
    elsewhere: |key| match key {
        "after" | "size" => Some("the payload before the reset is called `bytes`"),
        "time" | "from" => Some("the time of the reset is called `at`"),
        _ => None,
    },
}

impl ResetTable {
    /// Converts to the simulator's element; `None` if a key is missing.
    pub(super) fn element(&self) -> Option<ElementSpec> {
        let bytes = self.bytes.as_ref().map(|bytes| ResetTrigger::Bytes(bytes.value));
        let at = self.at.as_ref().map(|at| ResetTrigger::At(Instant::ZERO + at.value));
        bytes.or(at).map(ElementSpec::Reset)
    }
}
