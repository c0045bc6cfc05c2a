//! The runs of a sweep, to be looked at along any two of its axes.

/// Runs with what each sets and what each measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// Name within the page: letters, digits and hyphens.
    pub id: String,
    /// What was varied.
    pub axes: Vec<GridAxis>,
    /// What was measured.
    pub figures: Vec<GridFigure>,
    /// Names of the flows.
    pub flows: Vec<String>,
    /// One for each flow of each run; those of a run stand together.
    pub points: Vec<GridPoint>,
}

/// What was varied.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GridAxis {
    /// Key, or keys that change together.
    pub name: String,
    /// Its values in their order.
    pub values: Vec<String>,
    /// Where they lie on a line, all in one unit; empty if they are no quantities.
    pub numbers: Vec<f64>,
}

/// What was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GridFigure {
    /// Name.
    pub name: String,
    /// Unit of its numbers: s, B and bit/s are shown with prefixes.
    pub unit: String,
    /// What it is a figure of.
    pub scope: GridScope,
}

/// What a figure measures. Figures of different flows are never joined but as their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GridScope {
    /// A flow, with a sum over the flows of a run that is a figure of the run.
    Sum,
    /// A flow.
    #[default]
    Flow,
    /// A run; it is the same for all of its flows.
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
