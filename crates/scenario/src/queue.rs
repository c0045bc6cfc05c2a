//! `queue` of a link: a discipline by its name, or with settings of its own.

use net::queue::{Policy, codel, fq_codel, pie, red};
use serde_json::{Value as Json, json};
use units::{Bytes, Duration};

use super::chance::Share;
use super::keys::{Fields, Key, Kind, Reader, Section, Shape};
use super::kinds::{OneOf, Size, Span, Sub, Switch, Whole, wrong_kind};
use super::source::Fault;
use super::tree::{Node, Value};

/// Times of a discipline are never nothing.
const TIME: Span = Span { least: Duration::from_nanos(1), usual: "ms" };

static CODEL: Key<Sub> =
    Key::optional("codel", Sub(&CODEL_SECTION), "", "controlled delay (RFC 8289)");
static FQ_CODEL: Key<Sub> = Key::optional(
    "fq_codel",
    Sub(&FQ_CODEL_SECTION),
    "",
    "a queue with CoDel for each of many buckets of flows, which take turns (RFC 8290)",
);
static PIE: Key<Sub> =
    Key::optional("pie", Sub(&PIE_SECTION), "", "a controller of the delay (RFC 8033)");
static RED: Key<Sub> = Key::optional(
    "red",
    Sub(&RED_SECTION),
    "",
    "random early detection by the average length (Floyd and Jacobson 1993)",
);

/// A discipline with settings.
pub(super) static SECTION: Section = Section {
    what: "`queue`",
    keys: &[&CODEL, &FQ_CODEL, &PIE, &RED],
    one_of: &["codel", "fq_codel", "pie", "red"],
    elsewhere: |key| match key {
        "drop-tail" | "fifo" | "droptail" => Some("write queue = \"drop-tail\""),
        "limit" | "buffer" => Some("the room of the queue is the link's `buffer`"),
        _ => None,
    },
};

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

/// RFC 8289.
pub(super) static CODEL_SECTION: Section = Section {
    what: "`codel`",
    keys: &[&TARGET, &INTERVAL, &ECN],
    one_of: &[],
    elsewhere: of_the_link,
};

/// RFC 8290.
pub(super) static FQ_CODEL_SECTION: Section = Section {
    what: "`fq_codel`",
    keys: &[&TARGET, &INTERVAL, &FQ_ECN, &QUANTUM, &FLOWS],
    one_of: &[],
    elsewhere: of_the_link,
};

/// RFC 8033.
pub(super) static PIE_SECTION: Section = Section {
    what: "`pie`",
    keys: &[&PIE_TARGET, &UPDATE, &BURST, &ECN],
    one_of: &[],
    elsewhere: |key| match key {
        "tupdate" => Some("the time between two looks is called `update`"),
        key => of_the_link(key),
    },
};

/// Floyd and Jacobson 1993.
pub(super) static RED_SECTION: Section = Section {
    what: "`red`",
    keys: &[&MIN, &MAX, &PROBABILITY, &WEIGHT, &GENTLE, &ECN],
    one_of: &[],
    elsewhere: |key| match key {
        "min_th" | "max_th" => Some("the thresholds are called `min` and `max`, in packets"),
        key => of_the_link(key),
    },
};

/// Names of disciplines with the settings of their RFCs.
const NAMES: OneOf = OneOf { names: &["drop-tail", "codel", "fq_codel", "pie", "red"] };

/// A discipline: its name, or a table.
pub(super) struct Discipline;

impl Shape for Discipline {
    fn schema(&self) -> Json {
        json!({ "anyOf": [NAMES.schema(), SECTION.schema()] })
    }

    fn takes(&self) -> String {
        format!("{} or a table", NAMES.takes())
    }
}

impl Kind for Discipline {
    type Value = Policy;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Policy> {
        match &node.value {
            Value::Text(_) => NAMES.read(key, node, reader).map(|name| match name {
                "codel" => Policy::CoDel(codel::Params::default()),
                "fq_codel" => Policy::FqCoDel(fq_codel::Params::default()),
                "pie" => Policy::Pie(pie::Params::default()),
                "red" => Policy::Red(red::Params::default()),
                _ => Policy::DropTail,
            }),
            Value::Table(_) => {
                let fields = Fields::open(&SECTION, node, reader)?;
                let codel = fields.node(&CODEL).and_then(|node| codel(node, reader));
                let fq_codel = fields.node(&FQ_CODEL).and_then(|node| fq_codel(node, reader));
                let pie = fields.node(&PIE).and_then(|node| pie(node, reader));
                let red = fields.node(&RED).and_then(|node| red(node, reader));
                codel.or(fq_codel).or(pie).or(red)
            }
            _ => wrong_kind(key, node, "the name of a discipline or a table", reader),
        }
    }
}

/// Puts what is written in the place of what holds without.
fn set<K: Kind>(fields: &Fields<'_>, key: &Key<K>, place: &mut K::Value, reader: &mut Reader) {
    if let Some(written) = fields.get(key, reader) {
        *place = written.value;
    }
}

fn codel(node: &Node, reader: &mut Reader) -> Option<Policy> {
    let fields = Fields::open(&CODEL_SECTION, node, reader)?;
    let mut params = codel::Params::default();
    set(&fields, &TARGET, &mut params.target, reader);
    set(&fields, &INTERVAL, &mut params.interval, reader);
    set(&fields, &ECN, &mut params.ecn, reader);
    Some(Policy::CoDel(params))
}

fn fq_codel(node: &Node, reader: &mut Reader) -> Option<Policy> {
    let fields = Fields::open(&FQ_CODEL_SECTION, node, reader)?;
    let mut params = fq_codel::Params::default();
    set(&fields, &TARGET, &mut params.codel.target, reader);
    set(&fields, &INTERVAL, &mut params.codel.interval, reader);
    set(&fields, &FQ_ECN, &mut params.codel.ecn, reader);
    set(&fields, &QUANTUM, &mut params.quantum, reader);
    let mut flows = u64::from(params.flows);
    set(&fields, &FLOWS, &mut flows, reader);
    params.flows = flows as u32;
    Some(Policy::FqCoDel(params))
}

fn pie(node: &Node, reader: &mut Reader) -> Option<Policy> {
    let fields = Fields::open(&PIE_SECTION, node, reader)?;
    let mut params = pie::Params::default();
    set(&fields, &PIE_TARGET, &mut params.target, reader);
    set(&fields, &UPDATE, &mut params.update, reader);
    set(&fields, &BURST, &mut params.burst, reader);
    set(&fields, &ECN, &mut params.ecn, reader);
    Some(Policy::Pie(params))
}

fn red(node: &Node, reader: &mut Reader) -> Option<Policy> {
    let fields = Fields::open(&RED_SECTION, node, reader)?;
    let mut params = red::Params::default();
    let (mut min, mut max) = (u64::from(params.min), u64::from(params.max));
    set(&fields, &MIN, &mut min, reader);
    set(&fields, &MAX, &mut max, reader);
    set(&fields, &PROBABILITY, &mut params.probability, reader);
    set(&fields, &WEIGHT, &mut params.weight, reader);
    set(&fields, &GENTLE, &mut params.gentle, reader);
    set(&fields, &ECN, &mut params.ecn, reader);
    if min >= max {
        let place = fields.node(&MIN).or(fields.node(&MAX)).map_or(node.place, |node| node.place);
        let fault = Fault::new(place, "the lower threshold is not below the upper one");
        reader.report(fault.expected("`min` less than `max`").found(format!("{min} and {max}")));
        return None;
    }
    if params.weight.num() == 0 {
        let place = fields.node(&WEIGHT).map_or(node.place, |node| node.place);
        reader.report(Fault::new(place, "an average without weight never changes"));
        return None;
    }
    (params.min, params.max) = (min as u32, max as u32);
    Some(Policy::Red(params))
}
