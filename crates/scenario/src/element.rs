//! Elements of a road.

use net::link::Limit;
use serde_json::{Value as Json, json};
use sim::scenario::{Capacity, During, Element, Only, Policy};
use units::{Bytes, Duration, Rate};

use super::chance::{self, AnyChoice, Choice};
use super::keys::{Fields, Key, Kind, Located, Reader, Section, Shape};
use super::kinds::{OneOf, Queue, Size, Span, Speed, Sub, Switch, Whole, Words};
use super::queue::{AnyDiscipline, Discipline};
use super::reorder::{self, ReorderTable};
use super::shared::SharedElements;
use super::source::{Fault, Place};
use super::table::table;
use super::tree::Node;
use crate::units_text::{MAX_SIZE, Room};

static LINK: Key<Sub<LinkTable>> =
    Key::optional("link", Sub::of(&LINK_SECTION), "", "a drop-tail queue in front of a line");
static DELAY: Key<Span> = Key::optional(
    "delay",
    Span { least: Duration::ZERO, usual: "ms" },
    "",
    "a fixed delay, the same for every packet",
);
static JITTER: Key<Span> = Key::optional(
    "jitter",
    Span { least: Duration::ZERO, usual: "ms" },
    "",
    "a delay drawn for each packet, uniformly from 0s to this; order is kept",
);
static LOSS: Key<AnyChoice> = Key::optional("loss", AnyChoice, "", "packets are lost");
static DUPLICATE: Key<AnyChoice> =
    Key::optional("duplicate", AnyChoice, "", "packets come twice, the copy at once");
static CORRUPT: Key<AnyChoice> = Key::optional(
    "corrupt",
    AnyChoice,
    "",
    "packets are damaged; the network card they reach drops them",
);
static REORDER: Key<Sub<ReorderTable>> =
    Key::optional("reorder", Sub::of(&reorder::SECTION), "", "packets change their order");
static THIN: Key<Sub<ThinTable>> =
    Key::optional("thin", Sub::of(&THIN_SECTION), "", "few of the bare ACKs pass, the newest");
static OUTAGE: Key<Sub<OutageTable>> =
    Key::optional("outage", Sub::of(&OUTAGE_SECTION), "", "nothing passes for a while");
static POLICER: Key<Sub<PolicerTable>> = Key::optional(
    "policer",
    Sub::of(&POLICER_SECTION),
    "",
    "a token bucket; what exceeds it is lost",
);
static SHAPER: Key<Sub<ShaperTable>> =
    Key::optional("shaper", Sub::of(&SHAPER_SECTION), "", "a token bucket; what exceeds it waits");
static SHARED: Key<Words> = Key::optional(
    "shared",
    Words,
    "",
    "the element [shared.NAME], which several roads may lead through",
);
static ONLY: Key<OneOf<Only>> = Key::optional(
    "only",
    chance::ONLY,
    "all packets",
    "with `loss`, `duplicate`, `corrupt`, `reorder`: counts and concerns only packets with \
     payload, or only bare ACKs",
);

/// Kinds of elements; the last is a reference to one.
const KINDS: &[&str] = &[
    "link",
    "delay",
    "jitter",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "thin",
    "outage",
    "policer",
    "shaper",
    "shared",
];

table! {
    /// An element of a path; it does one thing.
    pub ElementTable: ELEMENT = "an element" {
        link: Box<LinkTable> = LINK,
        delay: Duration = DELAY,
        jitter: Duration = JITTER,
        loss: Choice = LOSS,
        duplicate: Choice = DUPLICATE,
        corrupt: Choice = CORRUPT,
        reorder: Box<ReorderTable> = REORDER,
        thin: Box<ThinTable> = THIN,
        outage: Box<OutageTable> = OUTAGE,
        policer: Box<PolicerTable> = POLICER,
        shaper: Box<ShaperTable> = SHAPER,
        only: Only = ONLY,
        shared: String = SHARED,
    }
    one_of: KINDS,
    elsewhere: not_an_element,
    check: check_only,
}

/// The same, but no reference to another: neither list has its last entry.
pub(super) static SHARED_ELEMENT: Section = Section {
    what: "a shared element",
    keys: ELEMENT.keys.split_at(ELEMENT.keys.len() - 1).0,
    one_of: KINDS.split_at(KINDS.len() - 1).0,
    elsewhere: not_an_element,
    check: check_only,
};

static RATE: Key<Speed> = Key::optional("rate", Speed, "", "rate of the line, of IP bytes");
static TRACE: Key<Recording> = Key::optional(
    "trace",
    Recording,
    "",
    "a recording that the line follows, as of mahimahi: a file beside this one with a moment in \
     milliseconds in each line, at which there is room for 1500 bytes; or `preset:lte-down`, \
     `preset:lte-up`",
);
static BUFFER: Key<Queue> = Key::required(
    "buffer",
    Queue,
    "room of the queue, the packet on the line not counted; `1bdp` is the rate times the delays \
     of both ways; of a recording, its mean rate",
);
static QUEUE: Key<AnyDiscipline> = Key::optional(
    "queue",
    AnyDiscipline,
    "\"drop-tail\"",
    "which packets go, are marked or are lost before the queue is full",
);

table! {
    /// A queue and a line.
    pub LinkTable: LINK_SECTION = "a link" {
        rate: Rate = RATE,
        trace: String = TRACE,
        buffer: Room = BUFFER,
        queue: Discipline = QUEUE,
    }
    one_of: &["rate", "trace"],
    elsewhere: |key| match key {
        "delay" => Some("a delay is an element of its own: { link = { ... } }, { delay = ... }"),
        "loss" => Some("loss is an element of its own: { loss = ... }, { link = { ... } }"),
        "limit" => Some("the room of the queue is called `buffer`"),
        "aqm" | "qdisc" | "codel" | "fq_codel" | "pie" | "red" => {
            Some("the discipline of the queue is called `queue`: queue = \"codel\"")
        }
        "bandwidth" | "speed" => Some("the rate of the line is called `rate`"),
        _ => not_on_a_path(key),
    },
}

static SEGMENTS: Key<Whole> = Key::required(
    "segments",
    Whole { least: 1, most: 1_000_000 },
    "an ACK passes when it acknowledges so many full segments more than the last that passed",
);
static THIN_TIMEOUT: Key<Span> = Key::required(
    "timeout",
    Span { least: Duration::from_nanos(1), usual: "ms" },
    "an ACK passes when one has been held for so long",
);
static MSS: Key<Size> = Key::optional(
    "mss",
    Size { least: Bytes(1), most: Bytes(65_535) },
    "1448 B",
    "payload of a full segment",
);

table! {
    /// ACK thinning.
    pub ThinTable: THIN_SECTION = "`thin`" {
        segments: u64 = SEGMENTS,
        timeout: Duration = THIN_TIMEOUT,
        mss: Bytes = MSS,
    }
}

static OUTAGE_FROM: Key<Span> =
    Key::required("from", Span { least: Duration::ZERO, usual: "s" }, "its first moment");
static UNTIL: Key<Span> = Key::required(
    "until",
    Span { least: Duration::from_nanos(1), usual: "s" },
    "the first moment after it",
);
static HOLD: Key<Switch> = Key::optional(
    "hold",
    Switch,
    "false",
    "packets are held and go on together when it is over; without, they are lost",
);

table! {
    /// A time in which nothing passes.
    pub OutageTable: OUTAGE_SECTION = "an outage" {
        from: Duration = OUTAGE_FROM,
        until: Duration = UNTIL,
        hold: bool = HOLD,
    }
    elsewhere: |key| match key {
        "duration" | "for" => Some("an outage ends at the moment `until`"),
        "to" => Some("the end of an outage is called `until`"),
        _ => None,
    },
}

static BUCKET_RATE: Key<Speed> =
    Key::required("rate", Speed, "what flows into the bucket, in IP bytes");
static BURST: Key<Size> = Key::required(
    "burst",
    Size { least: Bytes(1), most: MAX_SIZE },
    "what the bucket holds; it is full at the beginning, and a larger packet never passes",
);
static SHAPER_BUFFER: Key<Queue> = Key::required(
    "buffer",
    Queue,
    "room for packets that wait; `1bdp` is the rate times the delays of both ways",
);

table! {
    /// A token bucket without a queue.
    pub PolicerTable: POLICER_SECTION = "a policer" {
        rate: Rate = BUCKET_RATE,
        burst: Bytes = BURST,
    }
    elsewhere: |key| match key {
        "buffer" | "limit" | "queue" => Some("a bucket with a queue is a `shaper`"),
        _ => None,
    },
}

table! {
    /// A token bucket with a queue.
    pub ShaperTable: SHAPER_SECTION = "a shaper" {
        rate: Rate = BUCKET_RATE,
        burst: Bytes = BURST,
        buffer: Room = SHAPER_BUFFER,
    }
    elsewhere: |key| match key {
        "limit" | "queue" => Some("the room of the queue is called `buffer`"),
        _ => None,
    },
}

fn not_an_element(key: &str) -> Option<&'static str> {
    match key {
        "rate" | "buffer" => Some("a line is { link = { rate = ..., buffer = ... } }"),
        "drop" => Some("what loses packets is called `loss`"),
        "blackout" => Some("a time in which nothing passes is called `outage`"),
        _ => not_on_a_path(key),
    }
}

pub(super) fn not_on_a_path(key: &str) -> Option<&'static str> {
    match key {
        "lro" | "gro" | "tso" => {
            Some("offloads are the work of a host's network card: put it under [host.NAME]")
        }
        "tap" => Some("a capture point sits on a host: [[tap]] host = \"NAME\""),
        "knobs" | "profile" | "cc" | "mtu" => Some("this belongs to a host: [host.NAME]"),
        _ => None,
    }
}

/// The name of a recording.
struct Recording;

impl Shape for Recording {
    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }

    fn takes(&self) -> String {
        "name of a file".into()
    }
}

impl Kind for Recording {
    type Value = String;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<String> {
        Words.read(key, node, reader)
    }

    fn write(&self, value: &String) -> toml_edit::Value {
        Words.write(value)
    }
}

/// Reports `only` beside an element that concerns all packets.
fn check_only(fields: &Fields<'_>, reader: &mut Reader) {
    let picks = [fields.has(&LOSS), fields.has(&DUPLICATE), fields.has(&CORRUPT)].contains(&true)
        || fields.has(&REORDER);
    if let Some(node) = fields.node(&ONLY).filter(|_| !picks) {
        let message = "`only` goes with `loss`, `duplicate`, `corrupt` and `reorder`";
        reader.report(Fault::new(node.place, message));
    }
}

/// An element before `1bdp` is known.
pub(super) enum Draft {
    Whole(Element),
    Link { capacity: Capacity, buffer: Located<Room>, queue: Policy },
    Shaper { rate: Rate, burst: Bytes, buffer: Located<Room> },
}

/// The element of a table; references are looked up in `shared`.
pub(super) fn draft(
    table: &ElementTable,
    shared: Option<&SharedElements>,
    reader: &mut Reader,
) -> Option<Draft> {
    let only = table.only.as_ref().map_or(Only::All, |only| only.value);
    let whole = |element| Some(Draft::Whole(element));
    if let Some(link) = &table.link {
        return self::link(&link.value, reader);
    }
    if let Some(shaper) = &table.shaper {
        let ShaperTable { rate, burst, buffer } = &*shaper.value;
        let buffer = self::buffer(buffer.as_ref(), reader);
        let (rate, burst) = (rate.as_ref()?.value, burst.as_ref()?.value);
        return Some(Draft::Shaper { rate, burst, buffer: buffer? });
    }
    if let Some(policer) = &table.policer {
        let PolicerTable { rate, burst } = &*policer.value;
        let (rate, burst) = (rate.as_ref()?.value, burst.as_ref()?.value);
        return whole(Element::Policer { rate, burst });
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
    if let (Some(shared), Some(name)) = (shared, &table.shared) {
        return shared.find(name, reader).map(Element::Shared).and_then(whole);
    }
    let picked = [&table.loss, &table.duplicate, &table.corrupt].map(Option::as_ref);
    let bytes = picked.iter().flatten().find(|choice| choice.value.is_of_bytes());
    if let Some(choice) = bytes.filter(|_| only == Only::Acks) {
        let message = "bare ACKs carry none of these bytes";
        reader.report(Fault::new(choice.place, message).hint("leave `only` out".to_owned()));
    }
    let [loss, duplicate, corrupt] = picked.map(|choice| choice.and_then(|c| c.value.rule()));
    let delay = table.delay.as_ref().map(|span| Element::Delay(span.value));
    let jitter = table.jitter.as_ref().map(|span| Element::Jitter { most: span.value });
    let loss = loss.map(|rule| Element::Loss { rule, only });
    let duplicate = duplicate.map(|rule| Element::Duplicate { rule, only });
    let corrupt = corrupt.map(|rule| Element::Corrupt { rule, only });
    delay.or(jitter).or(loss).or(duplicate).or(corrupt).and_then(whole)
}

fn link(table: &LinkTable, reader: &mut Reader) -> Option<Draft> {
    let LinkTable { rate, trace, buffer, queue } = table;
    let buffer = self::buffer(buffer.as_ref(), reader);
    let trace = trace.as_ref().and_then(|name| match reader.files.recording(&name.value) {
        Ok(schedule) => Some(Capacity::Trace(schedule)),
        Err(wrong) => {
            let message = format!("this recording cannot be used: {wrong}");
            reader.report(Fault::new(name.place, message));
            None
        }
    });
    let capacity = rate.as_ref().map(|rate| Capacity::Rate(rate.value)).or(trace);
    let queue = match queue {
        Some(queue) => queue.value.policy(reader),
        None => Some(Policy::DropTail),
    };
    Some(Draft::Link { capacity: capacity?, buffer: buffer?, queue: queue? })
}

fn buffer(buffer: Option<&Located<Room>>, reader: &mut Reader) -> Option<Located<Room>> {
    let buffer = *buffer?;
    if matches!(buffer.value, Room::Size(Bytes::ZERO) | Room::Packets(0)) {
        reader.report(Fault::new(buffer.place, "this buffer has no room"));
    }
    Some(buffer)
}

fn thin(table: &ThinTable) -> Option<Element> {
    let ThinTable { segments, timeout, mss } = table;
    let mss = mss.as_ref().map_or(Bytes(1_448), |mss| mss.value);
    let bytes = Bytes(segments.as_ref()?.value * mss.get());
    Some(Element::Thin { bytes, timeout: timeout.as_ref()?.value })
}

fn outage(table: &OutageTable, reader: &mut Reader) -> Option<Element> {
    let (from, until) = (table.from.as_ref()?, table.until.as_ref()?);
    if until.value <= from.value {
        let fault = Fault::new(until.place, "this outage ends before it begins");
        reader.report(fault.expected(format!("a moment after {}", from.value)));
        return None;
    }
    let held = table.hold.as_ref().is_some_and(|hold| hold.value);
    let during = if held { During::Held } else { During::Lost };
    Some(Element::Outage { from: from.value, until: until.value, during })
}

impl Draft {
    /// Is it the shared element of that index?
    pub(super) fn is_shared(&self, index: usize) -> bool {
        matches!(self, Self::Whole(Element::Shared(other)) if *other == index)
    }

    /// The delay it adds to the round trip of which `1bdp` speaks.
    pub(super) fn delay(&self, shared: &SharedElements) -> Duration {
        let span = |element: &Element| match element {
            Element::Delay(span) => *span,
            _ => Duration::ZERO,
        };
        match self {
            Self::Whole(Element::Shared(index)) => shared.get(*index).map_or(Duration::ZERO, span),
            Self::Whole(element) => span(element),
            Self::Link { .. } | Self::Shaper { .. } => Duration::ZERO,
        }
    }

    /// The element, on a path of that round trip.
    pub(super) fn resolve(
        self,
        round_trip: Option<Duration>,
        reader: &mut Reader,
    ) -> Option<Element> {
        Some(match self {
            Self::Whole(element) => element,
            Self::Link { capacity, buffer, queue } => {
                let limit = limit(capacity.mean(), buffer, round_trip, reader)?;
                match (capacity, queue) {
                    (Capacity::Rate(rate), Policy::DropTail) => Element::Link { rate, limit },
                    (capacity, queue) => Element::ManagedLink { capacity, limit, queue },
                }
            }
            Self::Shaper { rate, burst, buffer } => {
                Element::Shaper { rate, burst, limit: limit(rate, buffer, round_trip, reader)? }
            }
        })
    }
}

fn limit(
    rate: Rate,
    buffer: Located<Room>,
    round_trip: Option<Duration>,
    reader: &mut Reader,
) -> Option<Limit> {
    let times = match buffer.value {
        Room::Size(size) => return Some(Limit::Bytes(size)),
        Room::Packets(packets) => return Some(Limit::Packets(packets)),
        Room::Bdp(times) => times,
    };
    let no_room = |place: Place, message: String, reader: &mut Reader| {
        let hint = "give it in bytes or packets, such as \"64KiB\" or \"100p\"".to_owned();
        reader.report(Fault::new(place, message).hint(hint));
        None
    };
    let Some(round_trip) = round_trip else {
        let message = "paths of several delays may lead through a shared element".to_owned();
        return no_room(buffer.place, message, reader);
    };
    match Bytes(times.of(rate.bytes_in(round_trip).get())) {
        Bytes::ZERO => {
            let message =
                format!("this buffer has no room: the delays of the path are {round_trip}");
            no_room(buffer.place, message, reader)
        }
        size => Some(Limit::Bytes(size)),
    }
}
