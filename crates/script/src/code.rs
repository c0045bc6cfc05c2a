//! What stands between `%{` and `}%`: lines of Python as far as assertions need them, which are
//! `assert`, assignments, comparisons (chained too), arithmetic of whole numbers, and texts.
//!
//! A whole division may be written with either sign; `/` with a rest is refused, as there are no
//! fractions here.

mod evaluate;
mod parse;

pub(crate) use evaluate::{Environment, Failure, run};
pub(crate) use parse::parse;
