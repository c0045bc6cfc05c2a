//! What stands between `%{` and `}%`: lines of Python as far as assertions need them, which are
//! `assert`, assignments, comparisons (chained too), arithmetic of whole numbers, and texts.
//!
//! There are no fractions here: `/` rounds down as `//` does.

mod evaluate;
mod parse;

pub(crate) use evaluate::{Environment, EvaluationError, run};
pub(crate) use parse::parse;
