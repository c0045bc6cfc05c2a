//! `exchange` of a flow: what the two applications write, step by step.

use std::sync::Arc;

use sim::scenario::{App, ExchangeSide, ExchangeSpec, ExchangeStep};
use units::{Bytes, Duration};

use super::apps::{READS_SECTION, ReadsTable};
use super::keys::{Key, Located, ScenarioReader};
use super::kinds::{DurationType, IntegerType, SizeType, TableListType, TableType};
use super::source::SpannedError;
use super::table::table;
use crate::units_text::MAX_SIZE;

const STEP_SIZE: SizeType = SizeType { least: Bytes(1), most: MAX_SIZE };

static CLIENT: Key<SizeType> = Key::optional("client", STEP_SIZE, "", "bytes that `from` writes");
static SERVER: Key<SizeType> = Key::optional("server", STEP_SIZE, "", "bytes that `to` writes");
static AFTER: Key<DurationType> = Key::optional(
    "after",
    DurationType { least: Duration::ZERO, default_unit: "ms" },
    "0s",
    "time from the end of the previous step, as the writer sees it: written if its own, read if the \
     peer's",
);
static WINDOW: Key<SizeType> = Key::optional(
    "window",
    STEP_SIZE,
    "no limit",
    "window of the application, as that of an HTTP/2 stream: bytes that are written beyond those for \
     which the reader has asked; it asks with 13 bytes after each half of the window",
);

table! {
    /// A step: one write of one side.
    pub ExchangeStepTable: STEP_SECTION = "a step" {
        client: Bytes = CLIENT,
        server: Bytes = SERVER,
        after: Duration = AFTER,
        window: Bytes = WINDOW,
    }
    one_of: &["client", "server"],
    elsewhere: |key| match key {
        "from" => Some("bytes that the connecting host writes are called `client`"),
        "to" => Some("bytes that the listening host writes are called `server`"),
        "think" | "wait" | "delay" => Some("a wait before the step is called `after`"),
        _ => None,
    },
}

static OPENING: Key<TableListType<ExchangeStepTable>> = Key::optional(
    "opening",
    TableListType::some(&STEP_SECTION),
    "none",
    "steps taken once, ahead of `steps`: the handshake of TLS, for example",
);
static STEPS: Key<TableListType<ExchangeStepTable>> = Key::required(
    "steps",
    TableListType::some(&STEP_SECTION),
    "steps taken `count` times, each a write of one side once it has read all that precedes it",
);
static COUNT: Key<IntegerType> = Key::optional(
    "count",
    IntegerType { least: 1, most: 1_000_000_000 },
    "1",
    "how often `steps` are taken",
);
static CLIENT_READS: Key<TableType<ReadsTable>> = Key::optional(
    "client_reads",
    TableType::of(&READS_SECTION),
    "all available data, immediately",
    "a slow reader at `from`",
);
static SERVER_READS: Key<TableType<ReadsTable>> = Key::optional(
    "server_reads",
    TableType::of(&READS_SECTION),
    "all available data, immediately",
    "a slow reader at `to`",
);

table! {
    /// What two applications write, step by step.
    pub ExchangeTable: EXCHANGE_SECTION = "`exchange`" {
        opening: Vec<Located<ExchangeStepTable>> = OPENING,
        steps: Vec<Located<ExchangeStepTable>> = STEPS,
        count: u64 = COUNT,
        client_reads: Box<ReadsTable> = CLIENT_READS,
        server_reads: Box<ReadsTable> = SERVER_READS,
    }
    elsewhere: |key| match key {
        "repeat" | "times" => Some("the number of repetitions is called `count`"),
        "reads" => Some("a slow reader is `client_reads` or `server_reads`"),
        _ => None,
    },
}

impl ExchangeStepTable {
    fn step(&self) -> Option<ExchangeStep> {
        let (by, bytes) = match (self.client, self.server) {
            (Some(bytes), _) => (ExchangeSide::Client, bytes.value),
            (None, Some(bytes)) => (ExchangeSide::Server, bytes.value),
            (None, None) => return None,
        };
        Some(ExchangeStep {
            by,
            bytes,
            after: self.after.map_or(Duration::ZERO, |after| after.value),
            window: self.window.map(|window| window.value),
        })
    }
}

impl ExchangeTable {
    /// Builds the application; `None` if a key is missing.
    pub(super) fn app(&self, reader: &mut ScenarioReader) -> Option<App> {
        let steps = |list: Option<&Located<Vec<Located<ExchangeStepTable>>>>| {
            let list = list.map_or(&[][..], |list| &list.value);
            list.iter().map(|step| step.value.step()).collect::<Option<Vec<_>>>()
        };
        let reads = [&self.client_reads, &self.server_reads]
            .map(|reads| reads.as_ref().map(|reads| reads.value.reads(reader)));
        if reads.contains(&Some(None)) {
            return None;
        }
        let spec = ExchangeSpec {
            opening: steps(self.opening.as_ref())?,
            steps: steps(Some(self.steps.as_ref()?))?,
            count: self.count.map_or(1, |count| count.value),
            reads: reads.map(Option::flatten),
        };
        let sides = [ExchangeSide::Client, ExchangeSide::Server];
        if sides.iter().any(|&side| spec.bytes(side) > MAX_SIZE) {
            let span = self.count.map_or(self.steps.as_ref()?.span, |count| count.span);
            let fault = SpannedError::new(span, "this exchange has too many bytes");
            reader.report(fault.expected("at most 1 EB in either direction"));
            return None;
        }
        Some(App::Exchange(Arc::new(spec)))
    }
}
