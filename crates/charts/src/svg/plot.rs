//! One panel: grid, series, labels.

use std::io::{self, Write};

use super::decimate::{Dot, decimate, scatter};
use super::layout::{Frame, PALE_INK, SAMPLE, SMALL};
use super::look::Look;
use super::number::Px;
use super::scale::Scale;
use super::{Draw, Panel, Series};

const GRID: &str = "#e6e9ed";
/// Markers of a line are at least so far apart.
const MARKER_GAP: Px = Px::whole(14);
/// A line with more points than fit by that gap has a marker only so often.
const SPARSE_GAP: Px = Px::whole(76);

/// What is needed to draw a panel.
pub(super) struct Plot<'a> {
    pub(super) panel: &'a Panel<'a>,
    pub(super) frame: &'a Frame,
    pub(super) x: &'a Scale,
    /// Is it the lowest, which has the labels of the common axis?
    pub(super) last: bool,
}

pub(super) fn write_plot(out: &mut impl Write, plot: &Plot<'_>) -> io::Result<()> {
    write_grid(out, plot)?;
    for series in &plot.panel.series {
        write_series(out, plot, series)?;
    }
    Ok(())
}

/// Lines at the ticks, the labels, and the foot of the panel.
fn write_grid(out: &mut impl Write, plot: &Plot<'_>) -> io::Result<()> {
    let &Frame { left, right, top, bottom, y, .. } = plot.frame;
    write!(out, "<path stroke=\"{GRID}\" fill=\"none\" shape-rendering=\"crispEdges\" d=\"")?;
    for (place, _) in y.ticks() {
        write!(out, "M{left} {place}H{right}")?;
    }
    for (place, _) in plot.x.ticks() {
        write!(out, "M{place} {top}V{bottom}")?;
    }
    writeln!(out, "\"/>")?;
    // The axis lies at zero, which is the foot unless there are values below.
    writeln!(
        out,
        "<path stroke=\"{PALE_INK}\" shape-rendering=\"crispEdges\" d=\"M{left} {}H{right}\"/>",
        y.place(0)
    )?;
    writeln!(out, "<g font-size=\"{SMALL}\" fill=\"{PALE_INK}\" text-anchor=\"end\">")?;
    for (place, label) in y.ticks() {
        writeln!(out, "<text x=\"{}\" y=\"{}\">{label}</text>", left - 8, Px(place.0 + 400))?;
    }
    writeln!(out, "</g>")?;
    if plot.last {
        writeln!(out, "<g font-size=\"{SMALL}\" fill=\"{PALE_INK}\" text-anchor=\"middle\">")?;
        for (place, label) in plot.x.ticks() {
            writeln!(out, "<text x=\"{place}\" y=\"{}\">{label}</text>", bottom + 16)?;
        }
        writeln!(out, "</g>")?;
    }
    Ok(())
}

fn write_series(out: &mut impl Write, plot: &Plot<'_>, series: &Series<'_>) -> io::Result<()> {
    let place = |point: &super::Point| (plot.x.place(point.x), plot.frame.y.place(point.y));
    let look = Look::number(series.look);
    if series.draw == Draw::Whiskers {
        write!(out, "<path fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\" d=\"", look.colour)?;
        for pair in series.points.chunks_exact(2) {
            let ((x, from), (_, to)) = (place(&pair[0]), place(&pair[1]));
            let left = Px(x.0 - 400);
            write!(out, "M{left} {from}h8M{left} {to}h8M{x} {from}V{to}")?;
        }
        return writeln!(out, "\"/>");
    }
    if series.draw != Draw::Points {
        open_line(out, &look)?;
        let mut pen = Pen::new(series.draw);
        decimate(series.points, place, |dot| pen.go_to(out, dot))?;
        pen.lift(out)?;
        writeln!(out, "\"/>")?;
    }

    let (left, right) = (Px::whole(plot.frame.left), Px::whole(plot.frame.right));
    let fits = series.points.len() as i64 <= (right.0 - left.0) / MARKER_GAP.0;
    let mut next = if fits {
        None
    } else {
        // Each look begins elsewhere, so that markers of equal series do not hide each other.
        Some(left.0 + SPARSE_GAP.0 * (2 * i64::from(series.look % 7) + 1) / 14)
    };
    open_markers(out, &look)?;
    if series.draw == Draw::Points {
        scatter(series.points, place, |dot| look.marker(out, dot))?;
        return writeln!(out, "\"/>");
    }
    decimate(series.points, place, |dot| {
        match &mut next {
            Some(next) if dot.0.0 < *next => return Ok(()),
            Some(next) => *next += (1 + (dot.0.0 - *next) / SPARSE_GAP.0) * SPARSE_GAP.0,
            None => {}
        }
        look.marker(out, dot)
    })?;
    writeln!(out, "\"/>")
}

/// A short piece of `series` for the legend, from pixel `x` on at height `y`.
pub(super) fn write_sample(
    out: &mut impl Write,
    series: &Series<'_>,
    x: i64,
    y: i64,
) -> io::Result<()> {
    let look = Look::number(series.look);
    if series.draw != Draw::Points {
        open_line(out, &look)?;
        writeln!(out, "M{x} {y}H{}\"/>", x + SAMPLE)?;
    }
    open_markers(out, &look)?;
    look.marker(out, (Px::whole(x + SAMPLE / 2), Px::whole(y)))?;
    writeln!(out, "\"/>")
}

fn open_line(out: &mut impl Write, look: &Look) -> io::Result<()> {
    let Look { colour, dash, .. } = look;
    write!(out, "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"")?;
    if !dash.is_empty() {
        write!(out, " stroke-dasharray=\"{dash}\"")?;
    }
    write!(out, " stroke-linejoin=\"round\" d=\"")
}

fn open_markers(out: &mut impl Write, look: &Look) -> io::Result<()> {
    let colour = look.colour;
    if look.is_open() {
        write!(out, "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.7\" d=\"")
    } else {
        write!(out, "<path fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"0.7\" d=\"")
    }
}

/// Writes the path of a line without the points that change nothing.
struct Pen {
    draw: Draw,
    at: Option<Dot>,
    /// Where a level piece of a step ends that is not written yet.
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
