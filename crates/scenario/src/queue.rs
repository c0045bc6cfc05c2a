//! `queue` of a link: a discipline by its name, or with settings of its own.

use net::queue::{Policy, codel, fq_codel, pie, red};
use serde_json::{Value as Json, json};
use toml_edit::InlineTable;
use units::{Bytes, Duration, Ratio};

use super::chance::Share;
use super::keys::{Key, Kind, Located, Reader, Shape};
use super::kinds::{OneOf, Size, Span, Sub, Switch, Whole, themselves, wrong_kind};
use super::source::Fault;
use super::table::{Table as _, table};
use super::tree::{Node, Value};

/// Times of a discipline are never nothing.
const TIME: Span = Span { least: Duration::from_nanos(1), usual: "ms" };

static CODEL: Key<Sub<CodelTable>> =
    Key::optional("codel", Sub::of(&CODEL_SECTION), "", "controlled delay (RFC 8289)");
static FQ_CODEL: Key<Sub<FqCodelTable>> = Key::optional(
    "fq_codel",
    Sub::of(&FQ_CODEL_SECTION),
    "",
    "a queue with CoDel for each of many buckets of flows, which take turns (RFC 8290)",
);
static PIE: Key<Sub<PieTable>> =
    Key::optional("pie", Sub::of(&PIE_SECTION), "", "a controller of the delay (RFC 8033)");
static RED: Key<Sub<RedTable>> = Key::optional(
    "red",
    Sub::of(&RED_SECTION),
    "",
    "random early detection by the average length (Floyd and Jacobson 1993)",
);

table! {
    /// A discipline with settings.
    QueueTable: SECTION = "`queue`" {
        codel: Box<CodelTable> = CODEL,
        fq_codel: Box<FqCodelTable> = FQ_CODEL,
        pie: Box<PieTable> = PIE,
        red: Box<RedTable> = RED,
    }
    one_of: &["codel", "fq_codel", "pie", "red"],
    elsewhere: |key| match key {
        "drop-tail" | "fifo" | "droptail" => Some("write queue = \"drop-tail\""),
        "limit" | "buffer" => Some("the room of the queue is the link's `buffer`"),
        _ => None,
    },
}

static TARGET: Key<Span> =
    Key::optional("target", TIME, "5ms", "packets may wait so long for ever");
static INTERVAL: Key<Span> =
    Key::optional("interval", TIME, "100ms", "and longer for so long at a time");
static ECN: Key<Switch> = Key::optional(
    "ecn",
    Switch,
    "false",
    "packets of connections with ECN are marked in place of being lost",
);
static FQ_ECN: Key<Switch> = Key::optional(
    "ecn",
    Switch,
    "true",
    "packets of connections with ECN are marked in place of being lost",
);
static QUANTUM: Key<Size> = Key::optional(
    "quantum",
    Size { least: Bytes(1), most: Bytes(1 << 20) },
    "1514 B",
    "IP bytes that a queue may send in its turn",
);
static FLOWS: Key<Whole> = Key::optional(
    "flows",
    Whole { least: 1, most: 65_536 },
    "1024",
    "queues that connections, each way by itself, are hashed to",
);
static PIE_TARGET: Key<Span> =
    Key::optional("target", TIME, "15ms", "the delay that is aimed at (QDELAY_REF)");
static UPDATE: Key<Span> =
    Key::optional("update", TIME, "15ms", "from one look at the delay to the next (T_UPDATE)");
static BURST: Key<Span> = Key::optional(
    "burst",
    Span { least: Duration::ZERO, usual: "ms" },
    "150ms",
    "so long a burst passes after a time without a queue (MAX_BURST)",
);
static MIN: Key<Whole> = Key::optional(
    "min",
    Whole { least: 0, most: 1_000_000 },
    "5",
    "average packets in the queue from which on some are picked (min_th)",
);
static MAX: Key<Whole> = Key::optional(
    "max",
    Whole { least: 1, most: 1_000_000 },
    "15",
    "average packets at which the probability is `probability` (max_th)",
);
static PROBABILITY: Key<Share> =
    Key::optional("probability", Share, "10%", "largest probability between them (max_p)");
static WEIGHT: Key<Share> =
    Key::optional("weight", Share, "0.2%", "weight of the present length in the average (w_q)");
static GENTLE: Key<Switch> = Key::optional(
    "gentle",
    Switch,
    "true",
    "beyond `max` the probability rises on to 1 at twice as much; without, all are lost there",
);

/// Keys that belong to the link.
fn of_the_link(key: &str) -> Option<&'static str> {
    match key {
        "limit" | "buffer" => Some("the room of the queue is the link's `buffer`"),
        _ => None,
    }
}

table! {
    /// RFC 8289.
    pub CodelTable: CODEL_SECTION = "`codel`" {
        target: Duration = TARGET,
        interval: Duration = INTERVAL,
        ecn: bool = ECN,
    }
    elsewhere: of_the_link,
}

table! {
    /// RFC 8290.
    pub FqCodelTable: FQ_CODEL_SECTION = "`fq_codel`" {
        target: Duration = TARGET,
        interval: Duration = INTERVAL,
        ecn: bool = FQ_ECN,
        quantum: Bytes = QUANTUM,
        flows: u64 = FLOWS,
    }
    elsewhere: of_the_link,
}

table! {
    /// RFC 8033.
    pub PieTable: PIE_SECTION = "`pie`" {
        target: Duration = PIE_TARGET,
        update: Duration = UPDATE,
        burst: Duration = BURST,
        ecn: bool = ECN,
    }
    elsewhere: |key| match key {
        "tupdate" => Some("the time between two looks is called `update`"),
        key => of_the_link(key),
    },
}

table! {
    /// Floyd and Jacobson 1993.
    pub RedTable: RED_SECTION = "`red`" {
        min: u64 = MIN,
        max: u64 = MAX,
        probability: Ratio = PROBABILITY,
        weight: Ratio = WEIGHT,
        gentle: bool = GENTLE,
        ecn: bool = ECN,
    }
    elsewhere: |key| match key {
        "min_th" | "max_th" => Some("the thresholds are called `min` and `max`, in packets"),
        key => of_the_link(key),
    },
}

/// Which packets go, are marked or are lost before the queue is full.
#[derive(Debug, Clone, PartialEq)]
pub enum Discipline {
    /// None: what finds no room is lost.
    DropTail,
    /// `codel`.
    CoDel(CodelTable),
    /// `fq_codel`.
    FqCoDel(FqCodelTable),
    /// `pie`.
    Pie(PieTable),
    /// `red`.
    Red(RedTable),
}

/// Names of disciplines with the settings of their RFCs.
const NAMES: OneOf = OneOf { names: &themselves(["drop-tail", "codel", "fq_codel", "pie", "red"]) };

/// A discipline: its name, or a table.
pub(super) struct AnyDiscipline;

impl Shape for AnyDiscipline {
    fn schema(&self) -> Json {
        json!({ "anyOf": [NAMES.schema(), SECTION.schema()] })
    }

    fn takes(&self) -> String {
        format!("{} or a table", NAMES.takes())
    }
}

impl Kind for AnyDiscipline {
    type Value = Discipline;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Discipline> {
        match &node.value {
            Value::Text(_) => NAMES.read(key, node, reader).map(|name| match name {
                "codel" => Discipline::CoDel(CodelTable::default()),
                "fq_codel" => Discipline::FqCoDel(FqCodelTable::default()),
                "pie" => Discipline::Pie(PieTable::default()),
                "red" => Discipline::Red(RedTable::default()),
                _ => Discipline::DropTail,
            }),
            Value::Table(_) => {
                let table = Sub::<QueueTable>::of(&SECTION).table(node, reader)?;
                let codel = table.codel.map(|table| Discipline::CoDel(*table.value));
                let fq_codel = table.fq_codel.map(|table| Discipline::FqCoDel(*table.value));
                let pie = table.pie.map(|table| Discipline::Pie(*table.value));
                let red = table.red.map(|table| Discipline::Red(*table.value));
                codel.or(fq_codel).or(pie).or(red)
            }
            _ => wrong_kind(key, node, "the name of a discipline or a table", reader),
        }
    }

    fn write(&self, value: &Discipline) -> toml_edit::Value {
        let (name, table) = match value {
            Discipline::DropTail => ("drop-tail", InlineTable::new()),
            Discipline::CoDel(table) => ("codel", table.write()),
            Discipline::FqCoDel(table) => ("fq_codel", table.write()),
            Discipline::Pie(table) => ("pie", table.write()),
            Discipline::Red(table) => ("red", table.write()),
        };
        match table.is_empty() {
            true => name.into(),
            false => InlineTable::from_iter([(name, table)]).into(),
        }
    }
}

/// Puts what is written in the place of the default.
fn set<T: Copy>(written: Option<&Located<T>>, default: &mut T) {
    if let Some(written) = written {
        *default = written.value;
    }
}

impl Discipline {
    /// As the engine has it; settings that make no sense together are reported.
    pub(super) fn policy(&self, reader: &mut Reader) -> Option<Policy> {
        Some(match self {
            Self::DropTail => Policy::DropTail,
            Self::CoDel(table) => Policy::CoDel(table.params()),
            Self::FqCoDel(table) => Policy::FqCoDel(table.params()),
            Self::Pie(table) => Policy::Pie(table.params()),
            Self::Red(table) => Policy::Red(table.params(reader)?),
        })
    }
}

impl CodelTable {
    fn params(&self) -> codel::Params {
        let mut params = codel::Params::default();
        set(self.target.as_ref(), &mut params.target);
        set(self.interval.as_ref(), &mut params.interval);
        set(self.ecn.as_ref(), &mut params.ecn);
        params
    }
}

impl FqCodelTable {
    fn params(&self) -> fq_codel::Params {
        let mut params = fq_codel::Params::default();
        set(self.target.as_ref(), &mut params.codel.target);
        set(self.interval.as_ref(), &mut params.codel.interval);
        set(self.ecn.as_ref(), &mut params.codel.ecn);
        set(self.quantum.as_ref(), &mut params.quantum);
        let mut flows = u64::from(params.flows);
        set(self.flows.as_ref(), &mut flows);
        params.flows = flows as u32;
        params
    }
}

impl PieTable {
    fn params(&self) -> pie::Params {
        let mut params = pie::Params::default();
        set(self.target.as_ref(), &mut params.target);
        set(self.update.as_ref(), &mut params.update);
        set(self.burst.as_ref(), &mut params.burst);
        set(self.ecn.as_ref(), &mut params.ecn);
        params
    }
}

impl RedTable {
    fn params(&self, reader: &mut Reader) -> Option<red::Params> {
        let mut params = red::Params::default();
        let (mut min, mut max) = (u64::from(params.min), u64::from(params.max));
        set(self.min.as_ref(), &mut min);
        set(self.max.as_ref(), &mut max);
        set(self.probability.as_ref(), &mut params.probability);
        set(self.weight.as_ref(), &mut params.weight);
        set(self.gentle.as_ref(), &mut params.gentle);
        set(self.ecn.as_ref(), &mut params.ecn);
        if let Some(threshold) = self.min.as_ref().or(self.max.as_ref())
            && min >= max
        {
            let message = "the lower threshold is not below the upper one";
            let fault = Fault::new(threshold.place, message).expected("`min` less than `max`");
            reader.report(fault.found(format!("{min} and {max}")));
            return None;
        }
        if let Some(weight) = self.weight.as_ref().filter(|weight| weight.value.num() == 0) {
            let message = "an average without weight never changes";
            reader.report(Fault::new(weight.place, message));
            return None;
        }
        (params.min, params.max) = (min as u32, max as u32);
        Some(params)
    }
}
