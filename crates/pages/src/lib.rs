//! Self-contained HTML pages of plots and tables.
//!
//! [`run_page`] (a run), [`sweep_page`], [`diagnosis_page`], [`wire_page`] (a run compared with a
//! real host), and [`overlay`] with the windows of both.

pub mod diagnosis_page;
pub mod overlay;
pub mod run_page;
pub mod sweep_page;
pub mod wire_page;
