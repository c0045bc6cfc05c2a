//! `[[flow]]`: a connection with its applications.

use std::num::NonZeroU64;

use packet::IpVersion;
use serde_json::{Value as Json, json};
use sim::scenario::{App, Close, Keepalive, Reads};
use units::{Bytes, Duration};

use super::apps::{
    self, AnyVolume, ON_OFF_SECTION, OnOffTable, PACED_SECTION, PacedTable, Probing, READS_SECTION,
    REQUESTS_SECTION, ReadsTable, RequestsTable, Volume,
};
use super::hosts::Hosts;
use super::keys::{Key, Kind, Located, Reader, Shape};
use super::kinds::{OneOf, Size, Span, Sub, Switch, Words, wrong_kind};
use super::source::{Fault, Place};
use super::table::table;
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
static BULK: Key<AnyVolume> = Key::optional(
    "bulk",
    AnyVolume,
    "",
    "write this much as fast as the stack takes it, then close",
);
static WRITE: Key<Size> = Key::optional(
    "write",
    Size { least: Bytes(1), most: MAX_SIZE },
    "all at once",
    "bytes of one write call of `bulk`; a stack may send between two",
);
static PACED: Key<Sub<PacedTable>> = Key::optional(
    "paced",
    Sub::of(&PACED_SECTION),
    "",
    "write a chunk at fixed intervals, then close",
);
static ON_OFF: Key<Sub<OnOffTable>> = Key::optional(
    "on_off",
    Sub::of(&ON_OFF_SECTION),
    "",
    "write in bursts with pauses between them, then close",
);
static REQUESTS: Key<Sub<RequestsTable>> = Key::optional(
    "requests",
    Sub::of(&REQUESTS_SECTION),
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

static READS: Key<Sub<ReadsTable>> = Key::optional(
    "reads",
    Sub::of(&READS_SECTION),
    "all there is, at once",
    "how `to` reads; with `bulk`, `paced` and `on_off`",
);
static CLOSE: Key<OneOf<Close>> = Key::optional(
    "close",
    OneOf { names: &[("fin", Close::Fin), ("reset", Close::Reset)] },
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

table! {
    /// A connection.
    pub FlowTable: SECTION = "a flow" {
        name: String = NAME,
        from: String = FROM,
        to: String = TO,
        path: String = PATH,
        start: Duration = START,
        bulk: Volume = BULK,
        write: Bytes = WRITE,
        paced: Box<PacedTable> = PACED,
        on_off: Box<OnOffTable> = ON_OFF,
        requests: Box<RequestsTable> = REQUESTS,
        reads: Box<ReadsTable> = READS,
        close: Close = CLOSE,
        keepalive: Option<Keepalive> = KEEPALIVE,
        ip: IpVersion = IP,
        nodelay: bool = NODELAY,
    }
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
    check: |fields, reader| {
        if let Some(node) = fields.node(&READS).filter(|_| fields.has(&REQUESTS)) {
            let message = "`reads` goes with `bulk`, `paced` and `on_off`";
            reader.report(Fault::new(node.place, message));
        }
    },
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

    fn write(&self, value: &IpVersion) -> toml_edit::Value {
        match value {
            IpVersion::V4 => 4.into(),
            IpVersion::V6 => 6.into(),
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

/// The flow of a table, with its hosts.
pub(super) fn flow(table: &Located<FlowTable>, hosts: &Hosts, reader: &mut Reader) -> FlowRead {
    let flow = &table.value;
    let ends = hosts.pair("a flow", table.place, [&flow.from, &flow.to], reader);
    let reads = flow.reads.as_ref().and_then(|reads| reads.value.reads(reader));
    if let (Some(write), None) = (&flow.write, &flow.bulk) {
        reader.report(Fault::new(write.place, "`write` goes with `bulk`"));
    }
    let write = flow.write.as_ref().and_then(|write| NonZeroU64::new(write.value.get()));
    let bulk = |bulk: &Located<Volume>| App::Bulk { bytes: bulk.value.bytes(), write };
    let (app, writes) = match flow {
        FlowTable { bulk: Some(table), .. } => (Some(bulk(table)), table.place),
        FlowTable { paced: Some(table), .. } => (table.value.app(), table.place),
        FlowTable { on_off: Some(table), .. } => (table.value.app(), table.place),
        FlowTable { requests: Some(table), .. } => (table.value.app(), table.place),
        _ => (None, table.place),
    };
    let endless = match app {
        Some(
            App::Bulk { bytes: None, .. }
            | App::Paced { bytes: None, .. }
            | App::OnOff { bytes: None, .. }
            | App::Requests { count: None, .. },
        ) if !apps::misread_limit(reader) => Some(writes),
        _ => None,
    };
    FlowRead {
        name: flow.name.clone(),
        ends,
        path: flow.path.clone(),
        start: flow.start,
        app,
        ip: flow.ip.map_or(IpVersion::V4, |ip| ip.value),
        nodelay: flow.nodelay.is_some_and(|nodelay| nodelay.value),
        reads,
        close: flow.close.map_or(Close::Fin, |close| close.value),
        keepalive: flow.keepalive.and_then(|keepalive| keepalive.value),
        endless,
        place: table.place,
    }
}
