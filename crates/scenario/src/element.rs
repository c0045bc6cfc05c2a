//! Elements of a path: links, delays, impairments, policers and shapers.

use serde_json::{Value as Json, json};
use sim::scenario::{ElementSpec, LinkCapacity, OutageMode, PacketClass, QdiscConfig, SynOffers};
use units::{Bytes, Duration, Rate};

use super::bucket::{POLICER_SECTION, PolicerTable, SHAPER_SECTION, ShaperTable};
use super::chance::{self, PacketRule, PacketRuleType};
use super::changes::{
    self, BufferChangesTable, DelayChangesTable, OverTime, OverTimeType, RateChangesTable,
};
use super::jitter::{JitterRule, JitterType};
use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader, TableFields, TableSpec};
use super::kinds::{
    BoolType, BufferSizeType, DurationType, EnumType, IntegerType, RateType, SizeType, TableType,
    TextType,
};
use super::middlebox::{self, ForgetTable, MtuRule, MtuType, OffersType, ResetTable};
use super::netem::{self, NetemTable};
use super::queue::{Discipline, DisciplineType};
use super::reorder::{self, ReorderTable};
use super::shared::SharedElements;
use super::slot::{self, SlotTable};
use super::source::SpannedError;
use super::table::table;
use super::tree::TomlNode;
use super::unresolved::{UnresolvedBuffer, UnresolvedElement};
use crate::units_text::BufferSize;

static LINK: Key<TableType<LinkTable>> = Key::optional(
    "link",
    TableType::of(&LINK_SECTION),
    "",
    "a transmission rate or trace, with a queue",
);
const MILLISECONDS: DurationType = DurationType { least: Duration::ZERO, default_unit: "ms" };

static DELAY: Key<OverTimeType<DurationType, DelayChangesTable>> = Key::optional(
    "delay",
    OverTimeType::new(MILLISECONDS, &changes::DELAY_CHANGES),
    "",
    "propagation delay; packets stay in order",
);
static JITTER: Key<JitterType> = Key::optional(
    "jitter",
    JitterType,
    "",
    "random delay of each packet, uniform from 0s to this value, or of a model; packets stay in \
     order",
);
static NETEM: Key<TableType<NetemTable>> = Key::optional(
    "netem",
    TableType::of(&netem::SECTION),
    "",
    "a random delay that reorders packets, with a rate and a limit, as netem of Linux",
);
static LOSS: Key<PacketRuleType> = Key::optional("loss", PacketRuleType, "", "packet loss");
static DUPLICATE: Key<PacketRuleType> = Key::optional(
    "duplicate",
    PacketRuleType,
    "",
    "duplicates packets; the copy follows immediately",
);
static CORRUPT: Key<PacketRuleType> =
    Key::optional("corrupt", PacketRuleType, "", "corrupts packets; the receiving NIC drops them");
static REORDER: Key<TableType<ReorderTable>> =
    Key::optional("reorder", TableType::of(&reorder::SECTION), "", "reorders packets");
static THIN: Key<TableType<ThinTable>> = Key::optional(
    "thin",
    TableType::of(&THIN_SECTION),
    "",
    "ACK filter: passes the newest of several",
);
static SLOT: Key<TableType<SlotTable>> = Key::optional(
    "slot",
    TableType::of(&slot::SECTION),
    "",
    "delivers packets in bursts, as `slot` of netem",
);
static OUTAGE: Key<TableType<OutageTable>> = Key::optional(
    "outage",
    TableType::of(&OUTAGE_SECTION),
    "",
    "link outage: no packet passes for a time",
);
static POLICER: Key<TableType<PolicerTable>> = Key::optional(
    "policer",
    TableType::of(&POLICER_SECTION),
    "",
    "token-bucket policer: drops packets over the rate",
);
static SHAPER: Key<TableType<ShaperTable>> = Key::optional(
    "shaper",
    TableType::of(&SHAPER_SECTION),
    "",
    "token-bucket shaper: queues packets over the rate",
);
static MTU: Key<MtuType> = Key::optional(
    "mtu",
    MtuType,
    "",
    "a link with a small MTU: larger packets do not pass, with an ICMP error or without",
);
static STRIP: Key<OffersType> = Key::optional(
    "strip",
    OffersType,
    "",
    "a middlebox that removes these options from SYNs and SYN-ACKs; `ecn` are their bits ECE and \
     CWR",
);
static FORGET: Key<TableType<ForgetTable>> = Key::optional(
    "forget",
    TableType::of(&middlebox::FORGET_SECTION),
    "",
    "a NAT or firewall that forgets idle connections",
);
static RESET: Key<TableType<ResetTable>> = Key::optional(
    "reset",
    TableType::of(&middlebox::RESET_SECTION),
    "",
    "a box that resets connections of TCP: it replaces a packet by a RST to each end, and passes \
     none that follow",
);
static SHARED: Key<TextType> = Key::optional(
    "shared",
    TextType,
    "",
    "the element [shared.NAME], which several paths can include",
);
static ONLY: Key<EnumType<PacketClass>> = Key::optional(
    "only",
    chance::ONLY,
    "all packets",
    "with `loss`, `duplicate`, `corrupt`, `reorder`: counts and selects only packets with \
     payload, pure ACKs, SYNs without ACK, SYN-ACKs, or SYNs without ACK that ask for ECN",
);

/// Types of elements; the last refers to a shared element.
const KINDS: &[&str] = &[
    "link",
    "delay",
    "jitter",
    "netem",
    "slot",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "thin",
    "outage",
    "policer",
    "shaper",
    "mtu",
    "strip",
    "forget",
    "reset",
    "shared",
];

table! {
    /// An element of a path; it has one function.
    pub ElementTable: ELEMENT = "an element" {
        link: Box<LinkTable> = LINK,
        delay: OverTime<Duration, DelayChangesTable> = DELAY,
        jitter: JitterRule = JITTER,
        netem: Box<NetemTable> = NETEM,
        slot: Box<SlotTable> = SLOT,
        loss: PacketRule = LOSS,
        duplicate: PacketRule = DUPLICATE,
        corrupt: PacketRule = CORRUPT,
        reorder: Box<ReorderTable> = REORDER,
        thin: Box<ThinTable> = THIN,
        outage: Box<OutageTable> = OUTAGE,
        policer: Box<PolicerTable> = POLICER,
        shaper: Box<ShaperTable> = SHAPER,
        mtu: MtuRule = MTU,
        strip: Vec<SynOffers> = STRIP,
        forget: Box<ForgetTable> = FORGET,
        reset: Box<ResetTable> = RESET,
        only: PacketClass = ONLY,
        shared: String = SHARED,
    }
    one_of: KINDS,
    elsewhere: not_an_element,
    check: check_only,
}

/// [`ELEMENT`] without the reference to a shared element, the last entry of both lists.
pub(super) static SHARED_ELEMENT: TableSpec = TableSpec {
    what: "a shared element",
    keys: ELEMENT.keys.split_at(ELEMENT.keys.len() - 1).0,
    one_of: KINDS.split_at(KINDS.len() - 1).0,
    elsewhere: not_an_element,
    check: check_only,
};

static RATE: Key<OverTimeType<RateType, RateChangesTable>> = Key::optional(
    "rate",
    OverTimeType::new(RateType, &changes::RATE_CHANGES),
    "",
    "link rate, in bytes of IP packets",
);
static TRACE: Key<TraceNameType> = Key::optional(
    "trace",
    TraceNameType,
    "",
    "packet-delivery trace of the link in mahimahi's format: a file beside this one, each line a \
     time in milliseconds at which 1500 bytes can be delivered; or `preset:lte-down`, \
     `preset:lte-up`",
);
static BUFFER: Key<OverTimeType<BufferSizeType, BufferChangesTable>> = Key::required(
    "buffer",
    OverTimeType::new(BufferSizeType, &changes::BUFFER_CHANGES),
    "queue capacity, without the packet in transmission; `1bdp` is the rate (of a trace, its mean; of \
     a changing rate, its first) times the sum of the delays in both directions (of changing ones, \
     the first)",
);
static QUEUE: Key<DisciplineType> = Key::optional(
    "queue",
    DisciplineType,
    "\"drop-tail\"",
    "queue discipline: drop-tail, or an AQM that drops or marks before the queue is full",
);

table! {
    /// A queue and a transmission rate or trace.
    pub LinkTable: LINK_SECTION = "a link" {
        rate: OverTime<Rate, RateChangesTable> = RATE,
        trace: String = TRACE,
        buffer: OverTime<BufferSize, BufferChangesTable> = BUFFER,
        queue: Discipline = QUEUE,
    }
    one_of: &["rate", "trace"],
    elsewhere: |key| match key {
        "delay" => Some("a delay is an element of its own: { link = { ... } }, { delay = ... }"),
        "loss" => Some("loss is an element of its own: { loss = ... }, { link = { ... } }"),
        "limit" => Some("the queue capacity is called `buffer`"),
        "aqm" | "qdisc" | "codel" | "fq_codel" | "pie" | "red" => {
            Some("the queue discipline is called `queue`: queue = \"codel\"")
        }
        "bandwidth" | "speed" => Some("the link rate is called `rate`"),
        _ => not_on_a_path(key),
    },
}

static SEGMENTS: Key<IntegerType> = Key::required(
    "segments",
    IntegerType { least: 1, most: 1_000_000 },
    "an ACK passes when it acknowledges this many full-sized segments more than the last passed",
);
static THIN_TIMEOUT: Key<DurationType> = Key::required(
    "timeout",
    DurationType { least: Duration::from_nanos(1), default_unit: "ms" },
    "longest time for which ACKs are held",
);
static MSS: Key<SizeType> = Key::optional(
    "mss",
    SizeType { least: Bytes(1), most: Bytes(65_535) },
    "1448 B",
    "payload of a full-sized segment",
);

table! {
    /// An ACK filter.
    pub ThinTable: THIN_SECTION = "`thin`" {
        segments: u64 = SEGMENTS,
        timeout: Duration = THIN_TIMEOUT,
        mss: Bytes = MSS,
    }
}

static OUTAGE_FROM: Key<DurationType> = Key::required(
    "from",
    DurationType { least: Duration::ZERO, default_unit: "s" },
    "start of the outage",
);
static UNTIL: Key<DurationType> = Key::required(
    "until",
    DurationType { least: Duration::from_nanos(1), default_unit: "s" },
    "end of the outage, exclusive",
);
static OUTAGE_PERIOD: Key<DurationType> = Key::optional(
    "period",
    DurationType { least: Duration::from_nanos(1), default_unit: "s" },
    "none",
    "time from the start of each outage to the start of the next; without it there is one outage",
);
static HOLD: Key<BoolType> = Key::optional(
    "hold",
    BoolType,
    "false",
    "holds packets and forwards them together at the end; if false, they are dropped",
);

table! {
    /// A time without packet delivery.
    pub OutageTable: OUTAGE_SECTION = "an outage" {
        from: Duration = OUTAGE_FROM,
        until: Duration = UNTIL,
        period: Duration = OUTAGE_PERIOD,
        hold: bool = HOLD,
    }
    elsewhere: |key| match key {
        "duration" | "for" => Some("the end of an outage is called `until`, a time of the run"),
        "to" => Some("the end of an outage is called `until`"),
        "every" | "repeat" => Some("the time between two outages is called `period`"),
        _ => None,
    },
}

fn not_an_element(key: &str) -> Option<&'static str> {
    match key {
        "rate" | "buffer" => Some("a link is { link = { rate = ..., buffer = ... } }"),
        "drop" => Some("packet loss is called `loss`"),
        "blackout" => Some("a time without packet delivery is called `outage`"),
        _ => not_on_a_path(key),
    }
}

pub(super) fn not_on_a_path(key: &str) -> Option<&'static str> {
    match key {
        "lro" | "gro" | "tso" => Some("offloads belong to a host's NIC: put it under [host.NAME]"),
        "tap" => Some("a capture point belongs to a host: [[tap]] host = \"NAME\""),
        "knobs" | "profile" | "cc" => Some("this belongs to a host: [host.NAME]"),
        "mtu" => Some(
            "the MTU of an interface belongs to its host: [host.NAME]; of a path it is an element \
             of its own: { mtu = \"1300B\" }",
        ),
        _ => None,
    }
}

/// The name of a packet-delivery trace.
struct TraceNameType;

impl KeyType for TraceNameType {
    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }

    fn type_name(&self) -> String {
        "file name".into()
    }
}

impl KeyCodec for TraceNameType {
    type Value = String;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<String> {
        TextType.read(key, node, reader)
    }

    fn write(&self, value: &String) -> toml_edit::Value {
        TextType.write(value)
    }
}

/// Reports `only` on an element that does not select packets.
fn check_only(fields: &TableFields<'_>, reader: &mut ScenarioReader) {
    let picks = [fields.has(&LOSS), fields.has(&DUPLICATE), fields.has(&CORRUPT)].contains(&true)
        || fields.has(&REORDER);
    if let Some(node) = fields.node(&ONLY).filter(|_| !picks) {
        let message = "`only` goes with `loss`, `duplicate`, `corrupt` and `reorder`";
        reader.report(SpannedError::new(node.span, message));
    }
}

/// Reads the element of a table; resolves references in `shared`.
pub(super) fn parse_element(
    table: &ElementTable,
    shared: Option<&SharedElements>,
    reader: &mut ScenarioReader,
) -> Option<UnresolvedElement> {
    let only = table.only.as_ref().map_or(PacketClass::All, |only| only.value);
    let whole = |element| Some(UnresolvedElement::Resolved(element));
    if let Some(link) = &table.link {
        return self::link(&link.value, reader);
    }
    if let Some(shaper) = &table.shaper {
        let ShaperTable { rate, burst, buffer, .. } = &*shaper.value;
        let buffer = self::buffer(buffer.as_ref(), reader);
        let (rate, burst) = (rate.as_ref()?.value, burst.as_ref()?.value);
        let framing = shaper.value.framing();
        return Some(UnresolvedElement::Shaper { rate, burst, buffer: buffer?, framing });
    }
    if let Some(policer) = &table.policer {
        let PolicerTable { rate, burst } = &*policer.value;
        let (rate, burst) = (rate.as_ref()?.value, burst.as_ref()?.value);
        return whole(ElementSpec::Policer { rate, burst });
    }
    if let Some(reorder) = &table.reorder {
        return reorder::element(&reorder.value, only).and_then(whole);
    }
    if let Some(thin) = &table.thin {
        return self::thin(&thin.value).and_then(whole);
    }
    if let Some(outage) = &table.outage {
        return self::outage(&outage.value, reader).and_then(whole);
    }
    if let Some(mtu) = &table.mtu {
        return mtu.value.element().and_then(whole);
    }
    if let Some(strip) = &table.strip {
        return whole(middlebox::strip(&strip.value));
    }
    if let Some(forget) = &table.forget {
        return forget.value.element().and_then(whole);
    }
    if let Some(reset) = &table.reset {
        return reset.value.element().and_then(whole);
    }
    if let (Some(shared), Some(name)) = (shared, &table.shared) {
        return shared.find(name, reader).map(ElementSpec::Shared).and_then(whole);
    }
    let picked = [&table.loss, &table.duplicate, &table.corrupt].map(Option::as_ref);
    let bytes = picked.iter().flatten().find(|choice| choice.value.selects_bytes());
    let payload = matches!(only, PacketClass::All | PacketClass::Data);
    if let Some(choice) = bytes.filter(|_| !payload) {
        let message = match only {
            PacketClass::Acks => "pure ACKs carry no payload bytes",
            _ => "`bytes` selects packets by their payload, not SYNs",
        };
        reader.report(SpannedError::new(choice.span, message).hint("leave `only` out".to_owned()));
    }
    let [loss, duplicate, corrupt] = picked.map(|choice| choice.and_then(|c| c.value.rule(reader)));
    if let Some(slot) = &table.slot {
        return slot.value.params(reader).map(ElementSpec::Slot).and_then(whole);
    }
    if let Some(delay) = &table.delay {
        return self::delay(&delay.value, reader).and_then(whole);
    }
    if let Some(netem) = &table.netem {
        return netem.value.element(reader).and_then(whole);
    }
    if let Some(jitter) = &table.jitter {
        return jitter.value.element(reader).and_then(whole);
    }
    let loss = loss.map(|rule| ElementSpec::Loss { rule, only });
    let duplicate = duplicate.map(|rule| ElementSpec::Duplicate { rule, only });
    let corrupt = corrupt.map(|rule| ElementSpec::Corrupt { rule, only });
    loss.or(duplicate).or(corrupt).and_then(whole)
}

/// Reads a delay, fixed or changing.
fn delay(
    delay: &OverTime<Duration, DelayChangesTable>,
    reader: &mut ScenarioReader,
) -> Option<ElementSpec> {
    Some(match delay {
        OverTime::Constant(span) => ElementSpec::Delay(*span),
        OverTime::Changes(table) => {
            let DelayChangesTable { at, ramp, period } = &**table;
            let (at, ramp, period) = (at.as_ref(), ramp.as_ref(), period.as_ref());
            ElementSpec::ChangingDelay(changes::gradual(at, ramp, period, reader)?)
        }
    })
}

fn link(table: &LinkTable, reader: &mut ScenarioReader) -> Option<UnresolvedElement> {
    let LinkTable { rate, trace, buffer, queue } = table;
    let buffer = buffer.as_ref().and_then(|located| match &located.value {
        OverTime::Constant(value) => {
            let buffer = Located { value: *value, span: located.span };
            self::buffer(Some(&buffer), reader).map(UnresolvedBuffer::Constant)
        }
        OverTime::Changes(table) => {
            let steps = changes::stepwise(table.at.as_ref(), table.period.as_ref(), reader)?;
            for (_, buffer) in steps.steps() {
                self::buffer(Some(buffer), reader);
            }
            Some(UnresolvedBuffer::Changing(steps))
        }
    });
    let trace = trace.as_ref().and_then(|name| match reader.files.trace(&name.value) {
        Ok(schedule) => Some(LinkCapacity::Trace(schedule)),
        Err(wrong) => {
            let message = format!("invalid trace: {wrong}");
            reader.report(SpannedError::new(name.span, message));
            None
        }
    });
    let rate = rate.as_ref().and_then(|located| match &located.value {
        OverTime::Constant(rate) => Some(LinkCapacity::Rate(*rate)),
        OverTime::Changes(table) => {
            let RateChangesTable { at, ramp, period } = &**table;
            let rate = changes::gradual(at.as_ref(), ramp.as_ref(), period.as_ref(), reader)?;
            if rate.steps().iter().all(|&(_, rate)| rate == 0) {
                reader.report(SpannedError::new(located.span, "this link never sends"));
            }
            Some(LinkCapacity::Changing(rate))
        }
    });
    let capacity = rate.or(trace);
    let queue = match queue {
        Some(queue) => queue.value.policy(reader),
        None => Some(QdiscConfig::DropTail),
    };
    Some(UnresolvedElement::Link { capacity: capacity?, buffer: buffer?, queue: queue? })
}

fn buffer(
    buffer: Option<&Located<BufferSize>>,
    reader: &mut ScenarioReader,
) -> Option<Located<BufferSize>> {
    let buffer = *buffer?;
    if matches!(buffer.value, BufferSize::Size(Bytes::ZERO) | BufferSize::Packets(0)) {
        reader.report(SpannedError::new(buffer.span, "this buffer has zero capacity"));
    }
    Some(buffer)
}

fn thin(table: &ThinTable) -> Option<ElementSpec> {
    let ThinTable { segments, timeout, mss } = table;
    let mss = mss.as_ref().map_or(Bytes(1_448), |mss| mss.value);
    let bytes = Bytes(segments.as_ref()?.value * mss.get());
    Some(ElementSpec::Thin { bytes, timeout: timeout.as_ref()?.value })
}

fn outage(table: &OutageTable, reader: &mut ScenarioReader) -> Option<ElementSpec> {
    let (from, until) = (table.from.as_ref()?, table.until.as_ref()?);
    if until.value <= from.value {
        let fault = SpannedError::new(until.span, "this outage ends before it begins");
        reader.report(fault.expected(format!("a time after {}", from.value)));
        return None;
    }
    if let Some(period) = &table.period
        && period.value <= until.value.saturating_sub(from.value)
    {
        let fault = SpannedError::new(period.span, "each outage lasts until the next");
        let lasts = until.value.saturating_sub(from.value);
        reader.report(fault.expected(format!("a period longer than {lasts}")));
        return None;
    }
    let held = table.hold.as_ref().is_some_and(|hold| hold.value);
    let during = if held { OutageMode::Hold } else { OutageMode::Drop };
    let period = table.period.map(|period| period.value);
    Some(ElementSpec::Outage { from: from.value, until: until.value, period, during })
}
