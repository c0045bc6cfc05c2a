//! `[[flow]]`: a connection with its applications.

use std::num::NonZeroU64;

use packet::IpVersion;
use serde_json::{Value as Json, json};
use sim::scenario::{App, Close, Keepalive, Reads};
use units::{Bytes, Duration};

use super::apps::{
    self, ON_OFF_SECTION, PACED_SECTION, Probing, READS_SECTION, REQUESTS_SECTION, Volume,
};
use super::hosts::Hosts;
use super::keys::{Fields, Key, Kind, Located, Reader, Section, Shape};
use super::kinds::{OneOf, Size, Span, Sub, Switch, Words, wrong_kind};
use super::source::{Fault, Place};
use super::tree::{Node, Value};
use crate::units_text::MAX_SIZE;

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
static WRITE: Key<Size> = Key::optional(
    "write",
    Size { least: Bytes(1), most: MAX_SIZE },
    "all at once",
    "bytes of one write call of `bulk`; a stack may send between two",
);
static PACED: Key<Sub> =
    Key::optional("paced", Sub(&PACED_SECTION), "", "write a chunk at fixed intervals, then close");
static ON_OFF: Key<Sub> = Key::optional(
    "on_off",
    Sub(&ON_OFF_SECTION),
    "",
    "write in bursts with pauses between them, then close",
);
static REQUESTS: Key<Sub> = Key::optional(
    "requests",
    Sub(&REQUESTS_SECTION),
    "",
    "send requests one after another, each of which `to` answers, then close",
);
static PATH: Key<Words> = Key::optional(
    "path",
    Words,
    "the path between the two hosts",
    "name of the path, where there are several",
);
static IP: Key<Version> = Key::optional("ip", Version, "4", "version of the internet protocol");
static NODELAY: Key<Switch> = Key::optional(
    "nodelay",
    Switch,
    "false",
    "the application switches Nagle's algorithm off (TCP_NODELAY)",
);

static READS: Key<Sub> = Key::optional(
    "reads",
    Sub(&READS_SECTION),
    "all there is, at once",
    "how `to` reads; with `bulk`, `paced` and `on_off`",
);
static CLOSE: Key<OneOf> = Key::optional(
    "close",
    OneOf { names: &["fin", "reset"] },
    "\"fin\"",
    "how `from` ends the connection; `reset` (SO_LINGER of zero) goes as soon as the stack has \
     taken the last byte, and what it has not sent by then is lost",
);
static KEEPALIVE: Key<Probing> = Key::optional(
    "keepalive",
    Probing,
    "false",
    "both applications want a silent peer to be probed (SO_KEEPALIVE); a table changes the host's \
     own times",
);

/// A connection.
pub(super) static SECTION: Section = Section {
    what: "a flow",
    keys: &[
        &NAME, &FROM, &TO, &PATH, &START, &BULK, &WRITE, &PACED, &ON_OFF, &REQUESTS, &READS,
        &CLOSE, &KEEPALIVE, &IP, &NODELAY,
    ],
    one_of: &["bulk", "paced", "on_off", "requests"],
    elsewhere: |key| match key {
        "cc" | "profile" | "knobs" | "mtu" | "lro" | "gro" | "tso" => {
            Some("this belongs to a host: [host.NAME]")
        }
        "bytes" | "size" => Some("write bulk = \"1MB\""),
        "request" | "response" | "think" | "count" => {
            Some("write requests = { request = \"200B\", response = \"64KiB\" }")
        }
        "on" | "off" => Some("write on_off = { on = \"100kB\", off = \"1s\" }"),
        "linger" | "so_linger" | "reset" => Some("write close = \"reset\" for a linger of zero"),
        "chunk" | "every" => {
            Some("write paced = { ... } for the writer, reads = { ... } for the reader")
        }
        "duration" | "stop" => Some("the run's duration stands at the top of the file"),
        _ => None,
    },
};

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
    /// Name of the path.
    pub(super) path: Option<Located<String>>,
    pub(super) start: Option<Located<Duration>>,
    pub(super) app: Option<App>,
    pub(super) ip: IpVersion,
    pub(super) nodelay: bool,
    pub(super) reads: Option<Reads>,
    pub(super) close: Close,
    pub(super) keepalive: Option<Keepalive>,
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
    let write = fields.get(&WRITE, reader).and_then(|write| NonZeroU64::new(write.value.get()));
    if let Some(node) = fields.node(&WRITE).filter(|_| !fields.has(&BULK)) {
        reader.report(Fault::new(node.place, "`write` goes with `bulk`"));
    }
    let bulk = fields.get(&BULK, reader).map(|volume| App::Bulk { bytes: volume.value, write });
    let paced = fields.node(&PACED).and_then(|node| apps::paced(node, reader));
    let on_off = fields.node(&ON_OFF).and_then(|node| apps::on_off(node, reader));
    let requests = fields.node(&REQUESTS).and_then(|node| apps::requests(node, reader));
    let reads = fields.node(&READS).and_then(|node| apps::reads(node, reader));
    if let Some(node) = fields.node(&READS).filter(|_| fields.has(&REQUESTS)) {
        let message = "`reads` goes with `bulk`, `paced` and `on_off`";
        reader.report(Fault::new(node.place, message));
    }
    let close = fields.get(&CLOSE, reader).map_or(Close::Fin, |close| match close.value {
        "reset" => Close::Reset,
        _ => Close::Fin,
    });
    let app = bulk.or(paced).or(on_off).or(requests);
    let writes = fields.node(&BULK).or(fields.node(&PACED));
    let writes = writes.or(fields.node(&ON_OFF)).or(fields.node(&REQUESTS));
    let endless = match app {
        Some(
            App::Bulk { bytes: None, .. }
            | App::Paced { bytes: None, .. }
            | App::OnOff { bytes: None, .. }
            | App::Requests { count: None, .. },
        ) => writes,
        _ => None,
    };
    Some(FlowRead {
        name,
        ends,
        path: fields.get(&PATH, reader),
        start,
        app,
        ip: fields.get(&IP, reader).map_or(IpVersion::V4, |ip| ip.value),
        nodelay: fields.get(&NODELAY, reader).is_some_and(|nodelay| nodelay.value),
        reads,
        close,
        keepalive: fields.get(&KEEPALIVE, reader).and_then(|keepalive| keepalive.value),
        endless: endless.map(|node| node.place),
        place: fields.place,
    })
}
