//! What the applications of a flow do: `paced`, `on_off`, `requests`; how they read and what else
//! they ask of the stack: `reads`, `keepalive`.

use serde_json::{Value as Json, json};
use sim::scenario::{App, Burst, Keepalive, Pause, Reads};
use units::{Bytes, Duration};

use super::keys::{Fields, Key, Kind, Reader, Section, Shape};
use super::kinds::{Size, Span, Speed, Whole, quantity, wrong_kind};
use super::source::Fault;
use super::tree::{Node, Value};
use crate::units_text::{MAX_SIZE, Misread, duration, pattern, size};

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
pub(super) struct Volume;

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

/// Writes in bursts.
pub(super) static ON_OFF_SECTION: Section = Section {
    what: "`on_off`",
    keys: &[&ON, &OFF, &BYTES],
    one_of: &[],
    elsewhere: Section::NOT_ELSEWHERE,
};

static LEAST: Key<Span> =
    Key::required("least", Span { least: Duration::ZERO, usual: "s" }, "the shortest pause");
static MOST: Key<Span> = Key::required(
    "most",
    Span { least: Duration::from_micros(1), usual: "s" },
    "the longest pause",
);

/// A pause by chance.
pub(super) static PAUSE_SECTION: Section = Section {
    what: "`off`",
    keys: &[&LEAST, &MOST],
    one_of: &[],
    elsewhere: Section::NOT_ELSEWHERE,
};

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

/// Requests and responses.
pub(super) static REQUESTS_SECTION: Section = Section {
    what: "`requests`",
    keys: &[&REQUEST, &RESPONSE, &THINK, &COUNT],
    one_of: &[],
    elsewhere: Section::NOT_ELSEWHERE,
};

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

/// A slow reader.
pub(super) static READS_SECTION: Section = Section {
    what: "`reads`",
    keys: &[&READ_CHUNK, &READ_RATE, &READ_EVERY],
    one_of: &["chunk", "rate"],
    elsewhere: Section::NOT_ELSEWHERE,
};

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

/// Keepalive with values of its own.
pub(super) static KEEPALIVE_SECTION: Section = Section {
    what: "`keepalive`",
    keys: &[&IDLE, &INTERVAL, &PROBES],
    one_of: &[],
    elsewhere: |key| match key {
        "time" | "keepidle" => Some("the silence before the first probe is called `idle`"),
        "intvl" | "keepintvl" | "every" => Some("the time between probes is called `interval`"),
        "probes" | "cnt" | "keepcnt" => Some("the number of probes is called `count`"),
        _ => None,
    },
};

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
                let fields = Fields::open(&KEEPALIVE_SECTION, node, reader)?;
                let idle = fields.get(&IDLE, reader).map(|span| span.value);
                let interval = fields.get(&INTERVAL, reader).map(|span| span.value);
                let count = fields.get(&PROBES, reader).map(|count| count.value as u32);
                Some(Some(Keepalive { idle, interval, count }))
            }
            _ => wrong_kind(key, node, "`true`, `false` or { idle = \"2h\" }", reader),
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
        let fields = Fields::open(&PAUSE_SECTION, node, reader)?;
        let (least, most) = (fields.get(&LEAST, reader)?, fields.get(&MOST, reader)?);
        if most.value < least.value {
            let fault = Fault::new(most.place, "the longest pause is shorter than the shortest");
            reader.report(fault.expected(format!("at least {}", least.value)));
            return None;
        }
        Some(Pause::Between { least: least.value, most: most.value })
    }
}

/// Reads `paced`.
pub(super) fn paced(node: &Node, reader: &mut Reader) -> Option<App> {
    let fields = Fields::open(&PACED_SECTION, node, reader)?;
    let chunk = fields.get(&CHUNK, reader);
    let every = fields.get(&EVERY, reader);
    let bytes = bytes(&fields, reader);
    Some(App::Paced { chunk: chunk?.value, every: every?.value, bytes: bytes? })
}

/// Reads `on_off`.
pub(super) fn on_off(node: &Node, reader: &mut Reader) -> Option<App> {
    let fields = Fields::open(&ON_OFF_SECTION, node, reader)?;
    let (on, off) = (fields.get(&ON, reader), fields.get(&OFF, reader));
    let bytes = bytes(&fields, reader);
    Some(App::OnOff { on: on?.value, off: off?.value, bytes: bytes? })
}

/// Reads `requests`.
pub(super) fn requests(node: &Node, reader: &mut Reader) -> Option<App> {
    let fields = Fields::open(&REQUESTS_SECTION, node, reader)?;
    let (request, response) = (fields.get(&REQUEST, reader), fields.get(&RESPONSE, reader));
    let think = match fields.has(&THINK) {
        true => fields.get(&THINK, reader).map(|think| think.value),
        false => Some(Duration::ZERO),
    };
    let count = match fields.has(&COUNT) {
        true => fields.get(&COUNT, reader).map(|count| Some(count.value)),
        false => Some(None),
    };
    let (request, response) = (request?.value, response?.value);
    Some(App::Requests { request, response, think: think?, count: count? })
}

/// Reads `reads`.
pub(super) fn reads(node: &Node, reader: &mut Reader) -> Option<Reads> {
    let fields = Fields::open(&READS_SECTION, node, reader)?;
    let every = match fields.has(&READ_EVERY) {
        true => fields.get(&READ_EVERY, reader)?.value,
        false if fields.has(&READ_CHUNK) => {
            let fault = Fault::new(fields.place, "`chunk` needs `every`");
            reader.report(fault.hint("from one read to the next: every = \"20ms\"".to_owned()));
            return None;
        }
        false => Duration::from_millis(10),
    };
    if let Some(chunk) = fields.get(&READ_CHUNK, reader) {
        return Some(Reads { chunk: chunk.value, every });
    }
    let rate = fields.get(&READ_RATE, reader)?;
    let chunk = rate.value.bytes_in(every);
    if chunk == Bytes::ZERO {
        let fault = Fault::new(rate.place, format!("this gives no whole byte in {every}"));
        reader.report(fault.hint("take a longer `every`".to_owned()));
        return None;
    }
    Some(Reads { chunk, every })
}

/// Bytes in all; the outer `None` if they are wrong.
fn bytes(fields: &Fields<'_>, reader: &mut Reader) -> Option<Option<Bytes>> {
    match fields.has(&BYTES) {
        true => fields.get(&BYTES, reader).map(|bytes| bytes.value),
        false => Some(None),
    }
}
