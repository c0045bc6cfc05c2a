//! Tables, each cell of which may lead to a place in a plot.

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// What else is to be known of it, such as what was left out; below the table.
    pub note: String,
    /// From left to right.
    pub columns: Vec<Column>,
    /// From top to bottom, a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Plots that its cells lead to ([`crate::plots::Plots::id`]); empty for none.
    pub plots: String,
    /// Is it shown in a box of its own height, to be scrolled in?
    pub is_long: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its heading, with the unit.
    pub name: String,
    /// Does it hold numbers, to be set flush right?
    pub is_number: bool,
}

impl Column {
    /// A column of words.
    pub fn words(name: &str) -> Self {
        Self { name: name.into(), is_number: false }
    }

    /// A column of numbers.
    pub fn numbers(name: &str) -> Self {
        Self { name: name.into(), is_number: true }
    }
}

/// A cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// How it is meant.
    pub tone: Tone,
    /// Part of the axis of the table's plots that it leads to, in their integers.
    pub leads_to: Option<(i64, i64)>,
}

/// How a cell is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Like any other.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// Something is not.
    Bad,
    /// Less than the others.
    Quiet,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl Cell {
    /// The cell, meant so.
    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// The cell, leading to this part of the plots' axis.
    #[must_use]
    pub fn leads_to(self, from: i64, to: i64) -> Self {
        Self { leads_to: Some((from, to)), ..self }
    }
}
