//! One panel: grid, series, labels.

use std::io::{self, Write};

use super::decimate::{Dot, decimate, scatter};
use super::layout::{PALE_INK, PanelFrame, SAMPLE, SMALL};
use super::look::SeriesStyle;
use super::number::Px;
use super::scale::Scale;
use super::{ChartPanel, ChartSeries, Draw};

const GRID: &str = "#e6e9ed";
/// Minimum distance between markers of a line.
const MARKER_GAP: Px = Px::whole(14);
/// Distance between markers of a line with more points than fit at that distance.
const SPARSE_GAP: Px = Px::whole(76);

/// The inputs for drawing a panel.
pub(super) struct Plot<'a> {
    pub(super) panel: &'a ChartPanel<'a>,
    pub(super) frame: &'a PanelFrame,
    pub(super) x: &'a Scale,
    /// Is it the lowest panel, with the labels of the common axis?
    pub(super) last: bool,
}

pub(super) fn write_plot(out: &mut impl Write, plot: &Plot<'_>) -> io::Result<()> {
    write_grid(out, plot)?;
    for series in &plot.panel.series {
        write_series(out, plot, series)?;
    }
    Ok(())
}

/// Writes the grid lines, the tick labels, and the baseline of the panel.
fn write_grid(out: &mut impl Write, plot: &Plot<'_>) -> io::Result<()> {
    let &PanelFrame { left, right, top, bottom, y, .. } = plot.frame;
    write!(out, "<path stroke=\"{GRID}\" fill=\"none\" shape-rendering=\"crispEdges\" d=\"")?;
    for (position, _) in y.ticks() {
        write!(out, "M{left} {position}H{right}")?;
    }
    for (position, _) in plot.x.ticks() {
        write!(out, "M{position} {top}V{bottom}")?;
    }
    writeln!(out, "\"/>")?;
    // The axis is at zero, which is the baseline unless there are negative values.
    writeln!(
        out,
        "<path stroke=\"{PALE_INK}\" shape-rendering=\"crispEdges\" d=\"M{left} {}H{right}\"/>",
        y.position(0)
    )?;
    writeln!(out, "<g font-size=\"{SMALL}\" fill=\"{PALE_INK}\" text-anchor=\"end\">")?;
    for (position, label) in y.ticks() {
        writeln!(out, "<text x=\"{}\" y=\"{}\">{label}</text>", left - 8, Px(position.0 + 400))?;
    }
    writeln!(out, "</g>")?;
    if plot.last {
        writeln!(out, "<g font-size=\"{SMALL}\" fill=\"{PALE_INK}\" text-anchor=\"middle\">")?;
        for (position, label) in plot.x.ticks() {
            writeln!(out, "<text x=\"{position}\" y=\"{}\">{label}</text>", bottom + 16)?;
        }
        writeln!(out, "</g>")?;
    }
    Ok(())
}

fn write_series(out: &mut impl Write, plot: &Plot<'_>, series: &ChartSeries<'_>) -> io::Result<()> {
    let position =
        |point: &super::ChartPoint| (plot.x.position(point.x), plot.frame.y.position(point.y));
    let look = SeriesStyle::number(series.look);
    if series.draw == Draw::Whiskers {
        write!(out, "<path fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\" d=\"", look.colour)?;
        for pair in series.points.chunks_exact(2) {
            let ((x, from), (_, to)) = (position(&pair[0]), position(&pair[1]));
            let left = Px(x.0 - 400);
            write!(out, "M{left} {from}h8M{left} {to}h8M{x} {from}V{to}")?;
        }
        return writeln!(out, "\"/>");
    }
    if series.draw != Draw::Points {
        open_line(out, &look)?;
        let mut pen = Pen::new(series.draw);
        decimate(series.points, position, |dot| pen.go_to(out, dot))?;
        pen.lift(out)?;
        writeln!(out, "\"/>")?;
    }

    let (left, right) = (Px::whole(plot.frame.left), Px::whole(plot.frame.right));
    let fits = series.points.len() as i64 <= (right.0 - left.0) / MARKER_GAP.0;
    let mut next = if fits {
        None
    } else {
        // Each style starts at another offset, so that markers of equal series do not hide each
        // other.
        Some(left.0 + SPARSE_GAP.0 * (2 * i64::from(series.look % 7) + 1) / 14)
    };
    open_markers(out, &look)?;
    if series.draw == Draw::Points {
        scatter(series.points, position, |dot| look.marker(out, dot))?;
        return writeln!(out, "\"/>");
    }
    decimate(series.points, position, |dot| {
        match &mut next {
            Some(next) if dot.0.0 < *next => return Ok(()),
            Some(next) => *next += (1 + (dot.0.0 - *next) / SPARSE_GAP.0) * SPARSE_GAP.0,
            None => {}
        }
        look.marker(out, dot)
    })?;
    writeln!(out, "\"/>")
}

/// Writes a legend sample of `series` at pixel `x` and height `y`.
pub(super) fn write_sample(
    out: &mut impl Write,
    series: &ChartSeries<'_>,
    x: i64,
    y: i64,
) -> io::Result<()> {
    let look = SeriesStyle::number(series.look);
    if series.draw != Draw::Points {
        open_line(out, &look)?;
        writeln!(out, "M{x} {y}H{}\"/>", x + SAMPLE)?;
    }
    open_markers(out, &look)?;
    look.marker(out, (Px::whole(x + SAMPLE / 2), Px::whole(y)))?;
    writeln!(out, "\"/>")
}

fn open_line(out: &mut impl Write, look: &SeriesStyle) -> io::Result<()> {
    let SeriesStyle { colour, dash, .. } = look;
    write!(out, "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"")?;
    if !dash.is_empty() {
        write!(out, " stroke-dasharray=\"{dash}\"")?;
    }
    write!(out, " stroke-linejoin=\"round\" d=\"")
}

fn open_markers(out: &mut impl Write, look: &SeriesStyle) -> io::Result<()> {
    let colour = look.colour;
    if look.is_open() {
        write!(out, "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.7\" d=\"")
    } else {
        write!(out, "<path fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"0.7\" d=\"")
    }
}

/// Writes the path of a line without redundant points.
struct Pen {
    draw: Draw,
    at: Option<Dot>,
    /// End of a pending horizontal segment.
    level: Option<Px>,
}

impl Pen {
    const fn new(draw: Draw) -> Self {
        Self { draw, at: None, level: None }
    }

    fn go_to(&mut self, out: &mut impl Write, dot: Dot) -> io::Result<()> {
        let Some(before) = self.at.replace(dot) else {
            return write!(out, "M{} {}", dot.0, dot.1);
        };
        if self.draw == Draw::Line {
            return if before == dot { Ok(()) } else { write!(out, "L{} {}", dot.0, dot.1) };
        }
        if before.0 != dot.0 {
            self.level = Some(dot.0);
        }
        if before.1 != dot.1 {
            self.lift(out)?;
            write!(out, "V{}", dot.1)?;
        }
        Ok(())
    }

    fn lift(&mut self, out: &mut impl Write) -> io::Result<()> {
        match self.level.take() {
            Some(x) => write!(out, "H{x}"),
            None => Ok(()),
        }
    }
}
