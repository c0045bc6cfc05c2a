//! What a predicted time is worth.

use fit::PathDoubt;
use ingest::diagnosis::{Prediction, Validity};

use super::MAX_MISFIT;

/// Largest distance of the ends of a range from the predicted time of a prediction that is a figure.
const MAX_FIGURE_RANGE: f64 = 0.10;
/// Largest timing error of the recorded sender for a figure: half of what a range allows.
const MAX_FIGURE_ERROR: f64 = MAX_MISFIT / 2.0;

/// Room for the rounding of a centre that is just within.
const ROUNDING: f64 = 1.0 + 1e-9;

/// What a prediction rests on.
pub(crate) struct PredictionBasis<'a> {
    /// Timing error of the recorded sender, of its end or of the whole.
    pub(crate) error: f64,
    /// What was to change that the fit does not have.
    pub(crate) absent: Option<&'static str>,
    /// Why the losses may be others than the simulated ones, if they may.
    pub(crate) other_losses: Option<&'static str>,
    /// Predicted time, in seconds, over the path that is most likely.
    pub(crate) time_s: f64,
    /// Shortest and longest time of several draws of the losses.
    pub(crate) spread_s: (f64, f64),
    /// Times over other paths that the recording allows.
    pub(crate) others: &'a [(PathDoubt, f64)],
}

/// The time of a figure: the nearest to `time_s` that is as far from the ends of the range of all possible times as a
/// figure may be.
fn centred(time_s: f64, (low, high): (f64, f64)) -> f64 {
    let (least, most) = (high * (1.0 - MAX_FIGURE_RANGE), low * (1.0 + MAX_FIGURE_RANGE));
    if least <= most { time_s.max(least).min(most) } else { time_s }
}

/// The predicted time, and whether it is a figure, a range, or cannot be predicted.
pub(crate) fn prediction(basis: &PredictionBasis<'_>) -> (f64, Prediction) {
    let &PredictionBasis { error, absent, other_losses, time_s, spread_s, others } = basis;
    let all = others.iter().map(|other| other.1);
    let range_s = all.fold(spread_s, |(low, high), time| (low.min(time), high.max(time)));
    // Draws of chance are no bounds: none of them may be far from the most likely time.
    let is_wide = |(low, high): (f64, f64)| {
        low < time_s * (1.0 - MAX_FIGURE_RANGE) || high > time_s * (1.0 + MAX_FIGURE_RANGE)
    };
    // Other paths are: a time between them is right if it is within this part of each.
    let bounds = others.iter().filter(|other| other.0 != PathDoubt::Others).map(|other| other.1);
    let bounds = bounds.fold((time_s, time_s), |(low, high), time| (low.min(time), high.max(time)));
    let centre_s = centred(time_s, bounds);
    let is_far = |time: f64| (centre_s - time).abs() > time * MAX_FIGURE_RANGE * ROUNDING;
    let doubt = others.iter().find(|&&(doubt, time)| match doubt {
        PathDoubt::Others => is_wide((time, time)),
        PathDoubt::Rate | PathDoubt::Queue | PathDoubt::Service => is_far(time),
    });
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
    } else if let Some(why) = other_losses {
        (Validity::Range, why.to_owned())
    } else if is_wide(spread_s) {
        (Validity::Range, "losses at random: the range of ten draws".to_owned())
    } else if let Some((doubt, _)) = doubt {
        let why = match doubt {
            PathDoubt::Rate => "the rate of the bottleneck was not seen: it may be higher",
            PathDoubt::Queue => "the queue was never seen full: it may be short",
            PathDoubt::Service => {
                "the server may work at the requests one after the other, or at all together"
            }
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
    let time_s = if validity == Validity::Figure { centre_s } else { time_s };
    (time_s, Prediction { validity, low_s, high_s, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: f64, spread_s: (f64, f64), others: &[(PathDoubt, f64)]) -> Validity {
        let basis = PredictionBasis {
            error,
            absent: None,
            other_losses: None,
            time_s: 1.0,
            spread_s,
            others,
        };
        prediction(&basis).1.validity
    }

    /// All times that are possible are within a tenth of a figure between them.
    #[test]
    fn a_figure_is_as_near_to_both_ends_of_a_range() {
        let of = |others: &[(PathDoubt, f64)]| {
            let (spread_s, error) = ((1.0, 1.0), 0.01);
            prediction(&PredictionBasis {
                error,
                absent: None,
                other_losses: None,
                time_s: 1.0,
                spread_s,
                others,
            })
        };
        let (time_s, Prediction { validity, low_s, high_s, .. }) = of(&[(PathDoubt::Queue, 1.2)]);
        assert_eq!((validity, low_s, high_s), (Validity::Figure, 1.0, 1.2));
        assert!((time_s - 1.08).abs() < 1e-9, "{time_s}");
        // What others' packets do is chance, and no bound.
        let (time_s, Prediction { validity, .. }) = of(&[(PathDoubt::Others, 1.2)]);
        assert_eq!((time_s, validity), (1.0, Validity::Range));
        // Beyond that, it is the time over the path that is most likely.
        let (time_s, Prediction { validity, .. }) = of(&[(PathDoubt::Queue, 1.3)]);
        assert_eq!((time_s, validity), (1.0, Validity::Range));
    }

    /// Where chance did not choose the losses, those of the recording are one of several that are possible.
    #[test]
    fn losses_that_are_not_random_make_a_range() {
        let basis = PredictionBasis {
            error: 0.01,
            absent: None,
            other_losses: Some("others"),
            time_s: 1.0,
            spread_s: (0.7, 1.1),
            others: &[],
        };
        let (time_s, Prediction { validity, low_s, high_s, why }) = prediction(&basis);
        assert_eq!((time_s, validity, why.as_str()), (1.0, Validity::Range, "others"));
        assert!(low_s <= 0.7 && high_s >= 1.1, "{low_s} to {high_s}");
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
