//! Which packets of a road something happens to: `"1%"`, or a table for other rules.

use core::num::NonZeroU64;

use serde_json::{Value as Json, json};
use sim::scenario::{ByteRange, GilbertElliott, Only, Rule};
use units::{Bytes, Offset, Ratio};

use super::keys::{Fields, Key, Kind, Reader, Section, Shape};
use super::kinds::{OneOf, Sub, Whole, quantity, wrong_kind};
use super::source::Fault;
use super::tree::{Node, Value};
use crate::units_text::{byte_range, pattern, share};

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
static GILBERT_ELLIOTT: Key<Sub> = Key::optional(
    "gilbert_elliott",
    Sub(&GILBERT_ELLIOTT_SECTION),
    "",
    "in bursts: a channel that is now good, now bad (netem's gemodel)",
);

/// A rule that is no plain share.
pub(super) static RULE_SECTION: Section = Section {
    what: "a rule",
    keys: &[&EVERY, &PASS, &PACKETS, &BYTES, &TIMES, &GILBERT_ELLIOTT],
    one_of: &["every", "pass", "packets", "bytes", "gilbert_elliott"],
    elsewhere: |key| match key {
        "seq" | "range" => Some("write bytes = \"434400B..435848B\""),
        "share" | "p" | "probability" | "random" => {
            Some("a share of all packets stands without a table: \"1%\"")
        }
        "only" => Some("`only` stands beside it: { loss = { ... }, only = \"data\" }"),
        _ => None,
    },
};

static P: Key<Share> = Key::required("p", Share, "chance that a good channel turns bad");
static R: Key<Share> = Key::required("r", Share, "chance that a bad channel turns good");
static H: Key<Share> =
    Key::optional("h", Share, "0%", "chance that a packet is spared in the bad state");
static K: Key<Share> =
    Key::optional("k", Share, "100%", "chance that a packet is spared in the good state");

/// The channel of Gilbert and Elliott.
pub(super) static GILBERT_ELLIOTT_SECTION: Section = Section {
    what: "`gilbert_elliott`",
    keys: &[&P, &R, &H, &K],
    one_of: &[],
    elsewhere: |key| match key {
        "1-h" => Some("write h, which is 100% less what netem calls 1-h"),
        "1-k" => Some("write k, which is 100% less what netem calls 1-k"),
        _ => None,
    },
};

/// Whom a rule concerns.
pub(super) const ONLY: OneOf = OneOf { names: &["data", "acks"] };

/// What the text for [`ONLY`] means.
pub(super) fn only(text: Option<&str>) -> Only {
    match text {
        Some("data") => Only::Data,
        Some(_) => Only::Acks,
        None => Only::All,
    }
}

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
}

/// A rule: a share, or a table.
pub(super) struct Choice;

impl Shape for Choice {
    fn schema(&self) -> Json {
        json!({ "anyOf": [Share.schema(), RULE_SECTION.schema()] })
    }

    fn takes(&self) -> String {
        "share or a table".into()
    }
}

impl Kind for Choice {
    type Value = Rule;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Rule> {
        if !matches!(node.value, Value::Table(_)) {
            return Share.read(key, node, reader).map(Rule::Share);
        }
        let fields = Fields::open(&RULE_SECTION, node, reader)?;
        let every = fields.get(&EVERY, reader).map(|n| n.value);
        let pass = fields.get(&PASS, reader).map(|n| n.value + 1);
        let packets = fields.get(&PACKETS, reader).map(|packets| Rule::Listed(packets.value));
        let bytes = bytes(&fields, reader).map(Rule::Bytes);
        let channel = fields.node(&GILBERT_ELLIOTT).and_then(|node| channel(node, reader));
        let every = every.or(pass).and_then(NonZeroU64::new).map(Rule::Every);
        every.or(packets).or(bytes).or(channel.map(Rule::GilbertElliott))
    }
}

fn bytes(fields: &Fields<'_>, reader: &mut Reader) -> Option<ByteRange> {
    let times = fields.get(&TIMES, reader);
    if let Some(times) = times.filter(|_| !fields.has(&BYTES)) {
        reader.report(Fault::new(times.place, "`times` goes with `bytes`"));
    }
    let (from, until) = fields.get(&BYTES, reader)?.value;
    let times = times.map_or(1, |times| times.value as u32);
    Some(ByteRange { from: Offset(from.get()), until: Offset(until.get()), times })
}

fn channel(node: &Node, reader: &mut Reader) -> Option<GilbertElliott> {
    let fields = Fields::open(&GILBERT_ELLIOTT_SECTION, node, reader)?;
    let share = |key: &Key<Share>, reader: &mut Reader, default: u64| match fields.has(key) {
        true => fields.get(key, reader).map(|share| share.value),
        false => Ratio::new(default, 100),
    };
    let (p, r) = (fields.get(&P, reader), fields.get(&R, reader));
    let (h, k) = (share(&H, reader, 0), share(&K, reader, 100));
    Some(GilbertElliott { p: p?.value, r: r?.value, h: h?, k: k? })
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
}
