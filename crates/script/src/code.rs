//! Code between `%{` and `}%`: the subset of Python that assertions use, which is `assert`,
//! assignments, (chained) comparisons, integer arithmetic and strings.
//!
//! Fractions are not supported: `/` rounds down as `//` does.

mod evaluate;
mod parse;

pub(crate) use evaluate::{Environment, EvaluationError, run};
pub(crate) use parse::parse;
