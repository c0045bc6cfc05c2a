//! Applications of a flow: writers (`paced`, `on_off`, `requests`), the reader (`reads`) and socket
//! options (`keepalive`).

use serde_json::{Value as Json, json};
use sim::scenario::{
    App, DatagramInterval, DatagramSpec, KeepaliveSpec, OnPeriod, Pause, ReadPattern,
};
use units::{Bytes, Duration, Rate};

use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader};
use super::kinds::{
    DurationType, IntegerType, RateType, SizeType, TableType, quantity, type_mismatch,
};
use super::page::PageTable;
use super::source::SpannedError;
use super::table::{KeyTable as _, table};
use super::tree::{TomlNode, TomlValue};
use super::video::VideoTable;
use crate::units_text::{
    MAX_SIZE, QuantityError, duration, duration_text, pattern, size, size_text,
};

static CHUNK: Key<SizeType> =
    Key::required("chunk", SizeType { least: Bytes(1), most: MAX_SIZE }, "bytes per write");
static EVERY: Key<DurationType> = Key::required(
    "every",
    DurationType { least: Duration::from_micros(1), default_unit: "ms" },
    "interval between writes",
);
static BYTES: Key<TransferSizeType> =
    Key::optional("bytes", TransferSizeType, "unlimited", "total bytes");

table! {
    /// Writes at fixed intervals.
    pub PacedTable: PACED_SECTION = "`paced`" {
        chunk: Bytes = CHUNK,
        every: Duration = EVERY,
        bytes: TransferSize = BYTES,
    }
}

/// Number of bytes that a flow writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferSize {
    /// A fixed number of bytes.
    Bytes(Bytes),
    /// No limit: writes until the run ends.
    Unlimited,
}

impl TransferSize {
    /// Converts to the simulator's limit; `None` if unlimited.
    pub(super) const fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Unlimited => None,
        }
    }
}

/// A size or `"unlimited"`.
pub(super) struct TransferSizeType;

const UNLIMITED: &str = "unlimited";

impl KeyType for TransferSizeType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [
            { "const": UNLIMITED },
            { "type": "string", "pattern": pattern::SIZE },
        ] })
    }

    fn type_name(&self) -> String {
        "size or `\"unlimited\"`".into()
    }
}

impl KeyCodec for TransferSizeType {
    type Value = TransferSize;

    fn read(
        &self,
        key: &str,
        node: &TomlNode,
        reader: &mut ScenarioReader,
    ) -> Option<TransferSize> {
        if node.value == TomlValue::Text(UNLIMITED.to_owned()) {
            return Some(TransferSize::Unlimited);
        }
        quantity(key, node, |text| size(text).map(TransferSize::Bytes), "B", reader)
    }

    fn write(&self, value: &TransferSize) -> toml_edit::Value {
        match value {
            TransferSize::Bytes(bytes) => size_text(*bytes).into(),
            TransferSize::Unlimited => UNLIMITED.into(),
        }
    }
}

static ON: Key<BurstLengthType> = Key::required(
    "on",
    BurstLengthType,
    "length of a burst, in bytes or time; it is written as fast as the stack accepts it",
);
static OFF: Key<PauseLengthType> = Key::required(
    "off",
    PauseLengthType,
    "pause between bursts; a table `{ least, most }` draws each pause uniformly",
);

table! {
    /// Writes in bursts.
    pub OnOffTable: ON_OFF_SECTION = "`on_off`" {
        on: OnPeriod = ON,
        off: Pause = OFF,
        bytes: TransferSize = BYTES,
    }
}

static LEAST: Key<DurationType> = Key::required(
    "least",
    DurationType { least: Duration::ZERO, default_unit: "s" },
    "shortest pause",
);
static MOST: Key<DurationType> = Key::required(
    "most",
    DurationType { least: Duration::from_micros(1), default_unit: "s" },
    "longest pause",
);

table! {
    /// A pause drawn at random.
    PauseTable: PAUSE_SECTION = "`off`" {
        least: Duration = LEAST,
        most: Duration = MOST,
    }
}

const MESSAGE: SizeType = SizeType { least: Bytes(1), most: MAX_SIZE };

static REQUEST: Key<SizeType> = Key::required("request", MESSAGE, "bytes of a request");
static RESPONSE: Key<SizeType> = Key::required("response", MESSAGE, "bytes of a response");
static THINK: Key<DurationType> = Key::optional(
    "think",
    DurationType { least: Duration::ZERO, default_unit: "ms" },
    "0s",
    "think time between the last byte of a response and the next request",
);
static COUNT: Key<IntegerType> = Key::optional(
    "count",
    IntegerType { least: 1, most: 1_000_000_000 },
    "until the run ends",
    "number of requests",
);

table! {
    /// Requests and responses.
    pub RequestsTable: REQUESTS_SECTION = "`requests`" {
        request: Bytes = REQUEST,
        response: Bytes = RESPONSE,
        think: Duration = THINK,
        count: u64 = COUNT,
    }
}

/// Largest payload of a datagram in a jumbo frame of 9000 bytes.
const MOST_PAYLOAD: Bytes = Bytes(8_972);
const DATAGRAM_INTERVAL: DurationType =
    DurationType { least: Duration::from_nanos(1), default_unit: "ms" };

static UDP_SIZE: Key<SizeType> = Key::required(
    "size",
    SizeType { least: Bytes(1), most: MOST_PAYLOAD },
    "payload of a datagram",
);
static UDP_EVERY: Key<DurationType> =
    Key::optional("every", DATAGRAM_INTERVAL, "", "interval between datagrams");
static UDP_RATE: Key<RateType> =
    Key::optional("rate", RateType, "", "constant bit rate, in bytes of payload");
static UDP_POISSON: Key<DurationType> = Key::optional(
    "poisson",
    DATAGRAM_INTERVAL,
    "",
    "mean of exponentially distributed intervals: a Poisson process",
);
static UDP_COUNT: Key<IntegerType> = Key::optional(
    "count",
    IntegerType { least: 1, most: 1_000_000_000 },
    "until the run ends",
    "number of datagrams",
);

table! {
    /// A UDP source.
    pub UdpTable: UDP_SECTION = "`udp`" {
        size: Bytes = UDP_SIZE,
        every: Duration = UDP_EVERY,
        rate: Rate = UDP_RATE,
        poisson: Duration = UDP_POISSON,
        count: u64 = UDP_COUNT,
    }
    one_of: &["every", "rate", "poisson"],
}

static PING_SIZE: Key<SizeType> = Key::optional(
    "size",
    SizeType { least: Bytes(1), most: MOST_PAYLOAD },
    "56B",
    "payload of a request and of its reply",
);
static PING_EVERY: Key<DurationType> =
    Key::optional("every", DATAGRAM_INTERVAL, "1s", "interval between requests");
static PING_COUNT: Key<IntegerType> = Key::optional(
    "count",
    IntegerType { least: 1, most: 1_000_000_000 },
    "until the run ends",
    "number of requests",
);

table! {
    /// Echo requests.
    pub PingTable: PING_SECTION = "`ping`" {
        size: Bytes = PING_SIZE,
        every: Duration = PING_EVERY,
        count: u64 = PING_COUNT,
    }
}

static READ_CHUNK: Key<SizeType> = Key::optional(
    "chunk",
    SizeType { least: Bytes(1), most: MAX_SIZE },
    "",
    "maximum bytes per read",
);
static READ_RATE: Key<RateType> = Key::optional(
    "rate",
    RateType,
    "",
    "average read rate: each read takes at most the whole bytes of one `every` interval",
);
static READ_EVERY: Key<DurationType> = Key::optional(
    "every",
    DurationType { least: Duration::from_micros(1), default_unit: "ms" },
    "10ms",
    "interval between reads; without data, the next read waits for some",
);

table! {
    /// A slow reader.
    pub ReadsTable: READS_SECTION = "`reads`" {
        chunk: Bytes = READ_CHUNK,
        rate: Rate = READ_RATE,
        every: Duration = READ_EVERY,
    }
    one_of: &["chunk", "rate"],
    check: |fields, reader| {
        if fields.has(&READ_CHUNK) && !fields.has(&READ_EVERY) {
            let fault = SpannedError::new(fields.span, "`chunk` needs `every`");
            reader.report(fault.hint("the interval between reads: every = \"20ms\"".to_owned()));
        }
    },
}

const SILENCE: DurationType = DurationType { least: Duration::from_millis(1), default_unit: "s" };

static IDLE: Key<DurationType> = Key::optional(
    "idle",
    SILENCE,
    "the host's value",
    "idle time before the first probe (TCP_KEEPIDLE)",
);
static INTERVAL: Key<DurationType> = Key::optional(
    "interval",
    SILENCE,
    "the host's value",
    "interval between probes (TCP_KEEPINTVL)",
);
static PROBES: Key<IntegerType> = Key::optional(
    "count",
    IntegerType { least: 1, most: 127 },
    "the host's value",
    "unanswered probes before the connection is dropped (TCP_KEEPCNT)",
);

table! {
    /// Keepalive timers of a flow.
    KeepaliveTable: KEEPALIVE_SECTION = "`keepalive`" {
        idle: Duration = IDLE,
        interval: Duration = INTERVAL,
        count: u64 = PROBES,
    }
    elsewhere: |key| match key {
        "time" | "keepidle" => Some("the time before the first probe is called `idle`"),
        "intvl" | "keepintvl" | "every" => Some("the time between probes is called `interval`"),
        "probes" | "cnt" | "keepcnt" => Some("the number of probes is called `count`"),
        _ => None,
    },
}

/// Keepalive: a Boolean or a table.
pub(super) struct KeepaliveType;

impl KeyType for KeepaliveType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "type": "boolean" }, KEEPALIVE_SECTION.schema()] })
    }

    fn type_name(&self) -> String {
        "switch or table".into()
    }
}

impl KeyCodec for KeepaliveType {
    type Value = Option<KeepaliveSpec>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        match node.value {
            TomlValue::Switch(on) => Some(on.then(KeepaliveSpec::default)),
            TomlValue::Table(_) => {
                let tables = TableType::<KeepaliveTable>::of(&KEEPALIVE_SECTION);
                let KeepaliveTable { idle, interval, count } = tables.table(node, reader)?;
                Some(Some(KeepaliveSpec {
                    idle: idle.map(|span| span.value),
                    interval: interval.map(|span| span.value),
                    count: count.map(|count| count.value as u32),
                }))
            }
            _ => type_mismatch(key, node, "`true`, `false` or { idle = \"2h\" }", reader),
        }
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        match *value {
            None => false.into(),
            Some(own) if own == KeepaliveSpec::default() => true.into(),
            Some(KeepaliveSpec { idle, interval, count }) => {
                let table = KeepaliveTable {
                    idle: idle.map(Located::from),
                    interval: interval.map(Located::from),
                    count: count.map(|count| u64::from(count).into()),
                };
                table.write().into()
            }
        }
    }
}

/// Length of a burst: a size or a duration.
struct BurstLengthType;

impl KeyType for BurstLengthType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [
            { "type": "string", "pattern": pattern::SIZE },
            { "type": "string", "pattern": pattern::DURATION },
        ] })
    }

    fn type_name(&self) -> String {
        "size or duration".into()
    }
}

/// Parses a size or a duration, distinguished by the unit.
fn burst(text: &str) -> Result<OnPeriod, QuantityError> {
    match (size(text), duration(text)) {
        (Ok(bytes), _) => Ok(OnPeriod::Bytes(bytes)),
        (_, Ok(span)) => Ok(OnPeriod::For(span)),
        (Err(misread), Err(_)) => Err(QuantityError {
            expected: "a size such as \"64KiB\" or a duration such as \"100ms\"".into(),
            ..misread
        }),
    }
}

impl KeyCodec for BurstLengthType {
    type Value = OnPeriod;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<OnPeriod> {
        let burst = quantity(key, node, burst, "kB", reader)?;
        if matches!(burst, OnPeriod::Bytes(Bytes::ZERO))
            || matches!(burst, OnPeriod::For(span) if span < Duration::from_micros(1))
        {
            let fault = SpannedError::new(node.span, format!("`{key}` is too short"));
            reader.report(fault.expected("at least 1 B or 1us").found(node.describe()));
            return None;
        }
        Some(burst)
    }

    fn write(&self, value: &OnPeriod) -> toml_edit::Value {
        match value {
            OnPeriod::Bytes(bytes) => size_text(*bytes).into(),
            OnPeriod::For(span) => duration_text(*span).into(),
        }
    }
}

/// Length of a pause: fixed or random.
struct PauseLengthType;

const FIXED: DurationType = DurationType { least: Duration::from_micros(1), default_unit: "s" };

impl KeyType for PauseLengthType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [FIXED.schema(), PAUSE_SECTION.schema()] })
    }

    fn type_name(&self) -> String {
        "duration or a table".into()
    }
}

impl KeyCodec for PauseLengthType {
    type Value = Pause;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Pause> {
        if !matches!(node.value, TomlValue::Table(_)) {
            return FIXED.read(key, node, reader).map(Pause::Fixed);
        }
        let PauseTable { least, most } = TableType::of(&PAUSE_SECTION).table(node, reader)?;
        let (least, most) = (least?, most?);
        if most.value < least.value {
            let fault =
                SpannedError::new(most.span, "the longest pause is shorter than the shortest");
            reader.report(fault.expected(format!("at least {}", least.value)));
            return None;
        }
        Some(Pause::Between { least: least.value, most: most.value })
    }

    fn write(&self, value: &Pause) -> toml_edit::Value {
        match *value {
            Pause::Fixed(span) => FIXED.write(&span),
            Pause::Between { least, most } => {
                PauseTable { least: Some(least.into()), most: Some(most.into()) }.write().into()
            }
        }
    }
}

impl PacedTable {
    /// Builds the application; `None` if a key is missing.
    pub(super) fn app(&self) -> Option<App> {
        let Self { chunk, every, bytes } = self;
        let (chunk, every) = (chunk.as_ref()?.value, every.as_ref()?.value);
        Some(App::Paced { chunk, every, bytes: limit(bytes.as_ref()), blocking: true })
    }
}

impl OnOffTable {
    /// Builds the application; `None` if a key is missing.
    pub(super) fn app(&self) -> Option<App> {
        let Self { on, off, bytes } = self;
        let (on, off) = (on.as_ref()?.value, off.as_ref()?.value);
        Some(App::OnOff { on, off, bytes: limit(bytes.as_ref()) })
    }
}

impl RequestsTable {
    /// Builds the application; `None` if a key is missing.
    pub(super) fn app(&self) -> Option<App> {
        let Self { request, response, think, count } = self;
        Some(App::Requests {
            request: request.as_ref()?.value,
            response: response.as_ref()?.value,
            think: think.as_ref().map_or(Duration::ZERO, |think| think.value),
            count: count.as_ref().map(|count| count.value),
        })
    }
}

impl UdpTable {
    /// Builds the application; `None` if a key is missing.
    pub(super) fn app(&self) -> Option<App> {
        let size = self.size.as_ref()?.value;
        let bits = u128::from(size.get()) * 8 * 1_000_000_000;
        let nanos = |rate: Rate| (bits / u128::from(rate.bits_per_second())) as u64;
        let interval = match (&self.every, &self.rate, &self.poisson) {
            (Some(every), ..) => DatagramInterval::Fixed(every.value),
            (_, Some(rate), _) => {
                DatagramInterval::Fixed(Duration::from_nanos(nanos(rate.value).max(1)))
            }
            (.., Some(mean)) => DatagramInterval::Poisson(mean.value),
            _ => return None,
        };
        let count = self.count.as_ref().map(|count| count.value);
        Some(App::Datagrams(DatagramSpec { size, interval, count, echo: false }))
    }
}

impl PingTable {
    /// Builds the application.
    pub(super) fn app(&self) -> App {
        let every = self.every.as_ref().map_or(Duration::from_secs(1), |every| every.value);
        App::Datagrams(DatagramSpec {
            size: self.size.as_ref().map_or(Bytes(56), |size| size.value),
            interval: DatagramInterval::Fixed(every),
            count: self.count.as_ref().map(|count| count.value),
            echo: true,
        })
    }
}

impl ReadsTable {
    /// Converts to the simulator's reader; reports a rate below one byte per `every`.
    pub(super) fn reads(&self, reader: &mut ScenarioReader) -> Option<ReadPattern> {
        let every = self.every.as_ref().map_or(Duration::from_millis(10), |every| every.value);
        if let Some(chunk) = &self.chunk {
            return Some(ReadPattern { chunk: chunk.value, every });
        }
        let rate = self.rate.as_ref()?;
        let chunk = rate.value.bytes_in(every);
        if chunk == Bytes::ZERO {
            let message = format!("this rate is less than one byte per {every}");
            let fault = SpannedError::new(rate.span, message);
            reader.report(fault.hint("use a longer `every`".to_owned()));
            return None;
        }
        Some(ReadPattern { chunk, every })
    }
}

/// Returns whether a limit of an application had an invalid value.
pub(super) fn limit_was_invalid(reader: &ScenarioReader) -> bool {
    reader.was_invalid(&BYTES)
        || reader.was_invalid(&COUNT)
        || VideoTable::limit_was_invalid(reader)
        || PageTable::limit_was_invalid(reader)
}

/// Returns the total bytes; `None` without a limit.
fn limit(bytes: Option<&Located<TransferSize>>) -> Option<Bytes> {
    bytes.and_then(|bytes| bytes.value.bytes())
}
