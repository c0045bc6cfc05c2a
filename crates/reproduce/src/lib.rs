//! Published cases: their figures with the measured ones.
//!
//! Reading order: [`cases`] (the figures), [`pictures`] (charts of them), [`references`]
//! (what the stacks behind them were measured against), [`reproduce_page`] (all for a browser).

pub mod cases;
pub mod pictures;
pub mod references;
pub mod reproduce_page;
