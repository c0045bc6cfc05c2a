//! The runs of a sweep, shown over any two of its axes.

/// Runs with their settings and results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GridPlot {
    /// Id within the page: letters, digits and hyphens.
    pub id: String,
    /// The varied keys.
    pub axes: Vec<GridAxis>,
    /// The measured figures.
    pub figures: Vec<GridFigure>,
    /// Names of the flows.
    pub flows: Vec<String>,
    /// One per flow of each run; those of a run are consecutive.
    pub points: Vec<GridPoint>,
}

/// The varied keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GridAxis {
    /// Key, or keys that change together.
    pub name: String,
    /// Its values in their order.
    pub values: Vec<String>,
    /// Their axis coordinates in one unit; empty if they are not quantities.
    pub numbers: Vec<f64>,
}

/// The measured figures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GridFigure {
    /// Name.
    pub name: String,
    /// Unit of its numbers: s, B and bit/s are shown with prefixes.
    pub unit: String,
    /// Its scope.
    pub scope: GridScope,
}

/// The scope of a figure. Figures of different flows are only combined as a sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GridScope {
    /// A flow; the sum over the flows of a run is a figure of the run.
    Sum,
    /// A flow.
    #[default]
    Flow,
    /// A run: the same for all of its flows.
    Run,
}

/// A flow of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GridPoint {
    /// Index of the value on each axis.
    pub at: Vec<u32>,
    /// Index of the flow's name.
    pub flow: u32,
    /// The figures in their order; `None` where there is none.
    pub figures: Vec<Option<f64>>,
}
