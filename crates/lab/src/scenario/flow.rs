//! `[[flow]]`: a connection with the application that writes.

use packet::IpVersion;
use serde_json::{Value as Json, json};
use sim::scenario::App;
use units::{Bytes, Duration};

use super::hosts::Hosts;
use super::keys::{Fields, Key, Kind, Located, Reader, Section, Shape};
use super::kinds::{Size, Span, Sub, Switch, Words, quantity, wrong_kind};
use super::source::Place;
use super::tree::{Node, Value};
use crate::units_text::{MAX_SIZE, pattern, size};

static NAME: Key<Words> = Key::required("name", Words, "name of the flow in all results");
static FROM: Key<Words> = Key::required("from", Words, "host that connects and writes");
static TO: Key<Words> = Key::required("to", Words, "host that listens and reads");
static START: Key<Span> = Key::optional(
    "start",
    Span { least: Duration::ZERO, usual: "s" },
    "0s",
    "moment of the first SYN",
);
static BULK: Key<Volume> =
    Key::optional("bulk", Volume, "", "write this much as fast as the stack takes it, then close");
static PACED: Key<Sub> =
    Key::optional("paced", Sub(&PACED_SECTION), "", "write a chunk at fixed intervals, then close");
static IP: Key<Version> = Key::optional("ip", Version, "4", "version of the internet protocol");
static NODELAY: Key<Switch> = Key::optional(
    "nodelay",
    Switch,
    "false",
    "the application switches Nagle's algorithm off (TCP_NODELAY)",
);

/// A connection.
pub(super) static SECTION: Section = Section {
    what: "a flow",
    keys: &[&NAME, &FROM, &TO, &START, &BULK, &PACED, &IP, &NODELAY],
    one_of: &["bulk", "paced"],
    elsewhere: |key| match key {
        "cc" | "profile" | "knobs" | "mtu" | "lro" | "gro" | "tso" => {
            Some("this belongs to a host: [host.NAME]")
        }
        "bytes" | "size" => Some("write bulk = \"1MB\""),
        "duration" | "stop" => Some("the run's duration stands at the top of the file"),
        _ => None,
    },
};

static CHUNK: Key<Size> =
    Key::required("chunk", Size { least: Bytes(1), most: MAX_SIZE }, "bytes of one write");
static EVERY: Key<Span> = Key::required(
    "every",
    Span { least: Duration::from_micros(1), usual: "ms" },
    "from one write to the next",
);
static BYTES: Key<Volume> = Key::optional("bytes", Volume, "unlimited", "bytes in all");

/// Writes at fixed intervals.
pub(super) static PACED_SECTION: Section = Section {
    what: "`paced`",
    keys: &[&CHUNK, &EVERY, &BYTES],
    one_of: &[],
    elsewhere: Section::NOT_ELSEWHERE,
};

/// How much is written: a size, or `"unlimited"`.
struct Volume;

const UNLIMITED: &str = "unlimited";

impl Shape for Volume {
    fn schema(&self) -> Json {
        json!({ "anyOf": [
            { "const": UNLIMITED },
            { "type": "string", "pattern": pattern::SIZE },
        ] })
    }

    fn takes(&self) -> String {
        "size or `\"unlimited\"`".into()
    }
}

impl Kind for Volume {
    type Value = Option<Bytes>;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Option<Bytes>> {
        if node.value == Value::Text(UNLIMITED.to_owned()) {
            return Some(None);
        }
        quantity(key, node, |text| size(text).map(Some), "B", reader)
    }
}

/// Version of the internet protocol: 4 or 6.
struct Version;

impl Shape for Version {
    fn schema(&self) -> Json {
        json!({ "enum": [4, 6] })
    }

    fn takes(&self) -> String {
        "4 or 6".into()
    }
}

impl Kind for Version {
    type Value = IpVersion;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<IpVersion> {
        match &node.value {
            Value::Integer(digits) if digits == "4" => Some(IpVersion::V4),
            Value::Integer(digits) if digits == "6" => Some(IpVersion::V6),
            _ => wrong_kind(key, node, "4 or 6", reader),
        }
    }
}

/// A flow before its path is known.
pub(super) struct FlowRead {
    pub(super) name: Option<Located<String>>,
    /// Hosts that write and read.
    pub(super) ends: Option<(usize, usize)>,
    pub(super) start: Option<Located<Duration>>,
    pub(super) app: Option<App>,
    pub(super) ip: IpVersion,
    pub(super) nodelay: bool,
    /// Where it is said that the application never stops.
    pub(super) endless: Option<Place>,
    /// Where the flow begins.
    pub(super) place: Place,
}

/// Reads a flow.
pub(super) fn read(node: &Node, hosts: &Hosts, reader: &mut Reader) -> Option<FlowRead> {
    let fields = Fields::open(&SECTION, node, reader)?;
    let name = fields.get(&NAME, reader);
    let ends = hosts.pair(&fields, &FROM, &TO, reader);
    let start = fields.get(&START, reader);
    let bulk = fields.get(&BULK, reader).map(|volume| App::Bulk { bytes: volume.value });
    let paced = fields.node(&PACED).and_then(|node| paced(node, reader));
    let app = bulk.or(paced);
    let writes = fields.node(&BULK).or(fields.node(&PACED));
    let endless = match app {
        Some(App::Bulk { bytes: None } | App::Paced { bytes: None, .. }) => writes,
        _ => None,
    };
    Some(FlowRead {
        name,
        ends,
        start,
        app,
        ip: fields.get(&IP, reader).map_or(IpVersion::V4, |ip| ip.value),
        nodelay: fields.get(&NODELAY, reader).is_some_and(|nodelay| nodelay.value),
        endless: endless.map(|node| node.place),
        place: fields.place,
    })
}

fn paced(node: &Node, reader: &mut Reader) -> Option<App> {
    let fields = Fields::open(&PACED_SECTION, node, reader)?;
    let chunk = fields.get(&CHUNK, reader);
    let every = fields.get(&EVERY, reader);
    let bytes = match fields.has(&BYTES) {
        true => fields.get(&BYTES, reader)?.value,
        false => None,
    };
    Some(App::Paced { chunk: chunk?.value, every: every?.value, bytes })
}
