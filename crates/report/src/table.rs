//! Tables, whose cells may link to a range of a plot.

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportTable {
    /// Caption.
    pub caption: String,
    /// Note below the table, such as omitted rows.
    pub note: String,
    /// Columns from left to right.
    pub columns: Vec<TableColumn>,
    /// Rows from top to bottom, one cell per column.
    pub rows: Vec<Vec<TableCell>>,
    /// Plots that its cells link to ([`crate::plots::Plots::id`]); empty if none.
    pub plots: String,
    /// Is it shown in a scrollable box?
    pub is_long: bool,
    /// Can its rows be searched and sorted?
    pub is_searchable: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// Heading with the unit.
    pub name: String,
    /// Is it right-aligned, for numbers?
    pub is_number: bool,
}

impl TableColumn {
    /// A text column.
    pub fn words(name: &str) -> Self {
        Self { name: name.into(), is_number: false }
    }

    /// A number column.
    pub fn numbers(name: &str) -> Self {
        Self { name: name.into(), is_number: true }
    }
}

/// A cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableCell {
    /// Text.
    pub text: String,
    /// Emphasis.
    pub tone: Tone,
    /// Range of the plots' axis that it links to, in axis integers.
    pub leads_to: Option<(i64, i64)>,
    /// Number that the rows are sorted by, in place of the text.
    pub rank: Option<u64>,
}

/// The emphasis of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// None.
    #[default]
    Plain,
    /// A good value.
    Good,
    /// A bad value.
    Bad,
    /// De-emphasized.
    Quiet,
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl TableCell {
    /// Sets the emphasis.
    #[must_use]
    pub fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// Sets the number that rows are sorted by.
    #[must_use]
    pub fn rank(self, rank: u64) -> Self {
        Self { rank: Some(rank), ..self }
    }

    /// Links the cell to a range of the plots' axis.
    #[must_use]
    pub fn leads_to(self, from: i64, to: i64) -> Self {
        Self { leads_to: Some((from, to)), ..self }
    }
}
