//! The rows of a sweep as a table, lines of CSV, or a page. There may be a million, so Ctrl-C
//! cancels the conversion.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, StringDictionaryBuilder, UInt64Builder};
use arrow_array::types::Int32Type;
use pages::sweep_page::SweepPage;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use runner::sweep::csv::{FIGURES, SweepFigure};
use runner::sweep::pivot::{FlowSelection, Pivot, PivotSpec};
use runner::sweep::{SweepDescription, SweepRow, csv};

use crate::columns::{ArrowColumn, batch};
use crate::ran::html;
use crate::table::Table;
use crate::watch::{LongCall, watch};

/// The page of `ackclock sweep --report`, from rows as lines of JSON; `None` if there are more than
/// a page holds. `about` is the content of `sweep.json`.
#[pyfunction]
pub(crate) fn sweep_page(
    py: Python<'_>,
    about: &str,
    lines: &[u8],
    name: &str,
) -> PyResult<Option<String>> {
    let about = SweepDescription::from_json(about.as_bytes())
        .map_err(|error| PyValueError::new_err(format!("no sweep.json: {error}")))?;
    let mut axes = about.axes.clone();
    let columns = if axes.len() > 1 { axes.pop() } else { None }.unwrap_or_default();
    let figure = SweepFigure::named("goodput").unwrap_or(FIGURES[0]);
    let mut means =
        Pivot::new(PivotSpec { rows: axes.concat(), columns, figure, flows: FlowSelection::Each });
    watch(py, 1, None, |watched| {
        let mut page = SweepPage::new(about.axes.clone());
        let (mut count, mut fits) = (0_u64, true);
        parse(lines, watched, |row| {
            fits = fits && page.add(&row).is_ok();
            means.add(&row);
            count += 1;
        })?;
        let title = Some(about.title()).filter(|title| !title.is_empty());
        let facts = [("runs", count.to_string()), ("sweep sha256", about.sha256)];
        let facts = facts.map(|(name, value)| (name.to_owned(), value));
        let page = fits.then(|| page.page(title.as_deref().unwrap_or(name), facts.into(), &means));
        page.as_ref().map(html).transpose()
    })?
}

/// The header line of `runs.csv` for axes over these keys.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn csv_head(keys: Vec<String>) -> PyResult<String> {
    let mut out = Vec::new();
    csv::head(&keys, &mut out)?;
    text(out)
}

/// The lines of `runs.csv` for rows as lines of JSON.
#[pyfunction]
pub(crate) fn csv_lines(py: Python<'_>, lines: &[u8]) -> PyResult<String> {
    watch(py, 1, None, |watched| {
        let mut out = Vec::new();
        let mut written = Ok(());
        parse(lines, watched, |row| {
            if written.is_ok() {
                written = csv::lines(&row, &mut out);
            }
        })?;
        written?;
        text(out)
    })?
}

/// A table from rows as lines of JSON: a row per flow of each run.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn rows_table(py: Python<'_>, lines: &[u8], keys: Vec<String>) -> PyResult<Table> {
    watch(py, 1, None, |watched| {
        let mut columns = SweepColumns::new(&keys);
        parse(lines, watched, |row| columns.add(&row))?;
        columns.finish(&keys)
    })?
}

/// The column builders of [`rows_table`].
struct SweepColumns {
    run: UInt64Builder,
    seed: UInt64Builder,
    axes: Vec<StringBuilder>,
    names: [StringDictionaryBuilder<Int32Type>; 3],
    figures: Vec<Float64Builder>,
}

impl SweepColumns {
    fn new(keys: &[String]) -> Self {
        Self {
            run: UInt64Builder::new(),
            seed: UInt64Builder::new(),
            axes: keys.iter().map(|_| StringBuilder::new()).collect(),
            names: [(); 3].map(|()| StringDictionaryBuilder::new()),
            figures: FIGURES.iter().map(|_| Float64Builder::new()).collect(),
        }
    }

    fn add(&mut self, row: &SweepRow) {
        for flow in &row.flows {
            self.run.append_value(row.run);
            self.seed.append_value(row.seed);
            for (axis, (_, value)) in self.axes.iter_mut().zip(&row.set) {
                axis.append_value(value);
            }
            let texts = [&*flow.name, &*flow.profile, &*flow.cc];
            for (builder, text) in self.names.iter_mut().zip(texts) {
                builder.append_value(text);
            }
            for (builder, figure) in self.figures.iter_mut().zip(FIGURES) {
                builder.append_option((figure.of)(row, flow));
            }
        }
    }

    fn finish(mut self, keys: &[String]) -> PyResult<Table> {
        let mut columns = vec![
            ArrowColumn::new("run", "number of the run, from 0", Arc::new(self.run.finish())),
            ArrowColumn::new("seed", "seed of its random streams", Arc::new(self.seed.finish())),
        ];
        for (key, mut axis) in keys.iter().zip(self.axes) {
            columns.push(ArrowColumn::new(key, "setting of the run", Arc::new(axis.finish())));
        }
        let says =
            ["name of the flow", "profile of its sender", "congestion control of its sender"];
        let names = ["flow", "profile", "cc"].into_iter().zip(says).zip(self.names);
        for ((name, says), mut names) in names {
            columns.push(ArrowColumn::new(name, says, Arc::new(names.finish())));
        }
        for (figure, mut values) in FIGURES.into_iter().zip(self.figures) {
            columns.push(ArrowColumn::new(figure.name, figure.help, Arc::new(values.finish())));
        }
        let table = batch(columns).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Table::from(table))
    }
}

/// Parses rows from lines of JSON until the call is cancelled; the caller raises the reason.
fn parse(lines: &[u8], watched: &LongCall, mut each: impl FnMut(SweepRow)) -> PyResult<()> {
    let text = str::from_utf8(lines).map_err(|error| PyValueError::new_err(error.to_string()))?;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if watched.is_to_end() {
            break;
        }
        let row = SweepRow::from_line(line).ok_or_else(|| {
            PyValueError::new_err(format!("line {}: not a row of a sweep", number + 1))
        })?;
        each(row);
    }
    Ok(())
}

fn text(bytes: Vec<u8>) -> PyResult<String> {
    String::from_utf8(bytes).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
