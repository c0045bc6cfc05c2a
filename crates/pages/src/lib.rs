//! Pages of plots and tables for a browser, one file each.
//!
//! [`run_page`] (a run), [`sweep_page`], [`diagnosis_page`], [`wire_page`] (a run beside a real host), with the
//! windows of both by [`overlay`].

pub mod diagnosis_page;
pub mod overlay;
pub mod run_page;
pub mod sweep_page;
pub mod wire_page;
