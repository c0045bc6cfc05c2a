//! The data that the page's program reads: one JSON text for all plots and grids.

use std::io::{self, Write};

use serde::Serialize;

use crate::grid::{GridFigure, GridPlot, GridScope};
use crate::pack::Pack;
use crate::page::PagePart;
use crate::plots::{PlotAxis, PlotPanel, PlotSeries, Plots};

#[derive(Serialize)]
struct PageData<'a> {
    plots: Vec<PlotsData<'a>>,
    grids: Vec<GridData<'a>>,
}

#[derive(Serialize)]
struct PlotsData<'a> {
    id: &'a str,
    title: &'a str,
    x: AxisData<'a>,
    panels: Vec<PanelData<'a>>,
    /// All columns of all series, packed in order.
    packed: String,
}

#[derive(Serialize)]
struct AxisData<'a> {
    title: &'a str,
    unit: &'a str,
    decimals: u32,
    also: &'a Option<(String, u64)>,
}

impl<'a> AxisData<'a> {
    fn of(axis: &'a PlotAxis) -> Self {
        let PlotAxis { title, unit, decimals, also } = axis;
        Self { title, unit, decimals: *decimals, also }
    }
}

#[derive(Serialize)]
struct PanelData<'a> {
    y: AxisData<'a>,
    from_zero: bool,
    height: u32,
    note: &'a str,
    series: Vec<SeriesData<'a>>,
}

#[derive(Serialize)]
struct SeriesData<'a> {
    name: &'a str,
    role: String,
    mark: &'a str,
    shown: bool,
    thinned: &'a str,
    /// Number of values.
    n: usize,
    bars: bool,
    words: &'a [String],
}

#[derive(Serialize)]
struct GridData<'a> {
    id: &'a str,
    axes: Vec<GridAxisData<'a>>,
    figures: Vec<[&'a str; 3]>,
    flows: &'a [String],
    n: usize,
    /// Indices on each axis and of the flow, one column each.
    places: String,
    /// The figures, one column each.
    values: String,
}

#[derive(Serialize)]
struct GridAxisData<'a> {
    name: &'a str,
    values: &'a [String],
    numbers: &'a [f64],
}

/// Writes the data of all parts.
pub(super) fn write(out: &mut impl Write, parts: &[PagePart]) -> io::Result<()> {
    let mut data = PageData { plots: Vec::new(), grids: Vec::new() };
    for part in parts {
        match part {
            PagePart::Plots(plots) => data.plots.push(of_plots(plots)),
            PagePart::Grid(grid) => data.grids.push(of_grid(grid)),
            _ => {}
        }
    }
    let json = serde_json::to_string(&data).map_err(io::Error::other)?;
    // The text must not close its script element.
    let json = json.replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" id=\"data\">{json}</script>")
}

fn of_plots(plots: &Plots) -> PlotsData<'_> {
    let mut pack = Pack::default();
    for series in plots.panels.iter().flat_map(|panel| &panel.series) {
        for column in series.columns() {
            pack.column(column.iter().copied());
        }
        pack.column(series.word.iter().map(|&word| i64::from(word)));
    }
    PlotsData {
        id: &plots.id,
        title: &plots.title,
        x: AxisData::of(&plots.x),
        panels: plots.panels.iter().map(of_panel).collect(),
        packed: pack.text(),
    }
}

fn of_panel(panel: &PlotPanel) -> PanelData<'_> {
    PanelData {
        y: AxisData::of(&panel.y),
        from_zero: panel.from_zero,
        height: panel.height,
        note: &panel.note,
        series: panel.series.iter().map(of_series).collect(),
    }
}

fn of_series(series: &PlotSeries) -> SeriesData<'_> {
    SeriesData {
        name: &series.name,
        role: series.role.class(),
        mark: series.mark.class(),
        shown: series.is_shown,
        thinned: &series.thinned,
        n: series.x.len(),
        bars: !series.top.is_empty(),
        words: &series.words,
    }
}

/// Name, unit and scope.
fn of_figure(figure: &GridFigure) -> [&str; 3] {
    let scope = match figure.scope {
        GridScope::Sum => "sum",
        GridScope::Flow => "flow",
        GridScope::Run => "run",
    };
    [&figure.name, &figure.unit, scope]
}

fn of_grid(grid: &GridPlot) -> GridData<'_> {
    let (mut places, mut values) = (Pack::default(), Pack::default());
    for axis in 0..grid.axes.len() {
        places
            .column(grid.points.iter().map(|point| point.at.get(axis).map_or(0, |&at| at.into())));
    }
    places.column(grid.points.iter().map(|point| point.flow.into()));
    for figure in 0..grid.figures.len() {
        values.floats(grid.points.iter().map(|point| point.figures.get(figure).copied().flatten()));
    }
    GridData {
        id: &grid.id,
        axes: grid
            .axes
            .iter()
            .map(|axis| GridAxisData {
                name: &axis.name,
                values: &axis.values,
                numbers: &axis.numbers,
            })
            .collect(),
        figures: grid.figures.iter().map(of_figure).collect(),
        flows: &grid.flows,
        n: grid.points.len(),
        places: places.text(),
        values: values.text(),
    }
}
