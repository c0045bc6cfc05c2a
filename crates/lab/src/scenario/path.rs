//! `[[path]]`: two one-way roads between a pair of hosts.

use net::link::Limit;
use serde_json::{Value as Json, json};
use sim::scenario::{Element, Path};
use units::{Bytes, Duration, Rate};

use super::hosts::Hosts;
use super::keys::{Fields, Key, Located, Reader, Section, Shape};
use super::kinds::{Queue, Span, Speed, Sub, Words};
use super::source::Fault;
use super::tree::Node;
use crate::units_text::Room;

static FROM: Key<Words> = Key::required("from", Words, "host where `forward` begins");
static TO: Key<Words> = Key::required("to", Words, "host where `forward` ends");
static FORWARD: Key<Road> =
    Key::required("forward", Road, "elements from `from` to `to`, in the order packets meet them");
static RETURN: Key<Road> =
    Key::required("return", Road, "elements on the way back, in the order packets meet them");

/// Two one-way roads.
pub(super) static SECTION: Section = Section {
    what: "a path",
    keys: &[&FROM, &TO, &FORWARD, &RETURN],
    one_of: &[],
    elsewhere: |key| match key {
        "reverse" | "back" | "backward" => Some("the way back is called `return`"),
        "rate" | "buffer" | "link" | "delay" => {
            Some("a road is a list of elements: forward = [ { link = { ... } }, { delay = ... } ]")
        }
        _ => not_on_a_path(key),
    },
};

static LINK: Key<Sub> =
    Key::optional("link", Sub(&LINK_SECTION), "", "a drop-tail queue in front of a line");
static ELEMENT_DELAY: Key<Span> = Key::optional(
    "delay",
    Span { least: Duration::ZERO, usual: "ms" },
    "",
    "a fixed delay, the same for every packet",
);

/// A station on a road; it does one thing.
pub(super) static ELEMENT: Section = Section {
    what: "an element",
    keys: &[&LINK, &ELEMENT_DELAY],
    one_of: &["link", "delay"],
    elsewhere: |key| match key {
        "rate" | "buffer" => Some("a line is { link = { rate = ..., buffer = ... } }"),
        _ => not_on_a_path(key),
    },
};

static RATE: Key<Speed> = Key::required("rate", Speed, "rate of the line, of IP bytes");
static BUFFER: Key<Queue> = Key::required(
    "buffer",
    Queue,
    "room of the queue, the packet on the line not counted; `1bdp` is the rate times the delays \
     of both ways",
);

/// A queue and a line.
pub(super) static LINK_SECTION: Section = Section {
    what: "a link",
    keys: &[&RATE, &BUFFER],
    one_of: &[],
    elsewhere: |key| match key {
        "delay" => Some("a delay is an element of its own: { link = { ... } }, { delay = ... }"),
        "limit" | "queue" => Some("the room of the queue is called `buffer`"),
        "bandwidth" | "speed" => Some("the rate of the line is called `rate`"),
        _ => not_on_a_path(key),
    },
};

fn not_on_a_path(key: &str) -> Option<&'static str> {
    match key {
        "lro" | "gro" | "tso" => {
            Some("offloads are the work of a host's network card: put it under [host.NAME]")
        }
        "tap" => Some("a capture point sits on a host: [[tap]] host = \"NAME\""),
        "knobs" | "profile" | "cc" | "mtu" => Some("this belongs to a host: [host.NAME]"),
        _ => None,
    }
}

/// A list of elements.
pub(super) struct Road;

impl Shape for Road {
    fn schema(&self) -> Json {
        json!({ "type": "array", "items": ELEMENT.schema() })
    }

    fn takes(&self) -> String {
        "list of elements".into()
    }
}

/// A path whose ends may be right though its elements are not.
pub(super) struct PathRead {
    /// Hosts at its ends.
    pub(super) ends: Option<(usize, usize)>,
    /// The whole, if nothing is wrong.
    pub(super) path: Option<Path>,
}

/// Reads a path.
pub(super) fn read(node: &Node, hosts: &Hosts, reader: &mut Reader) -> PathRead {
    let Some(fields) = Fields::open(&SECTION, node, reader) else {
        return PathRead { ends: None, path: None };
    };
    let ends = hosts.pair(&fields, &FROM, &TO, reader);
    let forward = road(&fields, &FORWARD, reader);
    let back = road(&fields, &RETURN, reader);
    let roads = forward.zip(back).and_then(|(forward, back)| {
        let round_trip = delays(&forward) + delays(&back);
        let forward = resolve(forward, round_trip, reader);
        forward.zip(resolve(back, round_trip, reader))
    });
    let path =
        ends.zip(roads).map(|((from, to), (forward, reverse))| Path { from, to, forward, reverse });
    PathRead { ends, path }
}

/// An element before `1bdp` is known.
enum Draft {
    Link { rate: Rate, buffer: Located<Room> },
    Delay(Duration),
}

fn road(fields: &Fields<'_>, key: &Key<Road>, reader: &mut Reader) -> Option<Vec<Draft>> {
    let items = reader.list(key.name, fields.node(key)?)?;
    let drafts: Vec<Option<Draft>> = items.iter().map(|item| element(item, reader)).collect();
    drafts.into_iter().collect()
}

fn element(node: &Node, reader: &mut Reader) -> Option<Draft> {
    let fields = Fields::open(&ELEMENT, node, reader)?;
    let delay = fields.get(&ELEMENT_DELAY, reader).map(|span| Draft::Delay(span.value));
    let link = fields.node(&LINK).and_then(|node| {
        let fields = Fields::open(&LINK_SECTION, node, reader)?;
        let (rate, buffer) = (fields.get(&RATE, reader), fields.get(&BUFFER, reader));
        let empty = |room: &Room| matches!(room, Room::Size(Bytes::ZERO) | Room::Packets(0));
        if let Some(buffer) = buffer.filter(|buffer| empty(&buffer.value)) {
            reader.report(Fault::new(buffer.place, "this buffer has no room"));
        }
        Some(Draft::Link { rate: rate?.value, buffer: buffer? })
    });
    link.or(delay)
}

fn delays(road: &[Draft]) -> Duration {
    road.iter().fold(Duration::ZERO, |sum, draft| match draft {
        Draft::Delay(span) => sum + *span,
        Draft::Link { .. } => sum,
    })
}

fn resolve(road: Vec<Draft>, round_trip: Duration, reader: &mut Reader) -> Option<Vec<Element>> {
    let elements: Vec<Option<Element>> = road
        .into_iter()
        .map(|draft| match draft {
            Draft::Delay(span) => Some(Element::Delay(span)),
            Draft::Link { rate, buffer } => {
                let limit = limit(rate, buffer, round_trip, reader)?;
                Some(Element::Link { rate, limit })
            }
        })
        .collect();
    elements.into_iter().collect()
}

fn limit(
    rate: Rate,
    buffer: Located<Room>,
    round_trip: Duration,
    reader: &mut Reader,
) -> Option<Limit> {
    let times = match buffer.value {
        Room::Size(size) => return Some(Limit::Bytes(size)),
        Room::Packets(packets) => return Some(Limit::Packets(packets)),
        Room::Bdp(times) => times,
    };
    let size = Bytes(times.of(rate.bytes_in(round_trip).get()));
    if size == Bytes::ZERO {
        let message = format!("this buffer has no room: the delays of the path are {round_trip}");
        let hint = "give it in bytes or packets, such as \"64KiB\" or \"100p\"".to_owned();
        reader.report(Fault::new(buffer.place, message).hint(hint));
        return None;
    }
    Some(Limit::Bytes(size))
}
