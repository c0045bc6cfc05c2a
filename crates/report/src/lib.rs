//! Self-contained pages: interactive plots, tables, heat maps; JUnit XML and OpenMetrics. Layer 2.
//!
//! Reading order: [`page`] (the parts of a page), [`verdict`] (its first card), [`plots`] (curves over a common axis), [`grid`]
//! (the runs of a sweep over any two axes), [`table`], then the output: `pack` (columns of numbers
//! as short text) and `html`. The style and program of pages are in `assets`, both of this project;
//! nothing is fetched from elsewhere. [`junit`] and [`openmetrics`] write results for other programs.
//!
//! ```
//! use report::page::{Page, PagePart};
//! use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
//! # use ackclock_report as report;
//!
//! let cwnd = PlotSeries::new("cwnd", SeriesRole::Window, SeriesMark::Step)
//!     .with_points([(0, 14_480), (100_600_000, 17_376)]);
//! let plots = Plots {
//!     id: "bulk".into(),
//!     title: "Flow bulk".into(),
//!     x: PlotAxis::new("time", "s", 9),
//!     panels: vec![PlotPanel::new(PlotAxis::new("congestion window", "B", 0), vec![cwnd])],
//! };
//! let page = Page { title: "A run".into(), parts: vec![PagePart::Plots(plots)], ..Page::default() };
//! let mut html = Vec::new();
//! page.write(&mut html)?;
//! assert!(html.starts_with(b"<!doctype html>"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The same page has the same bytes on every machine: numbers are integers with a fixed decimal
//! point, or shortest decimals.
//!
//! It is independent of senders, scenarios and log formats, computes no figures, and reads neither
//! files nor a clock.

pub mod grid;
pub mod junit;
pub mod openmetrics;
pub mod page;
pub mod plots;
pub mod table;
pub mod verdict;

mod assets;
mod html;
mod pack;
