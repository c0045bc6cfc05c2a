//! Runs a recording with what its kernel drew at random, as inferred by [`probe_draws`](crate::probe_draws).

use std::fmt;

use super::compare::Comparison;
use super::recording::Bbr3Recording;
use super::run::Transfer;
use crate::probe_draws::{
    DrawTrial, FirstDifference, InferredDraws, MadeDraw, ShownDraws, infer as infer_draws, padded,
};

/// Cycles beyond this number are not inferred.
const MOST_DRAWS: usize = 512;

/// The best run.
pub(super) struct Inferred {
    pub(super) comparison: Comparison,
    draws: Vec<cc::bbr3::ProbeDraw>,
}

/// A run with given draws.
struct Trial {
    made: Vec<MadeDraw>,
    comparison: Comparison,
}

impl DrawTrial for Trial {
    fn first(&self) -> Option<&FirstDifference> {
        self.comparison.first()
    }

    fn made(&self) -> &[MadeDraw] {
        &self.made
    }
}

/// Runs a recording with the draws with which it is equal for longest.
///
/// # Errors
/// The scenario cannot be run.
pub(super) fn infer(recording: &Bbr3Recording) -> Result<Inferred, String> {
    let mut transfer = Transfer::of(recording)?;
    let InferredDraws { trial, mut draws } = infer_draws(1, |draws| -> Result<_, String> {
        let run = transfer.run(padded(&draws[0], MOST_DRAWS), &recording.rows)?;
        let comparison = Comparison::of(recording, &run);
        Ok(Trial { made: run.draws, comparison })
    })?;
    let draws = draws.pop().unwrap_or_default();
    Ok(Inferred { comparison: trial.comparison, draws })
}

impl fmt::Display for Inferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.comparison.is_identical() { "identical" } else { "differs" };
        write!(f, "{verdict}: {}\n    draws {}", self.comparison, ShownDraws(&self.draws))
    }
}
