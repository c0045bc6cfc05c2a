//! Styles of series: distinct colour, dash and marker.

use std::io::{self, Write};

use super::decimate::Dot;
use super::number::Px;

/// The style of a series.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesStyle {
    pub(super) colour: &'static str,
    /// `stroke-dasharray`; empty for a solid line.
    pub(super) dash: &'static str,
    marker: Marker,
}

#[derive(Debug, Clone, Copy)]
enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Cross,
    Plus,
}

/// Colours of Okabe and Ito ("Color Universal Design", 2008) without the yellow, which is
/// unreadable on a light background.
const LOOKS: [SeriesStyle; 7] = [
    SeriesStyle { colour: "#0072b2", dash: "", marker: Marker::Circle },
    SeriesStyle { colour: "#d55e00", dash: "7 3", marker: Marker::Square },
    SeriesStyle { colour: "#009e73", dash: "2 2.5", marker: Marker::Triangle },
    SeriesStyle { colour: "#cc79a7", dash: "9 3 2 3", marker: Marker::Diamond },
    SeriesStyle { colour: "#e69f00", dash: "12 4", marker: Marker::TriangleDown },
    SeriesStyle { colour: "#56b4e9", dash: "4 2", marker: Marker::Cross },
    SeriesStyle { colour: "#000000", dash: "1.5 4", marker: Marker::Plus },
];

impl SeriesStyle {
    pub(super) fn number(number: u8) -> Self {
        LOOKS[usize::from(number) % LOOKS.len()]
    }

    /// Does the marker consist of lines only?
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.marker, Marker::Cross | Marker::Plus)
    }

    /// Path data of the marker around `(x, y)`.
    pub(super) fn marker(&self, out: &mut impl Write, (x, y): Dot) -> io::Result<()> {
        let at = |dx: i64, dy: i64| (Px(x.0 + dx), Px(y.0 + dy));
        let (start, rest) = match self.marker {
            Marker::Circle => (at(-320, 0), "a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z"),
            Marker::Square => (at(-280, -280), "h5.6v5.6h-5.6z"),
            Marker::Triangle => (at(0, -380), "l3.6 6.4h-7.2z"),
            Marker::Diamond => (at(0, -400), "l4 4l-4 4l-4-4z"),
            Marker::TriangleDown => (at(0, 380), "l-3.6-6.4h7.2z"),
            Marker::Cross => (at(-300, -300), "l6 6m0-6l-6 6"),
            Marker::Plus => (at(-380, 0), "h7.6m-3.8-3.8v7.6"),
        };
        write!(out, "M{} {}{rest}", start.0, start.1)
    }
}
