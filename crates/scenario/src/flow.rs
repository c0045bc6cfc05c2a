//! `[[flow]]`: a connection with its applications.

use std::num::NonZeroU64;

use packet::IpVersion;
use serde_json::{Value as Json, json};
use sim::scenario::{App, Close, DatagramSpec, KeepaliveSpec, ReadPattern};
use units::{Bytes, Duration};

use super::apps::{
    self, KeepaliveType, ON_OFF_SECTION, OnOffTable, PACED_SECTION, PING_SECTION, PacedTable,
    PingTable, READS_SECTION, REQUESTS_SECTION, ReadsTable, RequestsTable, TransferSize,
    TransferSizeType, UDP_SECTION, UdpTable,
};
use super::arrivals::{
    self, ARRIVALS_SECTION, ArrivalsTable, MOST_CONNECTIONS, Replication, TRANSFER_SECTION,
    TransferTable,
};
use super::exchange::{EXCHANGE_SECTION, ExchangeTable};
use super::hosts::Hosts;
use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader};
use super::kinds::{
    BoolType, DurationType, EnumType, IntegerType, SizeType, TableType, TextType, type_mismatch,
};
use super::page::{PAGE_SECTION, PageTable};
use super::source::{SpannedError, TextSpan};
use super::table::table;
use super::tree::{TomlNode, TomlValue};
use super::video::{VIDEO_SECTION, VideoTable};
use crate::units_text::MAX_SIZE;

static NAME: Key<TextType> = Key::required("name", TextType, "name of the flow in all results");
static FROM: Key<TextType> = Key::required("from", TextType, "host that connects and writes");
static TO: Key<TextType> = Key::required("to", TextType, "host that listens and reads");
static START: Key<DurationType> = Key::optional(
    "start",
    DurationType { least: Duration::ZERO, default_unit: "s" },
    "0s",
    "time of the first SYN",
);
static BULK: Key<TransferSizeType> = Key::optional(
    "bulk",
    TransferSizeType,
    "",
    "writes this many bytes as fast as the stack accepts them, then closes",
);
static WRITE: Key<SizeType> = Key::optional(
    "write",
    SizeType { least: Bytes(1), most: MAX_SIZE },
    "all at once",
    "bytes per write call of `bulk`; the stack may send between two calls",
);
static PACED: Key<TableType<PacedTable>> = Key::optional(
    "paced",
    TableType::of(&PACED_SECTION),
    "",
    "writes a chunk at fixed intervals, then closes",
);
static ON_OFF: Key<TableType<OnOffTable>> = Key::optional(
    "on_off",
    TableType::of(&ON_OFF_SECTION),
    "",
    "writes in bursts separated by pauses, then closes",
);
static REQUESTS: Key<TableType<RequestsTable>> = Key::optional(
    "requests",
    TableType::of(&REQUESTS_SECTION),
    "",
    "sends requests in sequence, each answered by `to`, then closes",
);
static EXCHANGE: Key<TableType<ExchangeTable>> = Key::optional(
    "exchange",
    TableType::of(&EXCHANGE_SECTION),
    "",
    "writes of both hosts step by step, each after what precedes it: a protocol, with its waits",
);
static TRANSFER: Key<TableType<TransferTable>> = Key::optional(
    "transfer",
    TableType::of(&TRANSFER_SECTION),
    "",
    "writes a number of bytes drawn from a distribution as fast as the stack accepts them, then closes",
);
static VIDEO: Key<TableType<VideoTable>> = Key::optional(
    "video",
    TableType::of(&VIDEO_SECTION),
    "",
    "plays a video that `to` sends in chunks, each in a bit rate that the player selects",
);
static PAGE: Key<TableType<PageTable>> = Key::optional(
    "page",
    TableType::of(&PAGE_SECTION),
    "",
    "loads web pages from `to`: a document, then its objects",
);
static UDP: Key<TableType<UdpTable>> = Key::optional(
    "udp",
    TableType::of(&UDP_SECTION),
    "",
    "sends datagrams over UDP at fixed or random intervals, whatever arrives",
);
static PING: Key<TableType<PingTable>> = Key::optional(
    "ping",
    TableType::of(&PING_SECTION),
    "",
    "sends echo requests, each answered by `to` at once",
);
static COUNT: Key<IntegerType> = Key::optional(
    "count",
    IntegerType { least: 1, most: MOST_CONNECTIONS },
    "a single connection",
    "number of connections like this, with one row in all results; they begin at once, or by `arrivals`",
);
static ARRIVALS: Key<TableType<ArrivalsTable>> = Key::optional(
    "arrivals",
    TableType::of(&ARRIVALS_SECTION),
    "all at `start`",
    "when the `count` connections begin, from `start` on",
);
static PATH: Key<TextType> = Key::optional(
    "path",
    TextType,
    "the path between the two hosts",
    "name of the path, if there are several",
);
static IP: Key<IpVersionType> = Key::optional("ip", IpVersionType, "4", "IP version");
static NODELAY: Key<BoolType> =
    Key::optional("nodelay", BoolType, "false", "disables Nagle's algorithm (TCP_NODELAY)");

static READS: Key<TableType<ReadsTable>> = Key::optional(
    "reads",
    TableType::of(&READS_SECTION),
    "all available data, immediately",
    "a slow reader at `to`; with `bulk`, `paced` and `on_off`",
);
static CLOSE: Key<EnumType<Close>> = Key::optional(
    "close",
    EnumType { names: &[("fin", Close::Fin), ("reset", Close::Reset)] },
    "\"fin\"",
    "how `from` closes; `reset` (SO_LINGER with a timeout of 0) aborts once the stack has accepted \
     the last byte and discards unsent data",
);
static KEEPALIVE: Key<KeepaliveType> = Key::optional(
    "keepalive",
    KeepaliveType,
    "false",
    "both applications enable keepalive probes (SO_KEEPALIVE); a table overrides the host's timers",
);

table! {
    /// A connection.
    pub FlowTable: SECTION = "a flow" {
        name: String = NAME,
        from: String = FROM,
        to: String = TO,
        path: String = PATH,
        start: Duration = START,
        bulk: TransferSize = BULK,
        write: Bytes = WRITE,
        paced: Box<PacedTable> = PACED,
        on_off: Box<OnOffTable> = ON_OFF,
        requests: Box<RequestsTable> = REQUESTS,
        exchange: Box<ExchangeTable> = EXCHANGE,
        transfer: Box<TransferTable> = TRANSFER,
        video: Box<VideoTable> = VIDEO,
        page: Box<PageTable> = PAGE,
        udp: Box<UdpTable> = UDP,
        ping: Box<PingTable> = PING,
        count: u64 = COUNT,
        arrivals: Box<ArrivalsTable> = ARRIVALS,
        reads: Box<ReadsTable> = READS,
        close: Close = CLOSE,
        keepalive: Option<KeepaliveSpec> = KEEPALIVE,
        ip: IpVersion = IP,
        nodelay: bool = NODELAY,
    }
    one_of: &[
        "bulk", "paced", "on_off", "requests", "exchange", "transfer", "video", "page", "udp", "ping",
    ],
    elsewhere: |key| match key {
        "cc" | "profile" | "knobs" | "mtu" | "lro" | "gro" | "tso" => {
            Some("this belongs to a host: [host.NAME]")
        }
        "bytes" | "size" => Some("write bulk = \"1MB\""),
        "ladder" | "rule" => Some("write video = { ladder = [\"1Mbit/s\", \"3Mbit/s\"] }"),
        "html" | "objects" => Some("write page = { html = \"30kB\", objects = 20 }"),
        "request" | "response" | "think" => {
            Some("write requests = { request = \"200B\", response = \"64KiB\" }")
        }
        "steps" | "opening" => Some("write exchange = { steps = [{ client = \"1kB\" }] }"),
        "on" | "off" => Some("write on_off = { on = \"100kB\", off = \"1s\" }"),
        "linger" | "so_linger" | "reset" => Some("write close = \"reset\" for a linger of zero"),
        "chunk" | "every" => {
            Some("write paced = { ... } for the writer, reads = { ... } for the reader")
        }
        "duration" | "stop" => Some("`duration` belongs at the top of the file"),
        _ => None,
    },
    check: |fields, reader| {
        let is_udp = fields.has(&UDP) || fields.has(&PING);
        let is_answered = [fields.has(&REQUESTS), fields.has(&EXCHANGE)].contains(&true)
            || fields.has(&VIDEO)
            || fields.has(&PAGE);
        if let Some(node) = fields.node(&READS).filter(|_| is_answered || is_udp) {
            let message = "`reads` goes with `bulk`, `paced` and `on_off`";
            reader.report(SpannedError::new(node.span, message));
        }
        let options = [
            ("close", fields.node(&CLOSE)),
            ("keepalive", fields.node(&KEEPALIVE)),
            ("nodelay", fields.node(&NODELAY)),
        ];
        for (name, node) in options.into_iter().filter(|_| is_udp) {
            if let Some(node) = node {
                let message = format!("`{name}` goes with connections, not with `udp` and `ping`");
                reader.report(SpannedError::new(node.span, message));
            }
        }
    },
}

/// IP version: 4 or 6.
struct IpVersionType;

impl KeyType for IpVersionType {
    fn schema(&self) -> Json {
        json!({ "enum": [4, 6] })
    }

    fn type_name(&self) -> String {
        "4 or 6".into()
    }
}

impl KeyCodec for IpVersionType {
    type Value = IpVersion;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<IpVersion> {
        match &node.value {
            TomlValue::Integer(digits) if digits == "4" => Some(IpVersion::V4),
            TomlValue::Integer(digits) if digits == "6" => Some(IpVersion::V6),
            _ => type_mismatch(key, node, "4 or 6", reader),
        }
    }

    fn write(&self, value: &IpVersion) -> toml_edit::Value {
        match value {
            IpVersion::V4 => 4.into(),
            IpVersion::V6 => 6.into(),
        }
    }
}

/// A parsed flow whose path is not resolved yet.
pub(super) struct ParsedFlow {
    pub(super) name: Option<Located<String>>,
    /// Indices of the writing and the reading host.
    pub(super) ends: Option<(usize, usize)>,
    /// Name of the path.
    pub(super) path: Option<Located<String>>,
    pub(super) start: Option<Located<Duration>>,
    pub(super) app: Option<App>,
    pub(super) ip: IpVersion,
    pub(super) nodelay: bool,
    pub(super) reads: Option<ReadPattern>,
    pub(super) close: Close,
    pub(super) keepalive: Option<KeepaliveSpec>,
    /// The connections that follow it.
    pub(super) replication: Option<Replication>,
    /// Position of the application, if it never stops writing.
    pub(super) endless: Option<TextSpan>,
    /// Position of the table.
    pub(super) span: TextSpan,
}

/// Reads a flow and resolves its hosts.
pub(super) fn flow(
    table: &Located<FlowTable>,
    hosts: &Hosts,
    reader: &mut ScenarioReader,
) -> ParsedFlow {
    let flow = &table.value;
    let ends = hosts.pair("a flow", table.span, [&flow.from, &flow.to], reader);
    let reads = flow.reads.as_ref().and_then(|reads| reads.value.reads(reader));
    if let (Some(write), None, None) = (&flow.write, &flow.bulk, &flow.transfer) {
        reader.report(SpannedError::new(write.span, "`write` goes with `bulk` and `transfer`"));
    }
    let write = flow.write.as_ref().and_then(|write| NonZeroU64::new(write.value.get()));
    let bulk = |bulk: &Located<TransferSize>| App::Bulk { bytes: bulk.value.bytes(), write };
    let (app, writes) = match flow {
        FlowTable { bulk: Some(table), .. } => (Some(bulk(table)), table.span),
        FlowTable { paced: Some(table), .. } => (table.value.app(), table.span),
        FlowTable { on_off: Some(table), .. } => (table.value.app(), table.span),
        FlowTable { requests: Some(table), .. } => (table.value.app(), table.span),
        FlowTable { exchange: Some(table), .. } => (table.value.app(reader), table.span),
        FlowTable { video: Some(table), .. } => (table.value.app(reader), table.span),
        FlowTable { page: Some(table), .. } => (table.value.app(reader), table.span),
        FlowTable { udp: Some(table), .. } => (table.value.app(), table.span),
        FlowTable { ping: Some(table), .. } => (Some(table.value.app()), table.span),
        // Every connection has a size of its own.
        FlowTable { transfer: Some(table), .. } => {
            (Some(App::Bulk { bytes: Some(Bytes(1)), write }), table.span)
        }
        _ => (None, table.span),
    };
    let endless = match &app {
        Some(App::Video(video)) if video.chunks.is_none() => Some(writes),
        Some(App::Page { page, .. }) if page.count.is_none() => Some(writes),
        Some(
            App::Bulk { bytes: None, .. }
            | App::Paced { bytes: None, .. }
            | App::OnOff { bytes: None, .. }
            | App::Requests { count: None, .. }
            | App::Datagrams(DatagramSpec { count: None, .. }),
        ) => Some(writes),
        _ => None,
    };
    let endless = endless.filter(|_| !apps::limit_was_invalid(reader));
    ParsedFlow {
        name: flow.name.clone(),
        ends,
        path: flow.path.clone(),
        start: flow.start,
        ip: flow.ip.map_or(IpVersion::V4, |ip| ip.value),
        nodelay: flow.nodelay.is_some_and(|nodelay| nodelay.value),
        reads,
        close: flow.close.map_or(Close::Fin, |close| close.value),
        keepalive: flow.keepalive.and_then(|keepalive| keepalive.value),
        replication: arrivals::replication(flow, app.as_ref(), reader),
        app,
        endless,
        span: table.span,
    }
}
