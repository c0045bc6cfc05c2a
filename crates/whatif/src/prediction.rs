//! What a predicted time is worth.

use fit::PathDoubt;
use ingest::diagnosis::{Prediction, Validity};

use super::MAX_MISFIT;

/// Largest distance of the ends of a range from the predicted time of a prediction that is a figure.
const MAX_FIGURE_RANGE: f64 = 0.10;
/// Largest timing error of the recorded sender for a figure: half of what a range allows.
const MAX_FIGURE_ERROR: f64 = MAX_MISFIT / 2.0;

/// What a prediction rests on.
pub(crate) struct PredictionBasis<'a> {
    /// Timing error of the recorded sender, of its end or of the whole.
    pub(crate) error: f64,
    /// What was to change that the fit does not have.
    pub(crate) absent: Option<&'static str>,
    /// Predicted time, in seconds.
    pub(crate) time_s: f64,
    /// Shortest and longest time of several draws of the losses.
    pub(crate) spread_s: (f64, f64),
    /// Times over other paths that the recording allows.
    pub(crate) others: &'a [(PathDoubt, f64)],
}

/// Whether the time is a figure, a range, or cannot be predicted.
pub(crate) fn prediction(basis: &PredictionBasis<'_>) -> Prediction {
    let &PredictionBasis { error, absent, time_s, spread_s, others } = basis;
    let is_wide = |(low, high): (f64, f64)| {
        low < time_s * (1.0 - MAX_FIGURE_RANGE) || high > time_s * (1.0 + MAX_FIGURE_RANGE)
    };
    let all = others.iter().map(|other| other.1);
    let range_s = all.fold(spread_s, |(low, high), time| (low.min(time), high.max(time)));
    let doubt = others.iter().find(|(_, time)| is_wide((*time, *time)));
    let own_error = || {
        format!(
            "the recorded sender, simulated, is {:.1} % of the time off the recording",
            error * 100.0
        )
    };
    let (validity, why) = if let Some(absent) = absent {
        (Validity::None, absent.to_owned())
    } else if error > MAX_MISFIT {
        (Validity::None, own_error())
    } else if is_wide(spread_s) {
        (Validity::Range, "losses at random: the range of ten draws".to_owned())
    } else if let Some((doubt, _)) = doubt {
        let why = match doubt {
            PathDoubt::Rate => "the rate of the bottleneck was not seen: it may be higher",
            PathDoubt::Queue => "the queue was never seen full: it may be short",
            PathDoubt::Others => {
                "whose packets the shared queue drops is chance: the range of seven paths"
            }
        };
        (Validity::Range, why.to_owned())
    } else if error > MAX_FIGURE_ERROR {
        (Validity::Range, own_error())
    } else {
        (Validity::Figure, own_error())
    };
    // What the recorded sender is off, others may be, too.
    let (low_s, high_s) = match validity {
        Validity::Figure => range_s,
        Validity::Range | Validity::None => (range_s.0 * (1.0 - error), range_s.1 * (1.0 + error)),
    };
    Prediction { validity, low_s, high_s, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: f64, spread_s: (f64, f64), others: &[(PathDoubt, f64)]) -> Validity {
        let basis = PredictionBasis { error, absent: None, time_s: 1.0, spread_s, others };
        prediction(&basis).validity
    }

    #[test]
    fn a_figure_needs_a_fit_and_a_narrow_range() {
        let close = (0.95, 1.05);
        assert_eq!(of(0.02, close, &[(PathDoubt::Queue, 1.04)]), Validity::Figure);
        assert_eq!(of(0.02, (0.8, 1.05), &[]), Validity::Range);
        assert_eq!(of(0.02, close, &[(PathDoubt::Rate, 0.1)]), Validity::Range);
        assert_eq!(of(0.02, close, &[(PathDoubt::Queue, 4.0)]), Validity::Range);
        assert_eq!(of(0.07, close, &[]), Validity::Range);
        assert_eq!(of(0.2, close, &[]), Validity::None);
    }
}
