//! A page: what stands on it, from top to bottom.

use std::io::{self, Write};

use crate::grid::Grid;
use crate::html;
use crate::plots::Plots;
use crate::table::Table;

/// A page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// What it is about, in one line.
    pub title: String,
    /// The same in a sentence or two; left out if empty.
    pub lead: String,
    /// What it takes to repeat it: names with values.
    pub facts: Vec<(String, String)>,
    /// Who made it, with the version.
    pub maker: String,
    /// From top to bottom.
    pub parts: Vec<Part>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A heading, which the table of contents leads to.
    Heading(String),
    /// A heading below the last one.
    Subheading(String),
    /// A paragraph.
    Text(String),
    /// Text with its own line ends.
    Verbatim(String),
    /// Text with its own line ends, shown once somebody asks for it.
    Folded {
        /// What it is.
        title: String,
        /// The text.
        text: String,
    },
    /// Large figures with their names.
    Figures(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Plots.
    Plots(Plots),
    /// The runs of a sweep.
    Grid(Grid),
}

impl Page {
    /// Writes the page.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        html::write(out, self)
    }
}
