//! Sweeps: many runs of one scenario on all cores, their results and tables.
//!
//! Reading order: [`SweepRow`] (the result of a run), [`execute()`] (the runs), [`csv`] (the table
//! of all of them), [`SweepDescription`] (the description of the sweep), [`pivot`] (a pivot table).
//! A study is a [`scenario::Study`].

pub mod csv;
pub mod pivot;
pub mod statistics;

mod about;
mod execute;
mod row;

pub use about::SweepDescription;
pub use execute::{RunSeries, StudyError, execute, execute_with_series};
pub use row::{FORMAT, SweepRow};
