//! Self-contained pages: plots that can be zoomed and read, tables, heat maps. Layer 2.
//!
//! Reading order: [`page`] (what a page is made of), [`plots`] (curves over a common axis),
//! [`grid`] (the runs of a sweep, looked at along any two axes), [`table`], then how they get into a
//! file: `pack` (columns of numbers as short text) and `html`. What runs in the browser is in
//! `assets`: style and program, both of this project, nothing is fetched from anywhere.
//!
//! ```
//! use report::page::{Page, Part};
//! use report::plots::{Axis, Mark, Panel, Plots, Role, Series};
//! # use ackclock_report as report;
//!
//! let cwnd = Series::new("cwnd", Role::Window, Mark::Step)
//!     .with_points([(0, 14_480), (100_600_000, 17_376)]);
//! let plots = Plots {
//!     id: "bulk".into(),
//!     title: "Flow bulk".into(),
//!     x: Axis::new("time", "s", 9),
//!     panels: vec![Panel::new(Axis::new("congestion window", "B", 0), vec![cwnd])],
//! };
//! let page = Page { title: "A run".into(), parts: vec![Part::Plots(plots)], ..Page::default() };
//! let mut html = Vec::new();
//! page.write(&mut html)?;
//! assert!(html.starts_with(b"<!doctype html>"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The same page has the same bytes on every machine: numbers are integers with a fixed decimal
//! point, or shortest decimals.
//!
//! What it does not do: it knows no sender, no scenario and no format of a log, computes no
//! figure, and reads neither files nor a clock.

pub mod grid;
pub mod page;
pub mod plots;
pub mod table;

mod assets;
mod html;
mod pack;
