//! `queue` of a link: a queue discipline by name or with parameters.

use net::queue::{QdiscConfig, codel, fq_codel, pie, red};
use serde_json::{Value as Json, json};
use toml_edit::InlineTable;
use units::{Bytes, Duration, Ratio};

use super::chance::FractionType;
use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader};
use super::kinds::{
    BoolType, DurationType, EnumType, IntegerType, SizeType, TableType, self_named, type_mismatch,
};
use super::nearest::did_you_mean;
use super::not_modelled;
use super::source::SpannedError;
use super::table::{KeyTable as _, table};
use super::tree::{TomlNode, TomlValue};

/// Times of a discipline are above zero.
const TIME: DurationType = DurationType { least: Duration::from_nanos(1), default_unit: "ms" };

static CODEL: Key<TableType<CodelTable>> =
    Key::optional("codel", TableType::of(&CODEL_SECTION), "", "CoDel, controlled delay (RFC 8289)");
static FQ_CODEL: Key<TableType<FqCodelTable>> = Key::optional(
    "fq_codel",
    TableType::of(&FQ_CODEL_SECTION),
    "",
    "FQ-CoDel: hashed per-flow queues with CoDel, served by deficit round robin (RFC 8290)",
);
static PIE: Key<TableType<PieTable>> = Key::optional(
    "pie",
    TableType::of(&PIE_SECTION),
    "",
    "proportional integral controller enhanced (RFC 8033)",
);
static RED: Key<TableType<RedTable>> = Key::optional(
    "red",
    TableType::of(&RED_SECTION),
    "",
    "random early detection by the average queue length (Floyd and Jacobson 1993)",
);

static TARGET: Key<DurationType> =
    Key::optional("target", TIME, "5ms", "acceptable standing queue delay");
static INTERVAL: Key<DurationType> = Key::optional(
    "interval",
    TIME,
    "100ms",
    "time the delay must exceed `target` before the first drop",
);
static ECN: Key<BoolType> =
    Key::optional("ecn", BoolType, "false", "marks ECN-capable packets instead of dropping them");
static FQ_ECN: Key<BoolType> =
    Key::optional("ecn", BoolType, "true", "marks ECN-capable packets instead of dropping them");
static QUANTUM: Key<SizeType> = Key::optional(
    "quantum",
    SizeType { least: Bytes(1), most: Bytes(1 << 20) },
    "1514 B",
    "IP bytes dequeued from a queue at once, per round of the scheduler",
);
static FLOWS: Key<IntegerType> = Key::optional(
    "flows",
    IntegerType { least: 1, most: 65_536 },
    "1024",
    "number of queues that flows are hashed into; a connection is one flow per direction",
);
static PIE_TARGET: Key<DurationType> =
    Key::optional("target", TIME, "15ms", "target latency of the AQM (QDELAY_REF)");
static UPDATE: Key<DurationType> =
    Key::optional("update", TIME, "15ms", "period of the drop-probability calculation (T_UPDATE)");
static BURST: Key<DurationType> = Key::optional(
    "burst",
    DurationType { least: Duration::ZERO, default_unit: "ms" },
    "150ms",
    "maximum burst allowance: time without drops after an idle queue (MAX_BURST)",
);
static MIN: Key<IntegerType> = Key::optional(
    "min",
    IntegerType { least: 0, most: 1_000_000 },
    "5",
    "minimum threshold of the average queue length, in packets (min_th)",
);
static MAX: Key<IntegerType> = Key::optional(
    "max",
    IntegerType { least: 1, most: 1_000_000 },
    "15",
    "maximum threshold of the average queue length, in packets (max_th)",
);
static PROBABILITY: Key<FractionType> =
    Key::optional("probability", FractionType, "10%", "maximum drop probability, at `max` (max_p)");
static WEIGHT: Key<FractionType> = Key::optional(
    "weight",
    FractionType,
    "0.2%",
    "weight of the current length in the average (w_q)",
);
static GENTLE: Key<BoolType> = Key::optional(
    "gentle",
    BoolType,
    "true",
    "above `max`, the drop probability rises to 1 at twice `max`; if false, it is 1 above `max`",
);

/// Advice for keys that belong to the link.
fn link_key_hint(key: &str) -> Option<&'static str> {
    match key {
        "limit" | "buffer" => Some("the queue capacity is the link's `buffer`"),
        _ => None,
    }
}

table! {
    /// CoDel, RFC 8289.
    pub CodelTable: CODEL_SECTION = "`codel`" {
        target: Duration = TARGET,
        interval: Duration = INTERVAL,
        ecn: bool = ECN,
    }
    elsewhere: link_key_hint,
}

table! {
    /// FQ-CoDel, RFC 8290.
    pub FqCodelTable: FQ_CODEL_SECTION = "`fq_codel`" {
        target: Duration = TARGET,
        interval: Duration = INTERVAL,
        ecn: bool = FQ_ECN,
        quantum: Bytes = QUANTUM,
        flows: u64 = FLOWS,
    }
    elsewhere: link_key_hint,
}

table! {
    /// PIE, RFC 8033.
    pub PieTable: PIE_SECTION = "`pie`" {
        target: Duration = PIE_TARGET,
        update: Duration = UPDATE,
        burst: Duration = BURST,
        ecn: bool = ECN,
    }
    elsewhere: |key| match key {
        "tupdate" => Some("the update period is called `update`"),
        key => link_key_hint(key),
    },
}

table! {
    /// RED, Floyd and Jacobson 1993.
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
        key => link_key_hint(key),
    },
}

/// The registry of disciplines with parameters: a variant of [`Discipline`], its table, its key, and its name,
/// which is that of [`QdiscConfig`]. What a discipline does is in `net`; this is how it is written.
macro_rules! disciplines {
    ($($(#[$doc:meta])* $name:ident($table:ident) $field:ident = $key:ident, $text:literal;)*) => {
        table! {
            /// A discipline with parameters.
            QueueTable: SECTION = "`queue`" {
                $($field: Box<$table> = $key,)*
            }
            one_of: &[$($text),*],
            elsewhere: |key| match key {
                "drop-tail" | "fifo" | "droptail" => Some("write queue = \"drop-tail\""),
                "limit" | "buffer" => Some("the queue capacity is the link's `buffer`"),
                _ => None,
            },
        }

        /// A queue discipline.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Discipline {
            /// Drop-tail: drops packets that exceed the capacity.
            DropTail,
            $($(#[$doc])* $name($table),)*
        }

        impl Discipline {
            /// That of a name, with default parameters.
            fn named(name: &str) -> Self {
                match name {
                    $($text => Self::$name($table::default()),)*
                    _ => Self::DropTail,
                }
            }

            /// That of a table.
            fn of(table: QueueTable) -> Option<Self> {
                $(if let Some(table) = table.$field {
                    return Some(Self::$name(*table.value));
                })*
                None
            }

            /// Its name, and the parameters that are written.
            fn parts(&self) -> (&'static str, InlineTable) {
                match self {
                    Self::DropTail => ("drop-tail", InlineTable::new()),
                    $(Self::$name(table) => ($text, table.write()),)*
                }
            }

            /// Converts to the simulator's policy; reports inconsistent parameters.
            pub(super) fn policy(&self, reader: &mut ScenarioReader) -> Option<QdiscConfig> {
                Some(match self {
                    Self::DropTail => QdiscConfig::DropTail,
                    $(Self::$name(table) => QdiscConfig::$name(table.params(reader)?),)*
                })
            }
        }
    };
}

disciplines! {
    /// CoDel.
    CoDel(CodelTable) codel = CODEL, "codel";
    /// FQ-CoDel.
    FqCoDel(FqCodelTable) fq_codel = FQ_CODEL, "fq_codel";
    /// PIE.
    Pie(PieTable) pie = PIE, "pie";
    /// RED.
    Red(RedTable) red = RED, "red";
}

/// Names of disciplines with default parameters.
const DISCIPLINES: [&str; QdiscConfig::NAMES.len()] = {
    let mut names = [""; QdiscConfig::NAMES.len()];
    names.copy_from_slice(QdiscConfig::NAMES);
    names
};
const NAMES: EnumType = EnumType { names: &self_named(DISCIPLINES) };

/// A discipline: its name or a table.
pub(super) struct DisciplineType;

impl KeyType for DisciplineType {
    fn schema(&self) -> Json {
        json!({ "anyOf": [NAMES.schema(), SECTION.schema()] })
    }

    fn type_name(&self) -> String {
        format!("{} or a table", NAMES.type_name())
    }
}

impl KeyCodec for DisciplineType {
    type Value = Discipline;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Discipline> {
        match &node.value {
            TomlValue::Text(_) => {
                let advice = |name: &str| match not_modelled::queue(name) {
                    Some(advice) => Some(advice.to_owned()),
                    None => did_you_mean(name, DISCIPLINES),
                };
                NAMES.read_or(key, node, reader, advice).map(Discipline::named)
            }
            TomlValue::Table(_) => {
                Discipline::of(TableType::<QueueTable>::of(&SECTION).table(node, reader)?)
            }
            _ => type_mismatch(key, node, "the name of a discipline or a table", reader),
        }
    }

    fn write(&self, value: &Discipline) -> toml_edit::Value {
        let (name, table) = value.parts();
        match table.is_empty() {
            true => name.into(),
            false => InlineTable::from_iter([(name, table)]).into(),
        }
    }
}

/// Overwrites a default with the value of the file, if any.
fn set<T: Copy>(written: Option<&Located<T>>, default: &mut T) {
    if let Some(written) = written {
        *default = written.value;
    }
}

impl CodelTable {
    fn params(&self, _reader: &mut ScenarioReader) -> Option<codel::CoDelParams> {
        let mut params = codel::CoDelParams::default();
        set(self.target.as_ref(), &mut params.target);
        set(self.interval.as_ref(), &mut params.interval);
        set(self.ecn.as_ref(), &mut params.ecn);
        Some(params)
    }
}

impl FqCodelTable {
    fn params(&self, _reader: &mut ScenarioReader) -> Option<fq_codel::FqCoDelParams> {
        let mut params = fq_codel::FqCoDelParams::default();
        set(self.target.as_ref(), &mut params.codel.target);
        set(self.interval.as_ref(), &mut params.codel.interval);
        set(self.ecn.as_ref(), &mut params.codel.ecn);
        set(self.quantum.as_ref(), &mut params.quantum);
        let mut flows = u64::from(params.flows);
        set(self.flows.as_ref(), &mut flows);
        params.flows = flows as u32;
        Some(params)
    }
}

impl PieTable {
    fn params(&self, _reader: &mut ScenarioReader) -> Option<pie::PieParams> {
        let mut params = pie::PieParams::default();
        set(self.target.as_ref(), &mut params.target);
        set(self.update.as_ref(), &mut params.update);
        set(self.burst.as_ref(), &mut params.burst);
        set(self.ecn.as_ref(), &mut params.ecn);
        Some(params)
    }
}

impl RedTable {
    fn params(&self, reader: &mut ScenarioReader) -> Option<red::RedParams> {
        let mut params = red::RedParams::default();
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
            let fault =
                SpannedError::new(threshold.span, message).expected("`min` less than `max`");
            reader.report(fault.found(format!("{min} and {max}")));
            return None;
        }
        if let Some(weight) = self.weight.as_ref().filter(|weight| weight.value.num() == 0) {
            let message = "a `weight` of zero never changes the average";
            reader.report(SpannedError::new(weight.span, message));
            return None;
        }
        (params.min, params.max) = (min as u32, max as u32);
        Some(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_discipline_has_the_name_of_its_policy() {
        for name in QdiscConfig::NAMES {
            let discipline = Discipline::named(name);
            assert_eq!(discipline.parts().0, *name);
            let policy = discipline.policy(&mut ScenarioReader::default());
            assert_eq!(policy.map(|policy| policy.name()), Some(*name));
        }
    }
}
