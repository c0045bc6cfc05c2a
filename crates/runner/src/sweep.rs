//! Many runs of one scenario: done on all cores, kept, and looked at.
//!
//! Reading order: [`Row`] (what is kept of a run), [`execute()`] (the runs), [`csv`] (the table
//! of all of them), [`About`] (what stands beside them), [`pivot`] (a table of two axes). A study is a
//! [`scenario::Study`].

pub mod csv;
pub mod pivot;
pub mod statistics;

mod about;
mod execute;
mod row;

pub use about::About;
pub use execute::{Broken, execute, execute_with_series};
pub use row::{FORMAT, Row};
