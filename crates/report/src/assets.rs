//! What runs in the browser, in the order in which it is read there.

/// The look.
pub(crate) const STYLE: [&str; 2] =
    [include_str!("assets/page.css"), include_str!("assets/plots.css")];

/// The program: one function, so that none of its names is anybody else's.
pub(crate) const PROGRAM: [&str; 10] = [
    include_str!("assets/codec.js"),
    include_str!("assets/numbers.js"),
    include_str!("assets/series.js"),
    include_str!("assets/draw.js"),
    include_str!("assets/panel.js"),
    include_str!("assets/plots.js"),
    include_str!("assets/gestures.js"),
    include_str!("assets/lines.js"),
    include_str!("assets/grid.js"),
    include_str!("assets/page.js"),
];
