//! Pivot tables: axes as rows and columns, a figure in the cells.

mod lines;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use charts::svg::{HeatCell, HeatMap};
use serde::Serialize;

use super::SweepRow;
use super::csv::{Scope, SweepFigure};
use super::statistics::SampleStatistics;

pub use lines::LineChartError;

/// The specification of a pivot table.
#[derive(Debug, Clone)]
pub struct PivotSpec {
    /// Row keys: axes, `seed` and `flow`.
    pub rows: Vec<String>,
    /// Column keys.
    pub columns: Vec<String>,
    /// Figure in the cells.
    pub figure: SweepFigure,
    /// The selected flows.
    pub flows: FlowSelection,
}

/// The flows of a table. No cell combines the figures of different flows, except as their sum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FlowSelection {
    /// Every flow, in its own cells.
    #[default]
    Each,
    /// The flow of this name.
    One(String),
    /// The sum over the flows of each run.
    Sum,
}

/// The key of flows, in addition to those of the axes.
pub const FLOW: &str = "flow";
/// The value of [`FLOW`] for a figure of the whole run.
const ALL: &str = "all";
/// Most flows that become columns of a table without column keys; more become rows.
const MOST_TOPS: usize = 7;

/// A table of means, filled row by row.
#[derive(Debug, Clone)]
pub struct Pivot {
    question: PivotSpec,
    sides: PivotAxis,
    tops: PivotAxis,
    /// The flows, if no key of the table is [`FLOW`].
    flows: PivotAxis,
    /// Cells by row, column and flow.
    cells: BTreeMap<[usize; 3], CellRuns>,
}

/// The runs of a cell.
#[derive(Debug, Clone)]
struct CellRuns {
    summary: SampleStatistics,
    /// Settings of the first run.
    set: Vec<(String, String)>,
    /// All runs have the same settings: they are repetitions and differ only in the seed.
    is_repeated: bool,
}

impl CellRuns {
    /// Half the width of the 95 % confidence interval of the mean; `None` for runs of several
    /// points, whose spread is not random.
    fn confidence(&self) -> Option<f64> {
        self.summary.confidence().filter(|_| self.is_repeated)
    }
}

/// The values of the row or column keys, in the order of their first appearance.
#[derive(Debug, Clone, Default)]
struct PivotAxis {
    values: Vec<Vec<String>>,
    /// Index of each value.
    positions: BTreeMap<Vec<String>, usize>,
}

impl PivotAxis {
    fn position(&mut self, values: Vec<String>) -> usize {
        if let Some(&known) = self.positions.get(&values) {
            return known;
        }
        let position = self.values.len();
        self.values.push(values.clone());
        self.positions.insert(values, position);
        position
    }
}

/// A table with its flows assigned to rows or columns.
struct PivotLayout<'a> {
    row_keys: Vec<String>,
    column_keys: Vec<String>,
    sides: Vec<Vec<String>>,
    tops: Vec<Vec<String>>,
    /// One row per entry of `sides`, with one cell per entry of `tops`.
    cells: Vec<Vec<Option<&'a CellRuns>>>,
}

/// A cell as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PivotCell {
    /// Values of the row keys; with several flows as rows, the flow's name is the last.
    pub row: Vec<String>,
    /// Values of the column keys.
    pub column: Vec<String>,
    /// Number of runs.
    pub count: u64,
    /// Mean of the runs, in the unit of the figure's name.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; `None` for fewer than two repetitions, or
    /// for runs that differ in more than the seed.
    pub confidence_95: Option<f64>,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
}

impl Pivot {
    /// An empty table.
    pub fn new(question: PivotSpec) -> Self {
        Self {
            question,
            sides: PivotAxis::default(),
            tops: PivotAxis::default(),
            flows: PivotAxis::default(),
            cells: BTreeMap::new(),
        }
    }

    /// Adds a run; values of keys keep the order of their first appearance.
    pub fn add(&mut self, row: &SweepRow) {
        let of = self.question.figure.of;
        match (self.question.figure.scope, self.question.flows.clone()) {
            (Scope::Run, _) => {
                let value = row.flows.first().and_then(|flow| of(row, flow));
                self.add_value(row, ALL, value);
            }
            (_, FlowSelection::Sum) => {
                let values: Vec<f64> = row.flows.iter().filter_map(|flow| of(row, flow)).collect();
                let sum = (!values.is_empty()).then(|| values.iter().sum());
                self.add_value(row, ALL, sum);
            }
            (_, flows) => {
                let wanted = |name: &str| !matches!(&flows, FlowSelection::One(one) if one != name);
                for flow in row.flows.iter().filter(|flow| wanted(&flow.name)) {
                    self.add_value(row, &flow.name, of(row, flow));
                }
            }
        }
    }

    /// Adds the value of a run for `flow`; without a value, only its cell.
    fn add_value(&mut self, row: &SweepRow, flow: &str, value: Option<f64>) {
        let PivotSpec { rows, columns, .. } = &self.question;
        let is_key = rows.iter().chain(columns).any(|key| key == FLOW);
        let by_flow = if is_key { Vec::new() } else { vec![flow.to_owned()] };
        let side = self.sides.position(values(rows, row, flow));
        let top = self.tops.position(values(columns, row, flow));
        let position = [side, top, self.flows.position(by_flow)];
        let Some(value) = value else { return };
        let cell = self.cells.entry(position).or_insert_with(|| CellRuns {
            summary: SampleStatistics::default(),
            set: row.set.clone(),
            is_repeated: true,
        });
        cell.is_repeated &= cell.set == row.set;
        cell.summary.add(value);
    }

    /// Assigns several flows to the columns if there are no column keys, or else to the rows.
    fn layout(&self) -> PivotLayout<'_> {
        let (many, flows) = (self.flows.values.len() > 1, &self.flows.values);
        let on_top = many && self.question.columns.is_empty() && flows.len() <= MOST_TOPS;
        let at_side = many && !on_top;
        let with = |lines: &PivotAxis, adds: bool| -> Vec<(usize, Option<usize>, Vec<String>)> {
            let lines = lines.values.iter().enumerate();
            let each = |(n, line): (usize, &Vec<String>)| match adds {
                false => vec![(n, None, line.clone())],
                true => (0..flows.len())
                    .map(|flow| (n, Some(flow), [&line[..], &flows[flow]].concat()))
                    .collect(),
            };
            lines.flat_map(each).collect()
        };
        let keys = |keys: &[String], adds: bool| {
            let flow = adds.then(|| FLOW.to_owned());
            keys.iter().cloned().chain(flow).collect()
        };
        let (sides, tops) = (with(&self.sides, at_side), with(&self.tops, on_top));
        let line = |side: &(usize, Option<usize>, Vec<String>)| {
            let cell = |top: &(usize, Option<usize>, Vec<String>)| {
                self.cells.get(&[side.0, top.0, side.1.or(top.1).unwrap_or(0)])
            };
            tops.iter().map(cell).collect()
        };
        PivotLayout {
            row_keys: keys(&self.question.rows, at_side),
            column_keys: keys(&self.question.columns, on_top),
            cells: sides.iter().map(line).collect(),
            sides: sides.into_iter().map(|(.., values)| values).collect(),
            tops: tops.into_iter().map(|(.., values)| values).collect(),
        }
    }

    /// All non-empty cells.
    pub fn cells(&self) -> Vec<PivotCell> {
        let PivotLayout { sides, tops, cells, .. } = self.layout();
        let mut found = Vec::new();
        for (side, line) in sides.iter().zip(&cells) {
            for (top, cell) in tops.iter().zip(line) {
                let Some(cell) = cell else { continue };
                let SampleStatistics { count, mean, min, max, .. } = cell.summary;
                found.push(PivotCell {
                    row: side.clone(),
                    column: top.clone(),
                    count,
                    mean,
                    confidence_95: cell.confidence(),
                    min,
                    max,
                });
            }
        }
        found
    }

    /// Does the table have columns?
    pub fn has_columns(&self) -> bool {
        !self.layout().column_keys.is_empty()
    }

    /// The table as text, every number with its unit.
    pub fn text(&self) -> String {
        let (scale, unit) = self.unit();
        let PivotLayout { row_keys, column_keys, sides, tops, cells } = self.layout();
        let mut head = row_keys;
        head.extend(tops.iter().map(|top| {
            let pair = |(key, value): (&String, &String)| format!("{key}={value}");
            let pairs: Vec<String> = column_keys.iter().zip(top).map(pair).collect();
            if pairs.is_empty() { self.question.figure.name.to_owned() } else { pairs.join(" ") }
        }));
        let text = |cell: &Option<&CellRuns>| {
            let Some(cell) = cell else { return "–".to_owned() };
            let mean = cell.summary.mean / scale;
            match cell.confidence().map(|half| half / scale) {
                None => format!("{}{unit}", number(mean)),
                // Repeated without anything that differs: that is no interval.
                Some(0.0) => format!("{}{unit} (identical)", number(mean)),
                Some(half) => {
                    // Digits beyond the confidence interval are not shown.
                    let digits = decimals(half, 2).min(decimals(mean, 4));
                    format!("{mean:.digits$} ± {half:.digits$}{unit}")
                }
            }
        };
        let mut rows = vec![head];
        for (side, line) in sides.into_iter().zip(&cells) {
            rows.push(side.into_iter().chain(line.iter().map(text)).collect());
        }
        crate::run_report::aligned(&rows)
    }

    /// The table as a heat map in SVG; colours are means.
    pub fn heat_map(&self, title: &str, subtitle: &str) -> String {
        let (scale, unit) = self.unit();
        let layout = self.layout();
        let means = || self.cells.values().map(|cell| cell.summary.mean);
        let least = means().fold(f64::INFINITY, f64::min);
        let most = means().fold(f64::NEG_INFINITY, f64::max);
        let cell = |cell: &CellRuns| {
            let mean = cell.summary.mean;
            let part = if most > least { (mean - least) / (most - least) } else { 0.5 };
            let digits = decimals(mean / scale, 4);
            HeatCell {
                text: format!("{:.digits$}", mean / scale),
                half: cell.confidence().map_or_else(String::new, |half| {
                    if half <= 0.0 {
                        return "identical".to_owned();
                    }
                    let digits = decimals(half / scale, 2).min(digits);
                    format!("± {:.digits$}", half / scale)
                }),
                part: (part * 1_000.0) as u16,
            }
        };
        let cells = layout.cells.iter().flatten().map(|found| found.map(cell));
        let end = |value: f64| match value.is_finite() {
            true => format!("{}{unit}", number(value / scale)),
            false => String::new(),
        };
        let figure = self.question.figure.short().replace('_', " ");
        let subtitle = format!("{figure}{unit}, mean of each cell; {subtitle}");
        let map = HeatMap {
            title,
            subtitle: &subtitle,
            sides: [&layout.row_keys.join(", "), &layout.column_keys.join(", ")],
            rows: layout.sides.iter().map(|side| side.join(", ")).collect(),
            columns: layout.tops.iter().map(|top| top.join(", ")).collect(),
            cells: cells.collect(),
            ends: [end(least), end(most)],
        };
        let mut svg = Vec::new();
        // Writing into memory does not fail.
        let written = map.write(&mut svg);
        debug_assert!(written.is_ok());
        String::from_utf8_lossy(&svg).into_owned()
    }

    /// Divisor and unit for display.
    fn unit(&self) -> (f64, &'static str) {
        let largest = self.cells.values().map(|cell| cell.summary.max).fold(0.0_f64, f64::max);
        match self.question.figure.name {
            name if name.ends_with("_bps") => match largest {
                most if most >= 1e9 => (1e9, " Gbit/s"),
                most if most >= 1e6 => (1e6, " Mbit/s"),
                most if most >= 1e3 => (1e3, " kbit/s"),
                _ => (1.0, " bit/s"),
            },
            name if name.ends_with("_s") => match largest {
                most if most >= 1.0 => (1.0, " s"),
                most if most >= 1e-3 => (1e-3, " ms"),
                _ => (1e-6, " us"),
            },
            name if name.ends_with("bytes") => match largest {
                most if most >= 1e9 => (1e9, " GB"),
                most if most >= 1e6 => (1e6, " MB"),
                most if most >= 1e3 => (1e3, " kB"),
                _ => (1.0, " B"),
            },
            _ => (1.0, ""),
        }
    }
}

fn values(keys: &[String], row: &SweepRow, flow: &str) -> Vec<String> {
    let value = |key: &String| {
        let found = row.set.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        match key.as_str() {
            "seed" => row.seed.to_string(),
            FLOW => flow.to_owned(),
            _ => found.unwrap_or_default(),
        }
    };
    keys.iter().map(value).collect()
}

/// Formats with four significant digits, without trailing zeros.
fn number(value: f64) -> String {
    let digits = decimals(value, 4);
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Decimals that show `digits` significant digits; none for zero.
fn decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 {
        return 0;
    }
    let whole = libm::floor(libm::log10(value.abs().max(1e-6))) as i32 + 1;
    (digits - whole).clamp(0, 9) as usize
}
