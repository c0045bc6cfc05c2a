//! `series = { columns = ["cwnd", "flight"], every = "10ms" }`: what is kept of each run over time.

use logs::series::{COLUMNS, Columns, Thinning};
use serde_json::{Value as Json, json};
use toml_edit::Array;
use units::Duration;

use super::super::keys::{Key, Kind, Reader, Shape};
use super::super::kinds::{Span, Whole, wrong_kind};
use super::super::nearest::{did_you_mean, one_of};
use super::super::source::Fault;
use super::super::table::table;
use super::super::tree::{Node, Value};

/// What is wanted of each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Columns, in their order.
    pub columns: Columns,
    /// How much is kept.
    pub thinning: Thinning,
}

static NAMES: Key<Names> = Key::required(
    "columns",
    Names,
    "columns of the senders' states: `cwnd`, `flight`, `srtt` and the others of \
     `ackclock run --columns`",
);
static EVERY: Key<Span> = Key::optional(
    "every",
    Span { least: Duration::from_nanos(1), usual: "ms" },
    "a row wherever a column changes",
    "of every span of this length keep the first and last row and those with the lowest and the \
     highest value of each column",
);
static POINTS: Key<Whole> = Key::optional(
    "points",
    Whole { least: 16, most: u32::MAX as u64 },
    "no limit",
    "keep about so many rows of each flow, and every peak",
);

table! {
    /// What is kept of each run over time.
    pub SeriesTable: SECTION = "`series`" {
        columns: Columns = NAMES,
        every: Duration = EVERY,
        points: u64 = POINTS,
    }
    check: |fields, reader| {
        if let (Some(_), Some(points)) = (fields.node(&EVERY), fields.node(&POINTS)) {
            let message = "`series` has either `every` or `points`, not both";
            reader.report(Fault::new(points.place, message));
        }
    },
}

impl SeriesTable {
    /// `None` without columns.
    pub(super) fn plan(&self) -> Option<Plan> {
        let every = self.every.map(|every| Thinning::Every(every.value));
        let points = self.points.map(|points| Thinning::Points(points.value as usize));
        let thinning = every.or(points).unwrap_or(Thinning::None);
        Some(Plan { columns: self.columns.clone()?.value, thinning })
    }
}

/// A list of columns.
struct Names;

impl Shape for Names {
    fn schema(&self) -> Json {
        let names = COLUMNS.iter().flat_map(|column| [column.short(), column.name]);
        let mut names: Vec<&str> = names.collect();
        names.dedup();
        json!({ "type": "array", "items": { "enum": names }, "minItems": 1 })
    }

    fn takes(&self) -> String {
        "list of names".into()
    }
}

impl Kind for Names {
    type Value = Columns;

    fn read(&self, key: &str, node: &Node, reader: &mut Reader) -> Option<Columns> {
        let shorts = || COLUMNS.iter().map(|column| column.short());
        let items = reader.list(key, node)?;
        if items.is_empty() {
            let fault = Fault::new(node.place, format!("`{key}` names no column"));
            reader.report(fault.expected(one_of(shorts())));
            return None;
        }
        let mut names = Vec::new();
        for item in items {
            let Value::Text(name) = &item.value else {
                return wrong_kind(key, item, "the name of a column in quotes", reader);
            };
            if Columns::parse(name).is_err() || name.contains(',') {
                let fault = Fault::new(item.place, format!("there is no column `{name}`"));
                let guess = did_you_mean(name, shorts());
                reader.report(fault.expected(one_of(shorts())).hint(guess));
                return None;
            }
            names.push(name.as_str());
        }
        Columns::parse(&names.join(",")).ok()
    }

    fn write(&self, value: &Columns) -> toml_edit::Value {
        value.names().into_iter().collect::<Array>().into()
    }
}
