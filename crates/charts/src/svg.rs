//! Charts of runs as SVG: lines and steps over time, in stacked panels.
//!
//! A chart is plain data. Values are integers with a fixed decimal point, and all computations up
//! to the written coordinates use integer arithmetic, so the same chart has the same bytes on every
//! machine. Colours are those of Okabe and Ito; dashes and markers also distinguish series. The
//! background is always light, for pages that may be dark.
//!
//! ```
//! use charts::svg::{Chart, ChartAxis, ChartMark, ChartPanel, ChartPoint, ChartSeries, Draw};
//! # use ackclock_charts as charts;
//!
//! // Time in nanoseconds shown in seconds, windows in bytes shown in kB.
//! let cwnd = [ChartPoint { x: 0, y: 14_480 }, ChartPoint { x: 100_600_000, y: 17_376 }];
//! let chart = Chart {
//!     title: "Slow start behind a receiver with LRO",
//!     x: ChartAxis { title: "time", unit: "s", decimals: 9 },
//!     panels: vec![ChartPanel {
//!         y: ChartAxis { title: "congestion window", unit: "kB", decimals: 3 },
//!         series: vec![ChartSeries {
//!             name: "FreeBSD 13.2",
//!             look: 0,
//!             draw: Draw::Step,
//!             points: &cwnd,
//!         }],
//!         ..ChartPanel::default()
//!     }],
//!     marks: vec![ChartMark { at: 100_000_000, label: "first ACK of data" }],
//!     ..Chart::default()
//! };
//! let mut svg = Vec::new();
//! chart.write(&mut svg)?;
//! assert!(svg.starts_with(b"<svg "));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A long series is reduced to at most four points per pixel column: its first, lowest, highest and
//! last value there, so no peak is lost.
//!
//! Not supported: logarithmic axes, a second axis on the right, scripts.

mod decimate;
mod heat;
mod layout;
mod look;
mod number;
mod plot;
mod scale;
mod text;
mod write;

pub use heat::{HeatCell, HeatMap};

/// A chart of one or more panels over a common axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart<'a> {
    /// Title, one line.
    pub title: &'a str,
    /// Source in one line: scenario, seed, version. Omitted if empty.
    pub subtitle: &'a str,
    /// The common axis.
    pub x: ChartAxis<'a>,
    /// Panels from top to bottom.
    pub panels: Vec<ChartPanel<'a>>,
    /// Labelled vertical lines through all panels.
    pub marks: Vec<ChartMark<'a>>,
    /// Width of the chart in pixels, from 320 to 10,000.
    pub width: u32,
}

impl Default for Chart<'_> {
    fn default() -> Self {
        Self {
            title: "",
            subtitle: "",
            x: ChartAxis::default(),
            panels: Vec::new(),
            marks: Vec::new(),
            width: 880,
        }
    }
}

/// An axis: quantity and number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChartAxis<'a> {
    /// Quantity.
    pub title: &'a str,
    /// Unit; omitted if empty.
    pub unit: &'a str,
    /// Decimals of a value (at most 18): with 3, a value of 1500 is shown as 1.5.
    pub decimals: u32,
}

/// One pair of axes with its series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartPanel<'a> {
    /// The vertical axis; it starts at zero, or lower for negative values.
    pub y: ChartAxis<'a>,
    /// The series, later ones drawn over earlier ones.
    pub series: Vec<ChartSeries<'a>>,
    /// Height of the plot in pixels, from 60 to 4,000.
    pub height: u32,
}

impl Default for ChartPanel<'_> {
    fn default() -> Self {
        Self { y: ChartAxis::default(), series: Vec::new(), height: 260 }
    }
}

/// A series of points in ascending x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartSeries<'a> {
    /// Name in the legend.
    pub name: &'a str,
    /// Style number: colour, dash and marker; repeats after seven. The same flow should have the
    /// same style in all panels.
    pub look: u8,
    /// How the points are joined.
    pub draw: Draw,
    /// The values.
    pub points: &'a [ChartPoint],
}

/// How the points of a series are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Draw {
    /// Straight from point to point.
    #[default]
    Line,
    /// Steps: a value holds until the next one.
    Step,
    /// Markers only.
    Points,
    /// Pairs of points: a vertical error bar between them.
    Whiskers,
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ChartPoint {
    /// Coordinate on the common axis.
    pub x: i64,
    /// The value.
    pub y: i64,
}

/// A labelled vertical line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChartMark<'a> {
    /// Coordinate on the common axis.
    pub at: i64,
    /// Label.
    pub label: &'a str,
}

#[cfg(test)]
mod tests;
