//! Layout without overlapping text.

use super::number::Px;
use super::scale::Scale;
use super::text::width;
use super::{Chart, ChartPanel, ChartSeries};

/// Colour of secondary text: tick labels, subtitle, marks.
pub(super) const PALE_INK: &str = "#57606a";

/// Font sizes in pixels.
pub(super) const TITLE: i64 = 17;
pub(super) const TEXT: i64 = 12;
pub(super) const SMALL: i64 = 11;

pub(super) const MARGIN: i64 = 20;
pub(super) const LEGEND_ROW: i64 = 20;
pub(super) const MARK_ROW: i64 = 15;
/// Distance from the bottom of the last plot to the baseline of the common axis title.
pub(super) const TITLE_BELOW: i64 = 38;
/// Minimum distance between ticks.
const TICKS_APART_X: i64 = 80;
const TICKS_APART_Y: i64 = 42;
/// Width of a legend sample, and the gaps after sample and name.
pub(super) const SAMPLE: i64 = 30;
pub(super) const SAMPLE_GAP: i64 = 7;
const NAME_GAP: i64 = 18;

/// Edges of the chart and its plots, in pixels from the upper left corner.
pub(super) struct ChartLayout {
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) left: i64,
    pub(super) right: i64,
    pub(super) x: Scale,
    pub(super) marks_top: i64,
    pub(super) frames: Vec<PanelFrame>,
    pub(super) plot_bottom: i64,
}

/// Vertical extent of a panel.
pub(super) struct PanelFrame {
    pub(super) left: i64,
    pub(super) right: i64,
    pub(super) top: i64,
    pub(super) bottom: i64,
    /// Upper edge of the row with the axis title and the first legend row.
    pub(super) head: i64,
    pub(super) y: Scale,
}

impl ChartLayout {
    pub(super) fn of(chart: &Chart<'_>) -> Self {
        let picture = i64::from(chart.width.clamp(320, 10_000));
        let mut at = MARGIN;
        at += if chart.title.is_empty() { 0 } else { TITLE + 7 };
        at += if chart.subtitle.is_empty() { 0 } else { TEXT + 10 };
        // The labels of the vertical axes determine the left edge of the plots, the last tick label
        // of the common axis their right edge.
        let widest = chart.panels.iter().flat_map(|panel| {
            let y = scale_y(panel, height(panel), 0);
            y.ticks().map(|(_, label)| width(&label.to_string(), SMALL)).max()
        });
        let left = MARGIN + widest.max().unwrap_or(0) + 8;
        let range = range_x(chart);
        let scale_x = |right| {
            let pixels = (Px::whole(left), Px::whole(right));
            Scale::exact(range, pixels, TICKS_APART_X, chart.x.decimals)
        };
        let beyond = scale_x(picture - MARGIN).ticks().last().map_or(0, |(position, label)| {
            position.0 / 100 + width(&label.to_string(), SMALL) / 2 + 6 - picture
        });
        let right = picture - MARGIN - beyond.max(0);
        let x = scale_x(right);

        let mut frames = Vec::with_capacity(chart.panels.len());
        let mut marks_top = at;
        for (number, panel) in chart.panels.iter().enumerate() {
            let head = at;
            at += LEGEND_ROW * legend_rows(panel, right - MARGIN) + 4;
            if number == 0 {
                marks_top = at;
                let rows = mark_labels(chart, &x, right).iter().map(|label| label.row + 1).max();
                at += MARK_ROW * rows.unwrap_or(0);
            }
            at += 6;
            let (top, bottom) = (at, at + height(panel));
            let y = scale_y(panel, bottom, top);
            frames.push(PanelFrame { left, right, top, bottom, head, y });
            at = bottom + 18;
        }
        let plot_bottom = frames.last().map_or(at, |frame| frame.bottom);
        let height = plot_bottom + TITLE_BELOW + MARGIN - 4;
        Self { width: picture, height, left, right, x, marks_top, frames, plot_bottom }
    }
}

pub(super) fn axis_title(title: &str, unit: &str) -> String {
    if unit.is_empty() { title.to_owned() } else { format!("{title} ({unit})") }
}

/// Positions of the legend entries: row, pixel of the sample, series. They are right of the axis
/// title, and in further rows if needed.
pub(super) fn legend<'a, 'b>(
    panel: &'b ChartPanel<'a>,
    room: i64,
) -> impl Iterator<Item = (i64, i64, &'b ChartSeries<'a>)> {
    // Bold text is wider by a tenth.
    let title = width(&axis_title(panel.y.title, panel.y.unit), TEXT) * 11 / 10;
    let first = MARGIN + title + NAME_GAP;
    let (mut row, mut at) = (0, first);
    panel.series.iter().filter(|series| !series.name.is_empty()).map(move |series| {
        let needed = SAMPLE + SAMPLE_GAP + width(series.name, TEXT);
        let begin = if row == 0 { first } else { MARGIN };
        if at > begin && at + needed > MARGIN + room {
            (row, at) = (row + 1, MARGIN);
        }
        let position = (row, at, series);
        at += needed + NAME_GAP;
        position
    })
}

fn legend_rows(panel: &ChartPanel<'_>, room: i64) -> i64 {
    legend(panel, room).last().map_or(1, |(row, ..)| row + 1)
}

/// Position of a mark's label in pixels.
pub(super) struct Label {
    /// Left end, or right end if it is left of its line.
    pub(super) at: i64,
    pub(super) is_left: bool,
    pub(super) row: i64,
}

/// The labels of the marks: right of their lines if they fit, and below all labels that cross the
/// line.
pub(super) fn mark_labels(chart: &Chart<'_>, x: &Scale, right: i64) -> Vec<Label> {
    let mut ends: Vec<i64> = Vec::new();
    let places = chart.marks.iter().map(|mark| {
        let line = x.position(mark.at).0 / 100;
        let needed = width(mark.label, SMALL);
        let is_left = line + 4 + needed > right;
        let (begin, at) = if is_left { (line - 4 - needed, line - 4) } else { (line, line + 4) };
        let row = ends.iter().rposition(|&end| end + 8 > begin).map_or(0, |row| row + 1);
        if row == ends.len() {
            ends.push(0);
        }
        ends[row] = if is_left { line } else { line + 4 + needed };
        Label { at, is_left, row: row as i64 }
    });
    places.collect()
}

/// Height of the plot of a panel.
fn height(panel: &ChartPanel<'_>) -> i64 {
    i64::from(panel.height.clamp(60, 4_000))
}

fn scale_y(panel: &ChartPanel<'_>, bottom: i64, top: i64) -> Scale {
    let pixels = (Px::whole(bottom), Px::whole(top));
    Scale::rounded(range_y(panel), pixels, TICKS_APART_Y, panel.y.decimals)
}

/// Smallest and largest coordinate on the common axis.
fn range_x(chart: &Chart<'_>) -> (i64, i64) {
    let points = chart.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| s.points);
    let all = points.map(|point| point.x).chain(chart.marks.iter().map(|mark| mark.at));
    all.fold(None, |range, x| {
        let (low, high) = range.unwrap_or((x, x));
        Some((x.min(low), x.max(high)))
    })
    .unwrap_or((0, 0))
}

/// Zero, lowest and highest value of a panel.
fn range_y(panel: &ChartPanel<'_>) -> (i64, i64) {
    let values = panel.series.iter().flat_map(|series| series.points).map(|point| point.y);
    values.fold((0, 0), |(low, high), y| (y.min(low), y.max(high)))
}
