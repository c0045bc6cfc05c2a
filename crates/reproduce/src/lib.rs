//! Published cases: their figures with the measured ones.
//!
//! Reading order: [`cases`] (the figures), [`pictures`] (charts of them), [`reproduce_page`] (both
//! for a browser).

pub mod cases;
pub mod pictures;
pub mod reproduce_page;
