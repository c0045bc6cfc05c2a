//! Elements of a road.

use net::link::Limit;
use net::trace::Schedule;
use serde_json::{Value as Json, json};
use sim::scenario::{Capacity, During, Element, Only, Policy, Rule};
use units::{Bytes, Duration, Rate};

use super::chance::{self, Choice};
use super::keys::{AnyKey, Fields, Key, Kind, Located, Reader, Section, Shape};
use super::kinds::{OneOf, Queue, Size, Span, Speed, Sub, Switch, Whole, Words};
use super::queue::Discipline;
use super::reorder;
use super::shared::SharedElements;
use super::source::{Fault, Place};
use super::tree::Node;
use crate::units_text::{MAX_SIZE, Room};

static LINK: Key<Sub> =
    Key::optional("link", Sub(&LINK_SECTION), "", "a drop-tail queue in front of a line");
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
static LOSS: Key<Choice> = Key::optional("loss", Choice, "", "packets are lost");
static DUPLICATE: Key<Choice> =
    Key::optional("duplicate", Choice, "", "packets come twice, the copy at once");
static CORRUPT: Key<Choice> = Key::optional(
    "corrupt",
    Choice,
    "",
    "packets are damaged; the network card they reach drops them",
);
static REORDER: Key<Sub> =
    Key::optional("reorder", Sub(&reorder::SECTION), "", "packets change their order");
static THIN: Key<Sub> =
    Key::optional("thin", Sub(&THIN_SECTION), "", "few of the bare ACKs pass, the newest");
static OUTAGE: Key<Sub> =
    Key::optional("outage", Sub(&OUTAGE_SECTION), "", "nothing passes for a while");
static POLICER: Key<Sub> =
    Key::optional("policer", Sub(&POLICER_SECTION), "", "a token bucket; what exceeds it is lost");
static SHAPER: Key<Sub> =
    Key::optional("shaper", Sub(&SHAPER_SECTION), "", "a token bucket; what exceeds it waits");
static SHARED: Key<Words> = Key::optional(
    "shared",
    Words,
    "",
    "the element [shared.NAME], which several roads may lead through",
);
static ONLY: Key<OneOf> = Key::optional(
    "only",
    chance::ONLY,
    "all packets",
    "with `loss`, `duplicate`, `corrupt`, `reorder`: counts and concerns only packets with \
     payload, or only bare ACKs",
);

/// What an element may be; the last is none of its own.
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
const KEYS: &[&dyn AnyKey] = &[
    &LINK, &DELAY, &JITTER, &LOSS, &DUPLICATE, &CORRUPT, &REORDER, &THIN, &OUTAGE, &POLICER,
    &SHAPER, &ONLY, &SHARED,
];

/// A station on a road; it does one thing.
pub(super) static ELEMENT: Section =
    Section { what: "an element", keys: KEYS, one_of: KINDS, elsewhere: not_an_element };

/// The same, but no reference to another.
pub(super) static SHARED_ELEMENT: Section = Section {
    what: "a shared element",
    keys: KEYS.split_at(KEYS.len() - 1).0,
    one_of: KINDS.split_at(KINDS.len() - 1).0,
    elsewhere: not_an_element,
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
static QUEUE: Key<Discipline> = Key::optional(
    "queue",
    Discipline,
    "\"drop-tail\"",
    "which packets go, are marked or are lost before the queue is full",
);

/// A queue and a line.
pub(super) static LINK_SECTION: Section = Section {
    what: "a link",
    keys: &[&RATE, &TRACE, &BUFFER, &QUEUE],
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
};

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

/// ACK thinning.
pub(super) static THIN_SECTION: Section = Section {
    what: "`thin`",
    keys: &[&SEGMENTS, &THIN_TIMEOUT, &MSS],
    one_of: &[],
    elsewhere: Section::NOT_ELSEWHERE,
};

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

/// A time in which nothing passes.
pub(super) static OUTAGE_SECTION: Section = Section {
    what: "an outage",
    keys: &[&OUTAGE_FROM, &UNTIL, &HOLD],
    one_of: &[],
    elsewhere: |key| match key {
        "duration" | "for" => Some("an outage ends at the moment `until`"),
        "to" => Some("the end of an outage is called `until`"),
        _ => None,
    },
};

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

/// A token bucket without a queue.
pub(super) static POLICER_SECTION: Section = Section {
    what: "a policer",
    keys: &[&BUCKET_RATE, &BURST],
    one_of: &[],
    elsewhere: |key| match key {
        "buffer" | "limit" | "queue" => Some("a bucket with a queue is a `shaper`"),
        _ => None,
    },
};

/// A token bucket with a queue.
pub(super) static SHAPER_SECTION: Section = Section {
    what: "a shaper",
    keys: &[&BUCKET_RATE, &BURST, &SHAPER_BUFFER],
    one_of: &[],
    elsewhere: |key| match key {
        "limit" | "queue" => Some("the room of the queue is called `buffer`"),
        _ => None,
    },
};

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
    type Value = Schedule;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Schedule> {
        let name = Words.read(key, node, reader)?;
        match reader.files.recording(&name) {
            Ok(schedule) => Some(schedule),
            Err(wrong) => {
                let fault =
                    Fault::new(node.place, format!("this recording cannot be used: {wrong}"));
                reader.report(fault);
                None
            }
        }
    }
}

/// An element before `1bdp` is known.
pub(super) enum Draft {
    Whole(Element),
    Link { capacity: Capacity, buffer: Located<Room>, queue: Policy },
    Shaper { rate: Rate, burst: Bytes, buffer: Located<Room> },
}

/// Reads an element of a road.
pub(super) fn read(node: &Node, shared: &SharedElements, reader: &mut Reader) -> Option<Draft> {
    let fields = Fields::open(&ELEMENT, node, reader)?;
    draft(&fields, Some(shared), reader)
}

pub(super) fn draft(
    fields: &Fields<'_>,
    shared: Option<&SharedElements>,
    reader: &mut Reader,
) -> Option<Draft> {
    let only = only(fields, reader);
    let whole = |element| Some(Draft::Whole(element));
    if let Some(node) = fields.node(&LINK) {
        let fields = Fields::open(&LINK_SECTION, node, reader)?;
        let (rate, buffer) = (fields.get(&RATE, reader), buffer(&fields, &BUFFER, reader));
        let queue = match fields.has(&QUEUE) {
            true => fields.get(&QUEUE, reader).map(|queue| queue.value),
            false => Some(Policy::DropTail),
        };
        let trace = fields.get(&TRACE, reader).map(|trace| Capacity::Trace(trace.value));
        let capacity = rate.map(|rate| Capacity::Rate(rate.value)).or(trace)?;
        return Some(Draft::Link { capacity, buffer: buffer?, queue: queue? });
    }
    if let Some(node) = fields.node(&SHAPER) {
        let fields = Fields::open(&SHAPER_SECTION, node, reader)?;
        let (rate, burst) = (fields.get(&BUCKET_RATE, reader), fields.get(&BURST, reader));
        let buffer = buffer(&fields, &SHAPER_BUFFER, reader);
        return Some(Draft::Shaper { rate: rate?.value, burst: burst?.value, buffer: buffer? });
    }
    if let Some(node) = fields.node(&POLICER) {
        let fields = Fields::open(&POLICER_SECTION, node, reader)?;
        let (rate, burst) = (fields.get(&BUCKET_RATE, reader), fields.get(&BURST, reader));
        return whole(Element::Policer { rate: rate?.value, burst: burst?.value });
    }
    if let Some(node) = fields.node(&REORDER) {
        return reorder::read(node, only, reader).and_then(whole);
    }
    if let Some(node) = fields.node(&THIN) {
        return thin(node, reader).and_then(whole);
    }
    if let Some(node) = fields.node(&OUTAGE) {
        return outage(node, reader).and_then(whole);
    }
    if let Some(shared) = shared
        && let Some(name) = fields.get(&SHARED, reader)
    {
        return shared.find(&name, reader).map(Element::Shared).and_then(whole);
    }
    let picked = [&LOSS, &DUPLICATE, &CORRUPT].map(|key| fields.get(key, reader));
    let bytes = picked.iter().flatten().find(|rule| matches!(rule.value, Rule::Bytes(_)));
    if let Some(rule) = bytes.filter(|_| only == Only::Acks) {
        let message = "bare ACKs carry none of these bytes";
        reader.report(Fault::new(rule.place, message).hint("leave `only` out".to_owned()));
    }
    let [loss, duplicate, corrupt] = picked.map(|rule| rule.map(|rule| rule.value));
    let delay = fields.get(&DELAY, reader).map(|span| Element::Delay(span.value));
    let jitter = fields.get(&JITTER, reader).map(|span| Element::Jitter { most: span.value });
    let loss = loss.map(|rule| Element::Loss { rule, only });
    let duplicate = duplicate.map(|rule| Element::Duplicate { rule, only });
    let corrupt = corrupt.map(|rule| Element::Corrupt { rule, only });
    delay.or(jitter).or(loss).or(duplicate).or(corrupt).and_then(whole)
}

/// Whom the element concerns, if it is one that asks.
fn only(fields: &Fields<'_>, reader: &mut Reader) -> Only {
    let asks = [fields.has(&LOSS), fields.has(&DUPLICATE), fields.has(&CORRUPT)].contains(&true)
        || fields.has(&REORDER);
    if let Some(node) = fields.node(&ONLY).filter(|_| !asks) {
        let message = "`only` goes with `loss`, `duplicate`, `corrupt` and `reorder`";
        reader.report(Fault::new(node.place, message));
    }
    chance::only(fields.get(&ONLY, reader).map(|only| only.value))
}

fn buffer(fields: &Fields<'_>, key: &Key<Queue>, reader: &mut Reader) -> Option<Located<Room>> {
    let buffer = fields.get(key, reader)?;
    if matches!(buffer.value, Room::Size(Bytes::ZERO) | Room::Packets(0)) {
        reader.report(Fault::new(buffer.place, "this buffer has no room"));
    }
    Some(buffer)
}

fn thin(node: &Node, reader: &mut Reader) -> Option<Element> {
    let fields = Fields::open(&THIN_SECTION, node, reader)?;
    let (segments, timeout) = (fields.get(&SEGMENTS, reader), fields.get(&THIN_TIMEOUT, reader));
    let mss = match fields.has(&MSS) {
        true => fields.get(&MSS, reader)?.value,
        false => Bytes(1_448),
    };
    Some(Element::Thin { bytes: Bytes(segments?.value * mss.get()), timeout: timeout?.value })
}

fn outage(node: &Node, reader: &mut Reader) -> Option<Element> {
    let fields = Fields::open(&OUTAGE_SECTION, node, reader)?;
    let (from, until) = (fields.get(&OUTAGE_FROM, reader), fields.get(&UNTIL, reader));
    let held = fields.get(&HOLD, reader).is_some_and(|hold| hold.value);
    let (from, until) = (from?, until?);
    if until.value <= from.value {
        let fault = Fault::new(until.place, "this outage ends before it begins");
        reader.report(fault.expected(format!("a moment after {}", from.value)));
        return None;
    }
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
