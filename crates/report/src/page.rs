//! A page and its parts.

use std::io::{self, Write};

use crate::grid::GridPlot;
use crate::html;
use crate::plots::Plots;
use crate::table::ReportTable;
use crate::verdict::Verdict;

/// A page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// Title, one line.
    pub title: String,
    /// Introduction of one or two sentences; omitted if empty.
    pub lead: String,
    /// Facts needed to reproduce it: names with values.
    pub facts: Vec<(String, String)>,
    /// Program and version that made it.
    pub maker: String,
    /// Parts from top to bottom.
    pub parts: Vec<PagePart>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum PagePart {
    /// A heading, listed in the table of contents.
    Heading(String),
    /// A heading below the last one.
    Subheading(String),
    /// A paragraph.
    Text(String),
    /// Preformatted text.
    Verbatim(String),
    /// Preformatted text, collapsed.
    Folded {
        /// Title.
        title: String,
        /// The text.
        text: String,
    },
    /// The answer, where the time went, and the cure.
    Verdict(Verdict),
    /// Large figures with their names.
    Figures(Vec<(String, String)>),
    /// A table.
    Table(ReportTable),
    /// Plots.
    Plots(Plots),
    /// The runs of a sweep.
    Grid(GridPlot),
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
