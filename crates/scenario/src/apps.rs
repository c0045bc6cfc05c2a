//! What the applications of a flow do: `paced`, `on_off`, `requests`; how they read and what else
//! they ask of the stack: `reads`, `keepalive`.

use serde_json::{Value as Json, json};
use sim::scenario::{App, Burst, Keepalive, Pause, Reads};
use units::{Bytes, Duration, Rate};

use super::keys::{Key, Kind, Located, Reader, Shape};
use super::kinds::{Size, Span, Speed, Sub, Whole, quantity, wrong_kind};
use super::source::Fault;
use super::table::{Table as _, table};
use super::tree::{Node, Value};
use crate::units_text::{MAX_SIZE, Misread, duration, duration_text, pattern, size, size_text};

static CHUNK: Key<Size> =
    Key::required("chunk", Size { least: Bytes(1), most: MAX_SIZE }, "bytes of one write");
static EVERY: Key<Span> = Key::required(
    "every",
    Span { least: Duration::from_micros(1), usual: "ms" },
    "from one write to the next",
);
static BYTES: Key<AnyVolume> = Key::optional("bytes", AnyVolume, "unlimited", "bytes in all");

table! {
    /// Writes at fixed intervals.
    pub PacedTable: PACED_SECTION = "`paced`" {
        chunk: Bytes = CHUNK,
        every: Duration = EVERY,
        bytes: Volume = BYTES,
    }
}

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// This much.
    Bytes(Bytes),
    /// As much as goes until the run ends.
    Unlimited,
}

impl Volume {
    /// As the engine has it.
    pub(super) const fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Unlimited => None,
        }
    }
}

/// How much is written: a size, or `"unlimited"`.
pub(super) struct AnyVolume;

const UNLIMITED: &str = "unlimited";

impl Shape for AnyVolume {
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

impl Kind for AnyVolume {
    type Value = Volume;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Volume> {
        if node.value == Value::Text(UNLIMITED.to_owned()) {
            return Some(Volume::Unlimited);
        }
        quantity(key, node, |text| size(text).map(Volume::Bytes), "B", reader)
    }

    fn write(&self, value: &Volume) -> toml_edit::Value {
        match value {
            Volume::Bytes(bytes) => size_text(*bytes).into(),
            Volume::Unlimited => UNLIMITED.into(),
        }
    }
}

static ON: Key<BurstLength> = Key::required(
    "on",
    BurstLength,
    "a burst: so many bytes, or for so long; within it, as fast as the stack takes it",
);
static OFF: Key<PauseLength> = Key::required(
    "off",
    PauseLength,
    "from the end of a burst to the next; a table `{ least, most }` draws each pause, uniformly",
);

table! {
    /// Writes in bursts.
    pub OnOffTable: ON_OFF_SECTION = "`on_off`" {
        on: Burst = ON,
        off: Pause = OFF,
        bytes: Volume = BYTES,
    }
}

static LEAST: Key<Span> =
    Key::required("least", Span { least: Duration::ZERO, usual: "s" }, "the shortest pause");
static MOST: Key<Span> = Key::required(
    "most",
    Span { least: Duration::from_micros(1), usual: "s" },
    "the longest pause",
);

table! {
    /// A pause drawn at random.
    PauseTable: PAUSE_SECTION = "`off`" {
        least: Duration = LEAST,
        most: Duration = MOST,
    }
}

const MESSAGE: Size = Size { least: Bytes(1), most: MAX_SIZE };

static REQUEST: Key<Size> = Key::required("request", MESSAGE, "bytes of a request");
static RESPONSE: Key<Size> = Key::required("response", MESSAGE, "bytes of its response");
static THINK: Key<Span> = Key::optional(
    "think",
    Span { least: Duration::ZERO, usual: "ms" },
    "0s",
    "from the last byte of a response to the next request",
);
static COUNT: Key<Whole> = Key::optional(
    "count",
    Whole { least: 1, most: 1_000_000_000 },
    "until the run ends",
    "requests in all",
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

static READ_CHUNK: Key<Size> = Key::optional(
    "chunk",
    Size { least: Bytes(1), most: MAX_SIZE },
    "",
    "bytes of one read at most",
);
static READ_RATE: Key<Speed> = Key::optional(
    "rate",
    Speed,
    "",
    "what is read on average: each time as much as this gives in `every`, in whole bytes",
);
static READ_EVERY: Key<Span> = Key::optional(
    "every",
    Span { least: Duration::from_micros(1), usual: "ms" },
    "10ms",
    "from one read to the next; where there is nothing to read, it waits for some",
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
            let fault = Fault::new(fields.place, "`chunk` needs `every`");
            reader.report(fault.hint("from one read to the next: every = \"20ms\"".to_owned()));
        }
    },
}

const SILENCE: Span = Span { least: Duration::from_millis(1), usual: "s" };

static IDLE: Key<Span> = Key::optional(
    "idle",
    SILENCE,
    "the host's own",
    "silence after which the first probe goes (TCP_KEEPIDLE)",
);
static INTERVAL: Key<Span> = Key::optional(
    "interval",
    SILENCE,
    "the host's own",
    "from one probe to the next (TCP_KEEPINTVL)",
);
static PROBES: Key<Whole> = Key::optional(
    "count",
    Whole { least: 1, most: 127 },
    "the host's own",
    "probes without an answer after which the connection is given up (TCP_KEEPCNT)",
);

table! {
    /// Keepalive with values of its own.
    KeepaliveTable: KEEPALIVE_SECTION = "`keepalive`" {
        idle: Duration = IDLE,
        interval: Duration = INTERVAL,
        count: u64 = PROBES,
    }
    elsewhere: |key| match key {
        "time" | "keepidle" => Some("the silence before the first probe is called `idle`"),
        "intvl" | "keepintvl" | "every" => Some("the time between probes is called `interval`"),
        "probes" | "cnt" | "keepcnt" => Some("the number of probes is called `count`"),
        _ => None,
    },
}

/// Keepalive: a switch, or a table.
pub(super) struct Probing;

impl Shape for Probing {
    fn schema(&self) -> Json {
        json!({ "anyOf": [{ "type": "boolean" }, KEEPALIVE_SECTION.schema()] })
    }

    fn takes(&self) -> String {
        "`true`, `false` or a table".into()
    }
}

impl Kind for Probing {
    type Value = Option<Keepalive>;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Self::Value> {
        match node.value {
            Value::Switch(on) => Some(on.then(Keepalive::default)),
            Value::Table(_) => {
                let tables = Sub::<KeepaliveTable>::of(&KEEPALIVE_SECTION);
                let KeepaliveTable { idle, interval, count } = tables.table(node, reader)?;
                Some(Some(Keepalive {
                    idle: idle.map(|span| span.value),
                    interval: interval.map(|span| span.value),
                    count: count.map(|count| count.value as u32),
                }))
            }
            _ => wrong_kind(key, node, "`true`, `false` or { idle = \"2h\" }", reader),
        }
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        match *value {
            None => false.into(),
            Some(own) if own == Keepalive::default() => true.into(),
            Some(Keepalive { idle, interval, count }) => {
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

/// How long a burst lasts: a size or a duration.
struct BurstLength;

impl Shape for BurstLength {
    fn schema(&self) -> Json {
        json!({ "anyOf": [
            { "type": "string", "pattern": pattern::SIZE },
            { "type": "string", "pattern": pattern::DURATION },
        ] })
    }

    fn takes(&self) -> String {
        "size or duration".into()
    }
}

/// A size or a duration, told apart by the unit.
fn burst(text: &str) -> Result<Burst, Misread> {
    match (size(text), duration(text)) {
        (Ok(bytes), _) => Ok(Burst::Bytes(bytes)),
        (_, Ok(span)) => Ok(Burst::For(span)),
        (Err(misread), Err(_)) => Err(Misread {
            expected: "a size such as \"64KiB\" or a duration such as \"100ms\"".into(),
            ..misread
        }),
    }
}

impl Kind for BurstLength {
    type Value = Burst;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Burst> {
        let burst = quantity(key, node, burst, "kB", reader)?;
        if matches!(burst, Burst::Bytes(Bytes::ZERO))
            || matches!(burst, Burst::For(span) if span < Duration::from_micros(1))
        {
            let fault = Fault::new(node.place, format!("`{key}` is too short"));
            reader.report(fault.expected("at least 1 B or 1us").found(node.describe()));
            return None;
        }
        Some(burst)
    }

    fn write(&self, value: &Burst) -> toml_edit::Value {
        match value {
            Burst::Bytes(bytes) => size_text(*bytes).into(),
            Burst::For(span) => duration_text(*span).into(),
        }
    }
}

/// How long a pause lasts: always the same, or by chance.
struct PauseLength;

const FIXED: Span = Span { least: Duration::from_micros(1), usual: "s" };

impl Shape for PauseLength {
    fn schema(&self) -> Json {
        json!({ "anyOf": [FIXED.schema(), PAUSE_SECTION.schema()] })
    }

    fn takes(&self) -> String {
        "duration or a table".into()
    }
}

impl Kind for PauseLength {
    type Value = Pause;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Pause> {
        if !matches!(node.value, Value::Table(_)) {
            return FIXED.read(key, node, reader).map(Pause::Fixed);
        }
        let PauseTable { least, most } = Sub::of(&PAUSE_SECTION).table(node, reader)?;
        let (least, most) = (least?, most?);
        if most.value < least.value {
            let fault = Fault::new(most.place, "the longest pause is shorter than the shortest");
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
    /// `None` if a part is missing.
    pub(super) fn app(&self) -> Option<App> {
        let Self { chunk, every, bytes } = self;
        let (chunk, every) = (chunk.as_ref()?.value, every.as_ref()?.value);
        Some(App::Paced { chunk, every, bytes: limit(bytes.as_ref()) })
    }
}

impl OnOffTable {
    /// `None` if a part is missing.
    pub(super) fn app(&self) -> Option<App> {
        let Self { on, off, bytes } = self;
        let (on, off) = (on.as_ref()?.value, off.as_ref()?.value);
        Some(App::OnOff { on, off, bytes: limit(bytes.as_ref()) })
    }
}

impl RequestsTable {
    /// `None` if a part is missing.
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

impl ReadsTable {
    /// As the engine has it; a rate too low for `every` is reported.
    pub(super) fn reads(&self, reader: &mut Reader) -> Option<Reads> {
        let every = self.every.as_ref().map_or(Duration::from_millis(10), |every| every.value);
        if let Some(chunk) = &self.chunk {
            return Some(Reads { chunk: chunk.value, every });
        }
        let rate = self.rate.as_ref()?;
        let chunk = rate.value.bytes_in(every);
        if chunk == Bytes::ZERO {
            let message = format!("this gives no whole byte in {every}");
            let fault = Fault::new(rate.place, message);
            reader.report(fault.hint("take a longer `every`".to_owned()));
            return None;
        }
        Some(Reads { chunk, every })
    }
}

/// Was a limit of an application written that is none?
pub(super) fn misread_limit(reader: &Reader) -> bool {
    reader.has_misread(&BYTES) || reader.has_misread(&COUNT)
}

/// Bytes in all; `None` without a limit.
fn limit(bytes: Option<&Located<Volume>>) -> Option<Bytes> {
    bytes.and_then(|bytes| bytes.value.bytes())
}
