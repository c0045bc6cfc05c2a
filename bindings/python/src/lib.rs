//! The module that Python loads: a thin binding of the libraries. Layer 13.
//!
//! Reading order: `errors` (exceptions), `text` (dictionaries as scenario files), `watch` (long
//! calls: progress, Ctrl-C, the GIL), `loaded` and `ran` (one run), `columns` and `table` (its
//! events as Arrow), `controller` (congestion controllers in Python), `study` and `rows` (sweeps),
//! `published` (published cases and formulas), `suites` (suites and hunts), `diagnosis` (captures), `connections` (tables of
//! diagnoses). The public API is in `python/ackclock`, which adds the parts written in Python.

mod columns;
mod connections;
mod controller;
mod diagnosis;
mod errors;
mod loaded;
mod published;
mod ran;
mod rows;
mod study;
mod suites;
mod table;
mod text;
mod watch;

/// The engine of the package `ackclock`.
#[pyo3::pymodule]
mod _engine {
    #[pymodule_export]
    use super::connections::connections_table;
    #[pymodule_export]
    use super::controller::{PyLoss, PyReport};
    #[pymodule_export]
    use super::diagnosis::{diagnose_files, scenario_text, whatif};
    #[pymodule_export]
    use super::errors::{RunError, ScenarioError};
    #[pymodule_export]
    use super::loaded::{Scenario, load};
    #[pymodule_export]
    use super::published::{cases, reproduce, theory};
    #[pymodule_export]
    use super::ran::Run;
    #[pymodule_export]
    use super::rows::{csv_head, csv_lines, rows_table, sweep_page};
    #[pymodule_export]
    use super::study::Study;
    #[pymodule_export]
    use super::suites::{HuntStudy, SuiteStudy};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::text::{preset_text, presets, to_toml};

    /// Version of Ackclock.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
