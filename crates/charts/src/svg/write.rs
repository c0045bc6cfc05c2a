//! The chart: background, titles, legends, plots, marks.

use std::io::{self, Write};

use super::layout::{
    ChartLayout, LEGEND_ROW, MARGIN, MARK_ROW, PALE_INK, PanelFrame, SAMPLE, SAMPLE_GAP, SMALL,
    TEXT, TITLE, TITLE_BELOW, axis_title, legend, mark_labels,
};
use super::plot::{Plot, write_plot, write_sample};
use super::text::EscapedXml;
use super::{Chart, ChartPanel};

pub(super) const INK: &str = "#1f2328";
pub(super) const FONTS: &str =
    "-apple-system,BlinkMacSystemFont,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif";

impl Chart<'_> {
    /// Writes the chart.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let layout = ChartLayout::of(self);
        write_head(out, self, &layout)?;
        for (panel, frame) in self.panels.iter().zip(&layout.frames) {
            write_axis_title(out, panel, frame)?;
            write_legend(out, panel, frame)?;
            let last = frame.bottom == layout.plot_bottom;
            write_plot(out, &Plot { panel, frame, x: &layout.x, last })?;
        }
        write_marks(out, self, &layout)?;
        let middle = (layout.left + layout.right) / 2;
        let title = axis_title(self.x.title, self.x.unit);
        writeln!(
            out,
            "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"600\">{}</text>",
            layout.plot_bottom + TITLE_BELOW,
            EscapedXml(&title)
        )?;
        writeln!(out, "</svg>")
    }
}

/// Writes the background and the titles.
fn write_head(out: &mut impl Write, chart: &Chart<'_>, layout: &ChartLayout) -> io::Result<()> {
    let ChartLayout { width, height, .. } = layout;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{FONTS}\" \
             font-size=\"{TEXT}\" fill=\"{INK}\">"
    )?;
    writeln!(out, "<title>{}</title>", EscapedXml(chart.title))?;
    writeln!(
        out,
        "<rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"7\" fill=\"#ffffff\" \
             stroke=\"#d0d7de\"/>",
        width - 1,
        height - 1
    )?;
    let mut base = MARGIN;
    if !chart.title.is_empty() {
        base += TITLE - 3;
        writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{base}\" font-size=\"{TITLE}\" font-weight=\"600\">{}</text>",
            EscapedXml(chart.title)
        )?;
        base += 7 + 3;
    }
    if !chart.subtitle.is_empty() {
        base += TEXT - 3;
        writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{base}\" fill=\"{PALE_INK}\">{}</text>",
            EscapedXml(chart.subtitle)
        )?;
    }
    Ok(())
}

fn write_axis_title(
    out: &mut impl Write,
    panel: &ChartPanel<'_>,
    frame: &PanelFrame,
) -> io::Result<()> {
    writeln!(
        out,
        "<text x=\"{MARGIN}\" y=\"{}\" font-weight=\"600\">{}</text>",
        frame.head + 14,
        EscapedXml(&axis_title(panel.y.title, panel.y.unit))
    )
}

fn write_legend(
    out: &mut impl Write,
    panel: &ChartPanel<'_>,
    frame: &PanelFrame,
) -> io::Result<()> {
    for (row, at, series) in legend(panel, frame.right - MARGIN) {
        let middle = frame.head + LEGEND_ROW * row + 10;
        write_sample(out, series, at, middle)?;
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\">{}</text>",
            at + SAMPLE + SAMPLE_GAP,
            middle + 4,
            EscapedXml(series.name)
        )?;
    }
    Ok(())
}

/// Writes the marks: lines through all panels, with their labels above.
fn write_marks(out: &mut impl Write, chart: &Chart<'_>, layout: &ChartLayout) -> io::Result<()> {
    let labels = mark_labels(chart, &layout.x, layout.right);
    for (mark, label) in chart.marks.iter().zip(labels) {
        let at = layout.x.position(mark.at);
        let mut top = layout.marks_top + MARK_ROW * label.row;
        let anchor = if label.is_left { " text-anchor=\"end\"" } else { "" };
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\"{anchor} font-size=\"{SMALL}\" fill=\"{PALE_INK}\">{}</text>",
            label.at,
            top + 10,
            EscapedXml(mark.label)
        )?;
        write!(out, "<path stroke=\"{PALE_INK}\" stroke-dasharray=\"3 3\" fill=\"none\" d=\"")?;
        for (number, frame) in layout.frames.iter().enumerate() {
            if number > 0 {
                top = frame.top;
            }
            write!(out, "M{at} {top}V{}", frame.bottom)?;
        }
        writeln!(out, "\"/>")?;
    }
    Ok(())
}
