//! Which packets of a road something happens to: `"1%"`, or a table for other rules.

use core::num::NonZeroU64;

use serde_json::{Value as Json, json};
use sim::scenario::{ByteRange, GilbertElliott, Only, Rule};
use toml_edit::Array;
use units::{Bytes, Offset, Ratio};

use super::keys::{Key, Kind, Located, Reader, Shape};
use super::kinds::{OneOf, Sub, Whole, integer, quantity, wrong_kind};
use super::setting::Setting;
use super::source::Fault;
use super::table::{Table as _, table};
use super::tree::{Node, Value};
use crate::units_text::{byte_range, byte_range_text, pattern, share, share_text};

/// Most packets that a rule counts to.
const MAX_COUNT: u64 = 1_000_000_000_000;

static EVERY: Key<Whole> = Key::optional(
    "every",
    Whole { least: 1, most: MAX_COUNT },
    "",
    "every n-th: number n, 2n, 3n and so on",
);
static PASS: Key<Whole> = Key::optional(
    "pass",
    Whole { least: 1, most: MAX_COUNT },
    "",
    "so many are left alone, then comes one, and so on",
);
static PACKETS: Key<Numbers> =
    Key::optional("packets", Numbers, "", "these, counted from 1 at this element");
static BYTES: Key<Range> = Key::optional(
    "bytes",
    Range,
    "",
    "each packet whose first payload byte lies in this range of its connection's stream, for the \
     first `times` times that it is sent; the first byte is 0",
);
static TIMES: Key<Whole> = Key::optional(
    "times",
    Whole { least: 1, most: u32::MAX as u64 },
    "1",
    "with `bytes`: how often each packet is picked, retransmissions counted",
);
static GILBERT_ELLIOTT: Key<Sub<ChannelTable>> = Key::optional(
    "gilbert_elliott",
    Sub::of(&GILBERT_ELLIOTT_SECTION),
    "",
    "in bursts: a channel that is now good, now bad (netem's gemodel)",
);

table! {
    /// A rule that is no plain share.
    pub RuleTable: RULE_SECTION = "a rule" {
        every: u64 = EVERY,
        pass: u64 = PASS,
        packets: Vec<u64> = PACKETS,
        bytes: (Bytes, Bytes) = BYTES,
        times: u64 = TIMES,
        gilbert_elliott: Box<ChannelTable> = GILBERT_ELLIOTT,
    }
    one_of: &["every", "pass", "packets", "bytes", "gilbert_elliott"],
    elsewhere: |key| match key {
        "seq" | "range" => Some("write bytes = \"434400B..435848B\""),
        "share" | "p" | "probability" | "random" => {
            Some("a share of all packets stands without a table: \"1%\"")
        }
        "only" => Some("`only` stands beside it: { loss = { ... }, only = \"data\" }"),
        _ => None,
    },
    check: |fields, reader| {
        if let Some(times) = fields.node(&TIMES).filter(|_| !fields.has(&BYTES)) {
            reader.report(Fault::new(times.place, "`times` goes with `bytes`"));
        }
    },
}

static P: Key<Share> = Key::required("p", Share, "chance that a good channel turns bad");
static R: Key<Share> = Key::required("r", Share, "chance that a bad channel turns good");
static H: Key<Share> =
    Key::optional("h", Share, "0%", "chance that a packet is spared in the bad state");
static K: Key<Share> =
    Key::optional("k", Share, "100%", "chance that a packet is spared in the good state");

table! {
    /// The channel of Gilbert and Elliott.
    pub ChannelTable: GILBERT_ELLIOTT_SECTION = "`gilbert_elliott`" {
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

/// The packets that a rule concerns; without it, all.
pub(super) const ONLY: OneOf<Only> = OneOf { names: &[("data", Only::Data), ("acks", Only::Acks)] };

/// A share of packets: `"1%"`.
pub(super) struct Share;

impl Shape for Share {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::SHARE })
    }

    fn takes(&self) -> String {
        "share".into()
    }
}

impl Kind for Share {
    type Value = Ratio;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Ratio> {
        quantity(key, node, share, "%", reader)
    }

    fn write(&self, value: &Ratio) -> toml_edit::Value {
        share_text(*value).into()
    }
}

/// Which packets something happens to.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// Each with this probability.
    Share(Ratio),
    /// Those of a rule.
    Rule(Box<RuleTable>),
}

/// A rule: a share, or a table.
pub(super) struct AnyChoice;

impl Shape for AnyChoice {
    fn schema(&self) -> Json {
        json!({ "anyOf": [Share.schema(), RULE_SECTION.schema()] })
    }

    fn takes(&self) -> String {
        "share or a table".into()
    }
}

impl Kind for AnyChoice {
    type Value = Choice;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Choice> {
        match node.value {
            Value::Table(_) => Sub::of(&RULE_SECTION).read(key, node, reader).map(Choice::Rule),
            _ => Share.read(key, node, reader).map(Choice::Share),
        }
    }

    fn write(&self, value: &Choice) -> toml_edit::Value {
        match value {
            Choice::Share(share) => Share.write(share),
            Choice::Rule(rule) => rule.write().into(),
        }
    }
}

impl Choice {
    /// As a value of an axis.
    pub fn setting(&self) -> Setting {
        Setting::of_toml(&AnyChoice.write(self))
    }

    /// Does it pick packets by the bytes they carry?
    pub(super) fn is_of_bytes(&self) -> bool {
        matches!(self, Self::Rule(rule) if rule.bytes.is_some())
    }

    /// As the engine has it; `None` if a part is missing.
    pub(super) fn rule(&self) -> Option<Rule> {
        let RuleTable { every, pass, packets, bytes, times, gilbert_elliott } = match self {
            Self::Share(share) => return Some(Rule::Share(*share)),
            Self::Rule(rule) => &**rule,
        };
        let every = every.as_ref().map(|n| n.value);
        let every = every.or(pass.as_ref().map(|n| n.value + 1)).and_then(NonZeroU64::new);
        let packets = || packets.as_ref().map(|packets| Rule::Listed(packets.value.clone()));
        let bytes = || {
            let (from, until) = bytes.as_ref()?.value;
            let times = times.as_ref().map_or(1, |times| times.value as u32);
            let (from, until) = (Offset(from.get()), Offset(until.get()));
            Some(Rule::Bytes(ByteRange { from, until, times }))
        };
        let channel = || gilbert_elliott.as_ref().and_then(|channel| channel.value.channel());
        every.map(Rule::Every).or_else(packets).or_else(bytes).or_else(channel)
    }
}

impl ChannelTable {
    fn channel(&self) -> Option<Rule> {
        let share = |given: &Option<Located<Ratio>>, default| match given {
            Some(share) => Some(share.value),
            None => Ratio::new(default, 100),
        };
        let (p, r) = (self.p.as_ref()?.value, self.r.as_ref()?.value);
        let (h, k) = (share(&self.h, 0)?, share(&self.k, 100)?);
        Some(Rule::GilbertElliott(GilbertElliott { p, r, h, k }))
    }
}

/// A range of bytes: `"434400B..435848B"`.
struct Range;

impl Shape for Range {
    fn schema(&self) -> Json {
        json!({ "type": "string", "pattern": pattern::BYTE_RANGE })
    }

    fn takes(&self) -> String {
        "two sizes with `..` between".into()
    }
}

impl Kind for Range {
    type Value = (Bytes, Bytes);

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Self::Value> {
        let Value::Text(text) = &node.value else {
            return wrong_kind(key, node, "a range such as \"434400B..435848B\"", reader);
        };
        match byte_range(text) {
            Ok(range) => Some(range),
            Err(misread) => {
                let fault = Fault::new(node.place, format!("`{key}` {}", misread.message));
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
struct Numbers;

impl Shape for Numbers {
    fn schema(&self) -> Json {
        let number = Whole { least: 1, most: MAX_COUNT };
        json!({ "type": "array", "items": number.schema(), "minItems": 1 })
    }

    fn takes(&self) -> String {
        "list of whole numbers from 1 on".into()
    }
}

impl Kind for Numbers {
    type Value = Vec<u64>;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Vec<u64>> {
        let Value::List(items) = &node.value else {
            return wrong_kind(key, node, "a list of whole numbers such as [900, 901]", reader);
        };
        let number = Whole { least: 1, most: MAX_COUNT };
        let mut numbers: Vec<u64> = Vec::with_capacity(items.len());
        for item in items {
            let n = number.read(key, item, reader)?;
            if numbers.contains(&n) {
                reader.report(Fault::new(item.place, format!("packet {n} for a second time")));
            }
            numbers.push(n);
        }
        if numbers.is_empty() {
            reader.report(Fault::new(node.place, format!("`{key}` is empty")));
        }
        numbers.sort_unstable();
        Some(numbers)
    }

    fn write(&self, value: &Vec<u64>) -> toml_edit::Value {
        value.iter().map(|&n| integer(n)).collect::<Array>().into()
    }
}
