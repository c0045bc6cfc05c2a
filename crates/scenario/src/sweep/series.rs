//! `series = { columns = ["cwnd", "flight"], every = "10ms" }`: time series of each run.

use logs::series::{COLUMNS, Downsampling, SeriesColumns};
use serde_json::{Value as Json, json};
use toml_edit::Array;
use units::Duration;

use super::super::keys::{Key, KeyCodec, KeyType, ScenarioReader};
use super::super::kinds::{BoolType, DurationType, IntegerType, type_mismatch};
use super::super::nearest::{did_you_mean, one_of};
use super::super::source::SpannedError;
use super::super::table::table;
use super::super::tree::{TomlNode, TomlValue};

/// The time series to record from each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesPlan {
    /// Columns, in their order.
    pub columns: SeriesColumns,
    /// Downsampling.
    pub thinning: Downsampling,
    /// Also records the queue of every link.
    pub queues: bool,
}

static NAMES: Key<ColumnsType> = Key::required(
    "columns",
    ColumnsType,
    "columns of the senders' states: `cwnd`, `flight`, `srtt` and the others of \
     `ackclock run --columns`",
);
static EVERY: Key<DurationType> = Key::optional(
    "every",
    DurationType { least: Duration::from_nanos(1), default_unit: "ms" },
    "a row at every change of a column",
    "downsampling: of every interval of this length, keeps the first and last row and those with \
     the lowest and highest value of each column",
);
static POINTS: Key<IntegerType> = Key::optional(
    "points",
    IntegerType { least: 16, most: u32::MAX as u64 },
    "no limit",
    "downsampling: keeps about this many rows per flow, and every peak",
);

static QUEUES: Key<BoolType> = Key::optional(
    "queues",
    BoolType,
    "false",
    "also records the length and the delay of the queue of every link, in `series/N.queues.csv`, as \
     `ackclock run --queues`",
);

table! {
    /// Time series of each run.
    pub SeriesTable: SECTION = "`series`" {
        columns: SeriesColumns = NAMES,
        every: Duration = EVERY,
        points: u64 = POINTS,
        queues: bool = QUEUES,
    }
    check: |fields, reader| {
        if let (Some(_), Some(points)) = (fields.node(&EVERY), fields.node(&POINTS)) {
            let message = "`series` has either `every` or `points`, not both";
            reader.report(SpannedError::new(points.span, message));
        }
    },
}

impl SeriesTable {
    /// Returns the plan; `None` without columns.
    pub(super) fn plan(&self) -> Option<SeriesPlan> {
        let every = self.every.map(|every| Downsampling::Every(every.value));
        let points = self.points.map(|points| Downsampling::Points(points.value as usize));
        let thinning = every.or(points).unwrap_or(Downsampling::None);
        let queues = self.queues.is_some_and(|queues| queues.value);
        Some(SeriesPlan { columns: self.columns.clone()?.value, thinning, queues })
    }
}

/// A list of columns.
struct ColumnsType;

impl KeyType for ColumnsType {
    fn schema(&self) -> Json {
        let names = COLUMNS.iter().flat_map(|column| [column.short(), column.name]);
        let mut names: Vec<&str> = names.collect();
        names.dedup();
        json!({ "type": "array", "items": { "enum": names }, "minItems": 1 })
    }

    fn type_name(&self) -> String {
        "list of names".into()
    }
}

impl KeyCodec for ColumnsType {
    type Value = SeriesColumns;

    fn read(
        &self,
        key: &str,
        node: &TomlNode,
        reader: &mut ScenarioReader,
    ) -> Option<SeriesColumns> {
        let shorts = || COLUMNS.iter().map(|column| column.short());
        let items = reader.list(key, node)?;
        if items.is_empty() {
            let fault = SpannedError::new(node.span, format!("`{key}` names no column"));
            reader.report(fault.expected(one_of(shorts())));
            return None;
        }
        let mut names = Vec::new();
        for item in items {
            let TomlValue::Text(name) = &item.value else {
                return type_mismatch(key, item, "the name of a column in quotes", reader);
            };
            if SeriesColumns::parse(name).is_err() || name.contains(',') {
                let fault = SpannedError::new(item.span, format!("there is no column `{name}`"));
                let guess = did_you_mean(name, shorts());
                reader.report(fault.expected(one_of(shorts())).hint(guess));
                return None;
            }
            names.push(name.as_str());
        }
        SeriesColumns::parse(&names.join(",")).ok()
    }

    fn write(&self, value: &SeriesColumns) -> toml_edit::Value {
        value.names().into_iter().collect::<Array>().into()
    }
}
