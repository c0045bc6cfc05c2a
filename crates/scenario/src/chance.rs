//! Rules that select the packets an element affects: `"1%"`, or a table for other rules.

use core::num::NonZeroU64;
use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use sim::scenario::{ByteRange, FourState, GilbertElliott, PacketClass, Schedule, SelectionRule};
use toml_edit::Array;
use units::{Bytes, Duration, Offset, Ratio};

use super::changes::{self, PERIOD, RAMP, Step, StepsType};
use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader};
use super::kinds::{EnumType, IntegerType, TableType, integer, quantity, type_mismatch};
use super::setting::RawValue;
use super::source::SpannedError;
use super::table::{KeyTable as _, table};
use super::tree::{TomlNode, TomlValue};
use crate::units_text::{byte_range, byte_range_text, fraction_text, pattern, share};

/// Largest packet number of a rule.
const MAX_COUNT: u64 = 1_000_000_000_000;

static EVERY: Key<IntegerType> = Key::optional(
    "every",
    IntegerType { least: 1, most: MAX_COUNT },
    "",
    "every n-th packet: n, 2n, 3n and so on",
);
static PASS: Key<IntegerType> = Key::optional(
    "pass",
    IntegerType { least: 1, most: MAX_COUNT },
    "",
    "passes this many packets, then selects one, and so on",
);
static PACKETS: Key<PacketNumbersType> = Key::optional(
    "packets",
    PacketNumbersType,
    "",
    "these packets, counted from 1 at this element",
);
static BYTES: Key<ByteRangeType> = Key::optional(
    "bytes",
    ByteRangeType,
    "",
    "packets whose first payload byte is in this range of the connection's stream, at their first \
     `times` transmissions; the stream starts at byte 0",
);
static TIMES: Key<IntegerType> = Key::optional(
    "times",
    IntegerType { least: 1, most: u32::MAX as u64 },
    "1",
    "with `bytes`: how often each packet is selected, retransmissions included",
);
static AT: Key<StepsType<FractionType>> = Key::optional(
    "at",
    StepsType(FractionType),
    "",
    "a percentage that changes: times, the first `\"0s\"`, each with the percentage from then on",
);
static SHARE: Key<FractionType> = Key::optional(
    "share",
    FractionType,
    "",
    "with `correlation`: fraction of packets, each by a random number that depends on the one \
     before; a correlation changes the fraction selected, as in netem",
);
static CORRELATION: Key<FractionType> = Key::optional(
    "correlation",
    FractionType,
    "0%",
    "with `share`: weight of the previous packet's random number",
);
static FOUR_STATE: Key<TableType<FourStateTable>> = Key::optional(
    "four_state",
    TableType::of(&FOUR_STATE_SECTION),
    "",
    "a Markov chain of four states (netem's `loss state`): 1 and 2 pass packets, 3 and 4 select them",
);
static GILBERT_ELLIOTT: Key<TableType<GilbertElliottTable>> = Key::optional(
    "gilbert_elliott",
    TableType::of(&GILBERT_ELLIOTT_SECTION),
    "",
    "bursts: the Gilbert-Elliott channel with a good and a bad state (netem's gemodel)",
);

table! {
    /// A rule other than a fraction of all packets.
    pub RuleTable: RULE_SECTION = "a rule" {
        every: u64 = EVERY,
        pass: u64 = PASS,
        packets: Vec<u64> = PACKETS,
        bytes: (Bytes, Bytes) = BYTES,
        times: u64 = TIMES,
        gilbert_elliott: Box<GilbertElliottTable> = GILBERT_ELLIOTT,
        four_state: Box<FourStateTable> = FOUR_STATE,
        share: Ratio = SHARE,
        correlation: Ratio = CORRELATION,
        at: Vec<Step<Ratio>> = AT,
        ramp: Duration = RAMP,
        period: Duration = PERIOD,
    }
    one_of: &["every", "pass", "packets", "bytes", "gilbert_elliott", "four_state", "share", "at"],
    elsewhere: |key| match key {
        "seq" | "range" => Some("write bytes = \"434400B..435848B\""),
        "p" | "probability" | "random" => {
            Some("a fraction of all packets needs no table: \"1%\"")
        }
        "only" => Some("`only` belongs beside it: { loss = { ... }, only = \"data\" }"),
        _ => None,
    },
    check: |fields, reader| {
        if let Some(times) = fields.node(&TIMES).filter(|_| !fields.has(&BYTES)) {
            reader.report(SpannedError::new(times.span, "`times` goes with `bytes`"));
        }
        if let Some(node) = fields.node(&CORRELATION).filter(|_| !fields.has(&SHARE)) {
            reader.report(SpannedError::new(node.span, "`correlation` goes with `share`"));
        }
        for key in [&RAMP, &PERIOD] {
            if let Some(node) = fields.node(key).filter(|_| !fields.has(&AT)) {
                let message = format!("`{}` goes with `at`", key.name);
                reader.report(SpannedError::new(node.span, message));
            }
        }
    },
}

static P: Key<FractionType> =
    Key::required("p", FractionType, "probability of the transition from good to bad");
static R: Key<FractionType> =
    Key::required("r", FractionType, "probability of the transition from bad to good");
static H: Key<FractionType> =
    Key::optional("h", FractionType, "0%", "probability that a packet passes in the bad state");
static K: Key<FractionType> =
    Key::optional("k", FractionType, "100%", "probability that a packet passes in the good state");

table! {
    /// The Gilbert-Elliott channel.
    pub GilbertElliottTable: GILBERT_ELLIOTT_SECTION = "`gilbert_elliott`" {
        p: Ratio = P,
        r: Ratio = R,
        h: Ratio = H,
        k: Ratio = K,
    }
    elsewhere: |key| match key {
        "1-h" => Some("write h, which is 100% less what netem calls 1-h"),
        "1-k" => Some("write k, which is 100% less what netem calls 1-k"),
        _ => None,
    },
}

static P13: Key<FractionType> =
    Key::required("p13", FractionType, "probability of the transition from 1 to 3");
static P31: Key<FractionType> = Key::optional("p31", FractionType, "100% - `p13`", "from 3 to 1");
static P32: Key<FractionType> = Key::optional("p32", FractionType, "0%", "from 3 to 2");
static P23: Key<FractionType> = Key::optional("p23", FractionType, "100%", "from 2 to 3");
static P14: Key<FractionType> =
    Key::optional("p14", FractionType, "0%", "from 1 to 4, an isolated loss; 1 always follows 4");

table! {
    /// The four-state chain of netem.
    pub FourStateTable: FOUR_STATE_SECTION = "`four_state`" {
        p13: Ratio = P13,
        p31: Ratio = P31,
        p32: Ratio = P32,
        p23: Ratio = P23,
        p14: Ratio = P14,
    }
}

impl FourStateTable {
    fn chain(&self) -> Option<SelectionRule> {
        let p13 = self.p13.as_ref()?.value;
        let rest = Ratio::new(p13.den().saturating_sub(p13.num()), p13.den())?;
        let of =
            |given: &Option<Located<Ratio>>, default| given.as_ref().map_or(default, |p| p.value);
        Some(SelectionRule::FourState(FourState {
            p13,
            p31: of(&self.p31, rest),
            p32: of(&self.p32, Ratio::ZERO),
            p23: of(&self.p23, Ratio::new(1, 1)?),
            p14: of(&self.p14, Ratio::ZERO),
        }))
    }
}

/// Packets that a rule counts and selects; all by default.
pub(super) const ONLY: EnumType<PacketClass> = EnumType {
    names: &[
        ("data", PacketClass::Data),
        ("acks", PacketClass::Acks),
        ("syns", PacketClass::Syns),
        ("syn-acks", PacketClass::SynAcks),
        ("ecn-syns", PacketClass::EcnSyns),
    ],
};

/// A fraction of packets: `"1%"`.
pub(super) struct FractionType;

impl KeyType for FractionType {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::SHARE })
    }

    fn type_name(&self) -> String {
        "percentage".into()
    }
}

impl KeyCodec for FractionType {
    type Value = Ratio;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Ratio> {
        quantity(key, node, share, "%", reader)
    }

    fn write(&self, value: &Ratio) -> toml_edit::Value {
        fraction_text(*value).into()
    }
}

/// Selects the packets that an element affects.
#[derive(Debug, Clone, PartialEq)]
pub enum PacketRule {
    /// Each packet with this probability.
    Share(Ratio),
    /// The packets of a rule.
    Rule(Box<RuleTable>),
}

/// A rule: a fraction or a table.
pub(super) struct PacketRuleType;

impl KeyType for PacketRuleType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [FractionType.schema(), RULE_SECTION.schema()] })
    }

    fn type_name(&self) -> String {
        "percentage or a table".into()
    }
}

impl KeyCodec for PacketRuleType {
    type Value = PacketRule;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<PacketRule> {
        match node.value {
            TomlValue::Table(_) => {
                TableType::of(&RULE_SECTION).read(key, node, reader).map(PacketRule::Rule)
            }
            _ => FractionType.read(key, node, reader).map(PacketRule::Share),
        }
    }

    fn write(&self, value: &PacketRule) -> toml_edit::Value {
        match value {
            PacketRule::Share(share) => FractionType.write(share),
            PacketRule::Rule(rule) => rule.write().into(),
        }
    }
}

impl PacketRule {
    /// Returns the rule as a value of a sweep axis.
    pub fn setting(&self) -> RawValue {
        RawValue::from_toml(&PacketRuleType.write(self))
    }

    /// Returns whether it selects packets by the bytes of their payload.
    pub(super) fn selects_bytes(&self) -> bool {
        matches!(self, Self::Rule(rule) if rule.bytes.is_some())
    }

    /// Converts to the simulator's rule; `None` if a key is missing.
    pub(super) fn rule(&self, reader: &mut ScenarioReader) -> Option<SelectionRule> {
        let RuleTable {
            every,
            pass,
            packets,
            bytes,
            times,
            gilbert_elliott,
            four_state,
            share,
            correlation,
            at,
            ..
        } = match self {
            Self::Share(share) => return Some(SelectionRule::Share(*share)),
            Self::Rule(rule) => &**rule,
        };
        if at.is_some() {
            return self.changing(reader).map(SelectionRule::Changing);
        }
        let every = every.as_ref().map(|n| n.value);
        let every = every.or(pass.as_ref().map(|n| n.value + 1)).and_then(NonZeroU64::new);
        let packets =
            || packets.as_ref().map(|packets| SelectionRule::Listed(packets.value.clone()));
        let bytes = || {
            let (from, until) = bytes.as_ref()?.value;
            let times = times.as_ref().map_or(1, |times| times.value as u32);
            let (from, until) = (Offset(from.get()), Offset(until.get()));
            Some(SelectionRule::Bytes(ByteRange { from, until, times }))
        };
        let chain = || four_state.as_ref().and_then(|chain| chain.value.chain());
        let correlated = || {
            let share = share.as_ref()?.value;
            let correlation = correlation.as_ref().map_or(Ratio::ZERO, |rho| rho.value);
            Some(SelectionRule::Correlated { share, correlation })
        };
        let channel = || gilbert_elliott.as_ref().and_then(|channel| channel.value.channel());
        let counted = every.map(SelectionRule::Every).or_else(packets).or_else(bytes);
        counted.or_else(channel).or_else(chain).or_else(correlated)
    }
}

impl PacketRule {
    fn changing(&self, reader: &mut ScenarioReader) -> Option<Schedule<Ratio>> {
        let Self::Rule(rule) = self else { return None };
        changes::gradual(rule.at.as_ref(), rule.ramp.as_ref(), rule.period.as_ref(), reader)
    }
}

impl GilbertElliottTable {
    fn channel(&self) -> Option<SelectionRule> {
        let share = |given: &Option<Located<Ratio>>, default| match given {
            Some(share) => Some(share.value),
            None => Ratio::new(default, 100),
        };
        let (p, r) = (self.p.as_ref()?.value, self.r.as_ref()?.value);
        let (h, k) = (share(&self.h, 0)?, share(&self.k, 100)?);
        Some(SelectionRule::GilbertElliott(GilbertElliott { p, r, h, k }))
    }
}

/// A range of bytes: `"434400B..435848B"`.
struct ByteRangeType;

impl KeyType for ByteRangeType {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::BYTE_RANGE })
    }

    fn type_name(&self) -> String {
        "two sizes separated by `..`".into()
    }
}

impl KeyCodec for ByteRangeType {
    type Value = (Bytes, Bytes);

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        let TomlValue::Text(text) = &node.value else {
            return type_mismatch(key, node, "a range such as \"434400B..435848B\"", reader);
        };
        match byte_range(text) {
            Ok(range) => Some(range),
            Err(misread) => {
                let fault = SpannedError::new(node.span, format!("`{key}` {}", misread.message));
                let fault = fault.expected(misread.expected).found(node.describe());
                reader.report(fault.hint(misread.hint));
                None
            }
        }
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        byte_range_text(*value).into()
    }
}

/// Numbers of packets.
struct PacketNumbersType;

impl KeyType for PacketNumbersType {
    fn schema(&self) -> Json {
        let number = IntegerType { least: 1, most: MAX_COUNT };
        json!({ "type": "array", "items": number.schema(), "minItems": 1 })
    }

    fn type_name(&self) -> String {
        "list of positive integers".into()
    }
}

impl KeyCodec for PacketNumbersType {
    type Value = Vec<u64>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Vec<u64>> {
        let TomlValue::List(items) = &node.value else {
            return type_mismatch(key, node, "a list of whole numbers such as [900, 901]", reader);
        };
        let number = IntegerType { least: 1, most: MAX_COUNT };
        let mut numbers: Vec<u64> = Vec::with_capacity(items.len());
        let mut listed = BTreeSet::new();
        for item in items {
            let n = number.read(key, item, reader)?;
            if !listed.insert(n) {
                reader.report(SpannedError::new(item.span, format!("packet {n} is listed twice")));
            }
            numbers.push(n);
        }
        if numbers.is_empty() {
            reader.report(SpannedError::new(node.span, format!("`{key}` is empty")));
        }
        numbers.sort_unstable();
        Some(numbers)
    }

    fn write(&self, value: &Vec<u64>) -> toml_edit::Value {
        value.iter().map(|&n| integer(n)).collect::<Array>().into()
    }
}
