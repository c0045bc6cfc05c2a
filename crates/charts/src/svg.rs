//! Charts of runs as SVG: lines and steps over time, one panel above the other.
//!
//! A chart is plain data. Values are integers with a fixed decimal point, and everything from them
//! to the written coordinates is integer arithmetic, so the same chart has the same bytes on every
//! machine. Colours are those of Okabe and Ito; dashes and markers tell series apart without them.
//! The background is light of its own, for pages that may be dark.
//!
//! ```
//! use charts::svg::{Axis, Chart, Draw, Mark, Panel, Point, Series};
//! # use ackclock_charts as charts;
//!
//! // Time in nanoseconds shown in seconds, windows in bytes shown in kB.
//! let cwnd = [Point { x: 0, y: 14_480 }, Point { x: 100_600_000, y: 17_376 }];
//! let chart = Chart {
//!     title: "Slow start behind a receiver with LRO",
//!     x: Axis { title: "time", unit: "s", decimals: 9 },
//!     panels: vec![Panel {
//!         y: Axis { title: "congestion window", unit: "kB", decimals: 3 },
//!         series: vec![Series { name: "FreeBSD 13.2", look: 0, draw: Draw::Step, points: &cwnd }],
//!         ..Panel::default()
//!     }],
//!     marks: vec![Mark { at: 100_000_000, label: "first ACK of data" }],
//!     ..Chart::default()
//! };
//! let mut svg = Vec::new();
//! chart.write(&mut svg)?;
//! assert!(svg.starts_with(b"<svg "));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A long series costs no more than four points for each column of pixels: its first, lowest,
//! highest and last value there, so no peak is lost.
//!
//! What it does not do: no logarithms, no second axis on the right, no script.

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

/// A picture of one or more panels over a common axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart<'a> {
    /// What it shows, in one line.
    pub title: &'a str,
    /// Where it is from, in one line: scenario, seed, version. Left out if empty.
    pub subtitle: &'a str,
    /// The common axis.
    pub x: Axis<'a>,
    /// From top to bottom.
    pub panels: Vec<Panel<'a>>,
    /// Moments with a name, drawn through all panels.
    pub marks: Vec<Mark<'a>>,
    /// Width of the picture in pixels, from 320 to 10,000.
    pub width: u32,
}

impl Default for Chart<'_> {
    fn default() -> Self {
        Self {
            title: "",
            subtitle: "",
            x: Axis::default(),
            panels: Vec::new(),
            marks: Vec::new(),
            width: 880,
        }
    }
}

/// An axis: what it counts and how values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Axis<'a> {
    /// What it counts.
    pub title: &'a str,
    /// Its unit; left out if empty.
    pub unit: &'a str,
    /// Digits of a value behind the decimal point (at most 18): with 3, a value of 1500 is shown
    /// as 1.5.
    pub decimals: u32,
}

/// One pair of axes with its series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panel<'a> {
    /// The upright axis; it begins at zero, or lower if a value does.
    pub y: Axis<'a>,
    /// What is drawn, later ones over earlier ones.
    pub series: Vec<Series<'a>>,
    /// Height of the plot in pixels, from 60 to 4,000.
    pub height: u32,
}

impl Default for Panel<'_> {
    fn default() -> Self {
        Self { y: Axis::default(), series: Vec::new(), height: 260 }
    }
}

/// Values in the order of their x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series<'a> {
    /// Its name in the legend.
    pub name: &'a str,
    /// Colour, dash and marker by number; after seven they come again. The same flow in two
    /// panels should look the same.
    pub look: u8,
    /// How the points are joined.
    pub draw: Draw,
    /// The values.
    pub points: &'a [Point],
}

/// How the points of a series are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Draw {
    /// Straight from point to point.
    #[default]
    Line,
    /// A value holds until the next one.
    Step,
    /// Not at all: markers only.
    Points,
    /// Two by two: an upright bar from the one to the other, as for the uncertainty of a value.
    Whiskers,
}

/// A value at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Point {
    /// Place on the common axis.
    pub x: i64,
    /// The value.
    pub y: i64,
}

/// A moment with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark<'a> {
    /// Place on the common axis.
    pub at: i64,
    /// Its name.
    pub label: &'a str,
}

#[cfg(test)]
mod tests;
