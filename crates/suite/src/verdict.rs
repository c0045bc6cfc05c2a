//! The verdict on a figure: its samples against the limit that the references set.
//!
//! A figure holds or fails if the whole interval of its distance to the limit is on one side. The
//! distances are paired: the sender under test and the worst reference ran the same draws. A criterion has
//! several figures, each looked at up to several times, so each interval is wide enough that all of them
//! together err with a probability of at most 1 % (Bonferroni's inequality, Student's t).

use runner::sweep::statistics::SampleStatistics;

use crate::report::{FigureBound, FigureVerdict, SuiteFigure};
use crate::student;

/// Probability that the verdict on a criterion is wrong because of its draws.
const CRITERION_ERROR: f64 = 0.01;

/// How far a figure may be from the worst reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Margin {
    /// At most the worst reference times the factor, and always if at most `free`.
    AtMost { factor: f64, free: f64 },
    /// At least the worst reference times the factor.
    AtLeast { factor: f64 },
    /// At least a tenth of the fair share, or half of the worst reference's.
    Starvation,
    /// At most this.
    Most(f64),
    /// No limit.
    Info,
}

/// A figure that was measured but not judged yet.
#[derive(Debug)]
pub(crate) struct MeasuredFigure {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) margin: Margin,
    /// By draw, `None` where a run gave no evidence.
    pub(crate) tested: Vec<Option<f64>>,
    /// The same of each reference.
    pub(crate) references: Vec<Vec<Option<f64>>>,
    /// Its world, if more draws of it may be made.
    pub(crate) world: Option<u32>,
    /// How often the figure was looked at, this time included.
    pub(crate) look: u32,
}

/// The bound of a figure, from the worst reference.
struct FigureLimit<'a> {
    bound: FigureBound,
    worst: Option<&'a [Option<f64>]>,
    limit: Option<f64>,
    /// The factor of the worst reference that the limit is; `None` if it is fixed.
    factor: Option<f64>,
    /// What the limit of a draw is at least.
    free: f64,
}

impl MeasuredFigure {
    /// True if it has a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.margin != Margin::Info
    }

    /// The verdict, one of `figures` with a limit in a criterion.
    pub(crate) fn judge(self, figures: usize) -> SuiteFigure {
        let of = statistics(self.tested.iter().flatten().copied());
        let limit = self.limit();
        let reference = limit.worst.map(|values| statistics(values.iter().flatten().copied()));
        let error = CRITERION_ERROR / figures.max(1) as f64;
        // Half of what is left for each further look.
        let error = error / libm::ldexp(1.0, self.look.min(60) as i32);
        let verdict = self.verdict(&limit, error);
        let reference = reference.filter(|one| one.count > 0);
        SuiteFigure {
            value: (of.count > 0).then_some(of.mean),
            samples: of.count as u32,
            missing: (self.tested.len() as u64 - of.count) as u32,
            confidence: of.confidence().filter(|half| *half > 0.0),
            reference: reference.map(|one| one.mean),
            reference_confidence: reference
                .and_then(|one| one.confidence())
                .filter(|half| *half > 0.0),
            limit: limit.limit,
            bound: limit.bound,
            holds: verdict != FigureVerdict::Fails,
            verdict,
            world: self.world,
            name: self.name,
            unit: self.unit,
        }
    }

    fn limit(&self) -> FigureLimit<'_> {
        let means = || {
            self.references.iter().filter_map(|values| {
                let of = statistics(values.iter().flatten().copied());
                (of.count > 0).then_some((of.mean, values.as_slice()))
            })
        };
        let most = means().max_by(|a, b| a.0.total_cmp(&b.0));
        let least = means().min_by(|a, b| a.0.total_cmp(&b.0));
        let (bound, worst, limit, factor) = match self.margin {
            Margin::AtMost { factor, free } => {
                let limit = most.map(|(mean, _)| (mean * factor).max(free));
                let is_fixed = most.is_none_or(|(mean, _)| mean * factor <= free);
                (FigureBound::AtMost, most, limit, (!is_fixed).then_some(factor))
            }
            Margin::AtLeast { factor } => {
                (FigureBound::AtLeast, least, least.map(|(mean, _)| mean * factor), Some(factor))
            }
            Margin::Starvation => {
                let half = least.map(|(mean, _)| mean / 2.0).filter(|half| *half < 10.0);
                (FigureBound::AtLeast, least, Some(half.unwrap_or(10.0)), half.map(|_| 0.5))
            }
            Margin::Most(limit) => (FigureBound::AtMost, most, Some(limit), None),
            Margin::Info => (FigureBound::None, most, None, None),
        };
        let free = match self.margin {
            Margin::AtMost { free, .. } => free,
            _ => f64::NEG_INFINITY,
        };
        FigureLimit { bound, worst: worst.map(|(_, values)| values), limit, factor, free }
    }

    /// The verdict if an interval may miss with the probability `error`.
    fn verdict(&self, limit: &FigureLimit<'_>, error: f64) -> FigureVerdict {
        if limit.bound == FigureBound::None {
            return FigureVerdict::Holds;
        }
        // Without a reference there is no limit to hold.
        let Some(mean_limit) = limit.limit else { return FigureVerdict::Undecided };
        let sign = if limit.bound == FigureBound::AtMost { 1.0 } else { -1.0 };
        let room = statistics(self.tested.iter().enumerate().filter_map(|(draw, value)| {
            let own = match (limit.factor, limit.worst) {
                (Some(factor), Some(values)) => {
                    (values.get(draw).copied().flatten()? * factor).max(limit.free)
                }
                _ => mean_limit,
            };
            Some(sign * (own - (*value)?))
        }));
        let is_complete = room.count == self.tested.len() as u64;
        match side(&room, error) {
            _ if room.count == 0 => FigureVerdict::Undecided,
            // What is missing might be on the other side.
            FigureVerdict::Holds if !is_complete => FigureVerdict::Undecided,
            verdict => verdict,
        }
    }
}

/// The statistics of the values.
pub(crate) fn statistics(values: impl Iterator<Item = f64>) -> SampleStatistics {
    let mut sample = SampleStatistics::default();
    values.for_each(|value| sample.add(value));
    sample
}

/// On which side of zero the room to a limit is, negative beyond it.
fn side(room: &SampleStatistics, error: f64) -> FigureVerdict {
    // A single run has no interval: it is decided by its value, and reported as one run.
    let half = room.deviation().filter(|one| *one > 0.0).map_or(0.0, |deviation| {
        student::two_sided(error, room.count - 1) * deviation / libm::sqrt(room.count as f64)
    });
    match (room.mean - half >= 0.0, room.mean + half >= 0.0) {
        (true, _) => FigureVerdict::Holds,
        (false, false) => FigureVerdict::Fails,
        _ => FigureVerdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(
        margin: Margin,
        tested: &[Option<f64>],
        references: &[&[Option<f64>]],
    ) -> SuiteFigure {
        let references = references.iter().map(|values| values.to_vec()).collect();
        let (name, unit) = (String::new(), "%".to_owned());
        let tested = tested.to_vec();
        MeasuredFigure { name, unit, margin, tested, references, world: None, look: 0 }.judge(1)
    }

    fn of(margin: Margin, tested: &[f64], reference: &[f64]) -> FigureVerdict {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        measured(margin, &some(tested), &[&some(reference)]).verdict
    }

    #[test]
    fn a_wide_interval_decides_nothing() {
        // Mean 7.0; 9.925 (Student's t, 99 %, 2 degrees of freedom) times 8.2 over the root of 3 are 47.
        let wide = [-1.2, 7.0, 15.2];
        let ten = Margin::AtLeast { factor: 1.0 };
        assert_eq!(of(ten, &wide, &[10.0; 3]), FigureVerdict::Undecided);
        assert_eq!(of(ten, &[7.0; 3], &[10.0; 3]), FigureVerdict::Fails);
        assert_eq!(of(ten, &[11.0; 3], &[10.0; 3]), FigureVerdict::Holds);
        // On the right side is no more certain than on the wrong one.
        assert_eq!(of(Margin::Most(10.0), &wide, &[10.0; 3]), FigureVerdict::Undecided);
    }

    #[test]
    fn draws_are_compared_with_the_reference_in_the_same_draw() {
        // Always half a unit apart.
        let (tested, reference) = ([10.5, 20.5, 30.5], [10.0, 20.0, 30.0]);
        let margin = Margin::AtMost { factor: 1.0, free: 0.0 };
        assert_eq!(of(margin, &tested, &reference), FigureVerdict::Fails);
        assert_eq!(of(margin, &reference, &tested), FigureVerdict::Holds);
        assert_eq!(of(margin, &[20.5, 30.5, 10.5], &reference), FigureVerdict::Undecided);
    }

    #[test]
    fn missing_evidence_never_passes() {
        let at_most = Margin::AtMost { factor: 1.1, free: 5.0 };
        let known: &[Option<f64>] = &[Some(1.0); 3];
        // Nothing measured of the sender, of the references, or no references at all.
        for (tested, references) in
            [(&[None; 3][..], vec![known]), (known, vec![&[None; 3][..]]), (known, vec![])]
        {
            let figure = measured(at_most, tested, &references);
            assert_eq!(figure.verdict, FigureVerdict::Undecided, "{tested:?} {references:?}");
        }
        assert_eq!(measured(at_most, &[None; 3], &[known]).value, None);
        // Two runs below the limit and one without a figure are no evidence that all are below it,
        // but those beyond it fail.
        let some = [Some(1.0), None, Some(1.0)];
        let figure = measured(at_most, &some, &[known]);
        assert_eq!((figure.verdict, figure.missing), (FigureVerdict::Undecided, 1));
        let beyond = [Some(9.0), None, Some(9.0)];
        assert_eq!(measured(at_most, &beyond, &[known]).verdict, FigureVerdict::Fails);
    }

    #[test]
    fn more_figures_and_more_looks_need_wider_intervals() {
        let figure = |look| MeasuredFigure {
            name: String::new(),
            unit: String::new(),
            margin: Margin::Most(15.7),
            tested: vec![Some(9.0), Some(10.0), Some(11.0)],
            references: Vec::new(),
            world: None,
            look,
        };
        // The interval of 99 % is 10.0 +- 9.925 standard errors of 0.577: 5.73.
        let margin = |mut figure: MeasuredFigure| {
            figure.margin = Margin::Most(15.8);
            figure
        };
        assert_eq!(figure(0).judge(1).verdict, FigureVerdict::Undecided);
        assert_eq!(margin(figure(0)).judge(1).verdict, FigureVerdict::Holds);
        assert_eq!(margin(figure(0)).judge(10).verdict, FigureVerdict::Undecided);
        assert_eq!(margin(figure(3)).judge(1).verdict, FigureVerdict::Undecided);
    }
}
