//! The style and the program of pages, in the order of inclusion.

/// The style sheets.
pub(crate) const STYLE: [&str; 2] =
    [include_str!("assets/page.css"), include_str!("assets/plots.css")];

/// The scripts: one function, so that no name is global.
pub(crate) const PROGRAM: [&str; 12] = [
    include_str!("assets/codec.js"),
    include_str!("assets/numbers.js"),
    include_str!("assets/series.js"),
    include_str!("assets/draw.js"),
    include_str!("assets/panel.js"),
    include_str!("assets/save.js"),
    include_str!("assets/plots.js"),
    include_str!("assets/gestures.js"),
    include_str!("assets/lines.js"),
    include_str!("assets/grid.js"),
    include_str!("assets/tables.js"),
    include_str!("assets/page.js"),
];
