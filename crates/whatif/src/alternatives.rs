//! The requested alternatives.

use fit::{FittedTransfer, LossPattern, PathDoubt, WordError};
use runner::workers::Workers;
use tcp::knobs::find;
use tcp::profile::TcpProfile;

use super::prediction::{PredictionBasis, prediction};
use super::settings::{GivenSetting, compared_sender};
use super::simulate::{simulate, with_kernels};
use super::{
    Alternative, BestSender, Candidate, KernelRunner, MAX_MISFIT, SimulatedTransfer,
    TransferResult, WhatIfError, WhatIfRequest, split,
};

/// Runs of an alternative with random losses.
const SEEDS: u64 = 10;

/// Keys of the losses and of the queue of a fitted path.
const LOSS: &str = "path.forward.loss=";
const BUFFER: &str = "link.buffer=";

/// Runs of the recorded sender with as many losses at random, and how far the median may be from the recorded losses.
const CHECKS: u64 = 5;
const MOST_OFF: f64 = 0.15;
/// Of one more run than these [`CHECKS`], 95 in 100 are within this number of standard deviations of their mean:
/// Student's t of four degrees of freedom, 2.776, times the root of 1 + 1/5.
const DEVIATIONS: f64 = 3.041;

/// How much longer or shorter than over the fitted path the recorded sender may take over another that the recording
/// allows: as much as its own error may be.
const MAX_OTHER_ERROR: f64 = MAX_MISFIT / 2.0;

/// Why a change says nothing about a fit.
const NOT_RANDOM: &str = "the losses are not like random ones: with as many at random, the recorded sender takes another time";
pub(crate) const OTHER_LOSSES: &str =
    "the losses are not like random ones: the range of the same packets and of as many at random";
const NO_LOSSES: &str = "the fitted path has no losses but those of a full queue or an outage";
const NO_FULL_QUEUE: &str = "no queue was seen full: the fitted losses are others";

/// What of the path a change names and the fit does not have, if it is so.
type AbsentPart = Option<&'static str>;

/// The fit with those of `changes` that are no keys of its scenario, and the part of the path that it does not have;
/// the others remain in `changes`.
fn with_words(
    fitted: &dyn FittedTransfer,
    changes: &mut Vec<String>,
) -> Result<(Option<Box<dyn FittedTransfer>>, AbsentPart), WhatIfError> {
    let mut changed: Option<Box<dyn FittedTransfer>> = None;
    let mut absent = None;
    let mut rest = Vec::new();
    for change in changes.drain(..) {
        let (key, value) = change.split_once('=').unwrap_or((&change, ""));
        let (key, value) = (key.trim(), value.trim().trim_matches('"'));
        match changed.as_deref().unwrap_or(fitted).with_word(key, value) {
            Ok(None) => rest.push(change),
            Ok(Some(other)) => changed = Some(other),
            Err(WordError::Absent(what)) => absent = Some(what),
            Err(WordError::Value(expected)) => {
                return Err(WhatIfError::Value { setting: change.clone(), expected });
            }
        }
    }
    *changes = rest;
    Ok((changed, absent))
}

/// A fitted transfer whose recorded sender was simulated, and on which alternatives are tried.
#[derive(Clone, Copy)]
pub(crate) struct FittedPath<'a> {
    pub(crate) fitted: &'a dyn FittedTransfer,
    pub(crate) best: &'a BestSender<'a>,
    /// All that were simulated, the best first.
    pub(crate) senders: &'a [Candidate],
    pub(crate) workers: &'a Workers<'a>,
    pub(crate) kernels: Option<&'a KernelRunner<'a>>,
}

/// A profile and its congestion control, if named.
pub(crate) type NamedSender<'a> = (&'a str, Option<&'a str>);

pub(crate) fn called((profile, cc): NamedSender<'_>) -> String {
    cc.map_or_else(|| profile.to_owned(), |cc| format!("{profile}/{cc}"))
}

impl FittedPath<'_> {
    /// Simulates the alternatives that `question` names.
    pub(crate) fn requested(
        &self,
        question: &WhatIfRequest,
    ) -> Result<Vec<Alternative>, WhatIfError> {
        let mut requested: Vec<(NamedSender<'_>, &[String])> = Vec::new();
        for name in &question.compare {
            requested.push((compared_sender(name, self.best), &[]));
        }
        if !question.set.is_empty() || question.sender.is_some() {
            let sender = question.sender.as_deref().map(|name| compared_sender(name, self.best));
            let sender = sender.unwrap_or_else(|| self.sender_with(&question.set));
            requested.push((sender, &question.set));
        }
        self.workers.map(&requested, |&(sender, set)| self.alternative(sender, set))
    }

    /// The best sender that has the changed knobs, if its system is unknown.
    fn sender_with(&self, set: &[String]) -> NamedSender<'_> {
        let changes = set.iter().map(|one| GivenSetting::of(one).text);
        let knobs = changes.filter_map(|one| {
            Some(one.strip_prefix("sender.knobs.")?.split('=').next()?.trim_matches('"').to_owned())
        });
        let knobs: Vec<String> = knobs.collect();
        let has = |profile: &str| {
            TcpProfile::named(profile)
                .is_some_and(|profile| knobs.iter().all(|knob| find(&profile, knob).is_some()))
        };
        let best = (self.best.profile, self.best.cc);
        let others = self.senders.iter().map(|one| split(&one.sender));
        core::iter::once(best).chain(others).find(|one| has(one.0)).unwrap_or(best)
    }

    /// The results of the seeds from 1 to `most`, in their order.
    fn seeds<R: Send>(
        &self,
        most: u64,
        run: impl Fn(u64) -> Result<R, WhatIfError> + Sync,
    ) -> Result<Vec<R>, WhatIfError> {
        self.workers.map(&(1..=most).collect::<Vec<_>>(), |&seed| run(seed))
    }

    /// Whether the recorded sender takes about its time with as many losses at random.
    fn is_as_random(&self, fitted: &dyn FittedTransfer) -> Result<bool, WhatIfError> {
        let mut times = self.seeds(CHECKS, |seed| {
            let text = fitted.scenario(self.best.profile, self.best.cc, LossPattern::Random, seed);
            Ok(simulate(&text, &[], fitted, self.workers.stop())?.0.time_s)
        })?;
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let recorded = self.best.time_s;
        let is_near = (median / recorded - 1.0).abs() <= MOST_OFF;
        Ok(is_near || is_one_of(&times, recorded))
    }

    /// Whether the recording allows the path of this number of the fitted ones: the recorded sender takes about the
    /// recorded time over it. One that only a change leaves open it cannot exclude.
    fn allows(&self, number: usize, doubt: PathDoubt) -> Result<bool, WhatIfError> {
        let mut paths = self.fitted.other_paths().into_iter();
        let path = paths.nth(number).filter(|one| one.0 == doubt);
        let Some((_, path)) = path else { return Ok(true) };
        let text = path.scenario(self.best.profile, self.best.cc, LossPattern::Same, 1);
        let time_s = simulate(&text, &[], self.fitted, self.workers.stop())?.0.time_s;
        Ok((time_s / self.best.time_s - 1.0).abs() <= MAX_OTHER_ERROR)
    }

    /// Simulates `sender` with the changes `set`.
    pub(crate) fn alternative(
        &self,
        sender: NamedSender<'_>,
        set: &[String],
    ) -> Result<Alternative, WhatIfError> {
        let settings: Vec<_> = set.iter().map(|one| GivenSetting::of(one)).collect();
        let mut changes: Vec<String> = settings.iter().map(|one| one.text.clone()).collect();
        let of_knobs = self.fitted.for_knobs(&changes);
        let (of_words, without) =
            with_words(of_knobs.as_deref().unwrap_or(self.fitted), &mut changes)?;
        let fitted = of_words.as_deref().or(of_knobs.as_deref()).unwrap_or(self.fitted);
        let changes_of = |key: &str| changes.iter().any(|change| change.contains(key));
        let absent = match () {
            () if changes_of(LOSS) && !fitted.is_random() => Some(NO_LOSSES),
            () if changes_of(BUFFER) && fitted.is_random() && !fitted.has_full_queue() => {
                Some(NO_FULL_QUEUE)
            }
            () => without,
        };
        changes.retain(|change| fitted.is_random() || !change.starts_with(LOSS));
        let changes: Vec<String> =
            changes.into_iter().map(|change| fitted.located(change)).collect();
        // The recorded sender loses the recorded packets; another one sends others, and loses as many at random.
        let is_same = sender == (self.best.profile, self.best.cc);
        let is_unlike = absent.is_none() && fitted.is_random() && !self.is_as_random(fitted)?;
        let absent = if is_unlike && !is_same { Some(NOT_RANDOM) } else { absent };
        let (pattern, seeds) = match fitted.is_random() {
            true if !is_same => (LossPattern::Random, SEEDS),
            _ => (LossPattern::Same, 1),
        };
        let run_with = |fitted: &dyn FittedTransfer, pattern, seed| {
            let text = fitted.scenario(sender.0, sender.1, pattern, seed);
            let simulated = simulate(&text, &changes, fitted, self.workers.stop());
            simulated.map_err(|error| at_given_text(error, &settings))
        };
        let run = |fitted: &dyn FittedTransfer, seed| run_with(fitted, pattern, seed);
        let mut courses = self.seeds(seeds, |seed| Ok((run(fitted, seed)?, seed)))?;
        let time = |course: &SimulatedTransfer| course.0.time_s;
        courses.sort_by(|(a, _), (b, _)| time(a).total_cmp(&time(b)));
        let mut spread_s = (time(&courses[0].0), time(&courses[courses.len() - 1].0));
        let is_uncertain = is_unlike && is_same;
        let checks = if is_uncertain { CHECKS } else { 0 };
        let checked =
            self.seeds(checks, |seed| Ok(time(&run_with(fitted, LossPattern::Random, seed)?)))?;
        for time_s in checked {
            spread_s = (spread_s.0.min(time_s), spread_s.1.max(time_s));
        }
        let ((middle, progress), seed) = courses.swap_remove(courses.len() / 2);
        let is_given = |doubt| {
            let key = match doubt {
                PathDoubt::Rate => "link.rate=",
                PathDoubt::Queue | PathDoubt::Others => BUFFER,
                PathDoubt::Service => return false,
            };
            changes.iter().any(|change| change.contains(key))
        };
        let mut others: Vec<_> = fitted.other_paths().into_iter().enumerate().collect();
        others.retain(|(_, (doubt, _))| !is_given(*doubt));
        let others = self.workers.map(&others, |&(number, (doubt, ref other))| {
            let time_s = time(&run(&**other, seed)?);
            // The slowest rate is one that the recording allows.
            let is_allowed = doubt != PathDoubt::Queue || self.allows(number, doubt)?;
            Ok(is_allowed.then_some((doubt, time_s)))
        })?;
        let others: Vec<_> = others.into_iter().flatten().collect();
        let text = fitted.scenario(sender.0, sender.1, pattern, seed);
        let kernel = with_kernels(&text, &changes, fitted, self.kernels)?;
        let what = match set {
            [] => called(sender),
            set => format!("{} with {}", called(sender), set.join(", ")),
        };
        let (time_s, prediction) = prediction(&PredictionBasis {
            error: self.best.error,
            absent,
            other_losses: is_uncertain.then_some(OTHER_LOSSES),
            time_s: middle.time_s,
            spread_s,
            others: &others,
        });
        let middle = TransferResult {
            time_s,
            goodput_bps: middle.goodput_bps * middle.time_s / time_s,
            ..middle
        };
        Ok(Alternative {
            what,
            runs: seeds,
            course: middle,
            progress,
            kernel,
            spread_s,
            time_ratio: middle.time_s / self.best.time_s,
            prediction,
        })
    }
}

/// Whether a time may be one more of these [`CHECKS`], if they are drawn alike.
fn is_one_of(times: &[f64], time: f64) -> bool {
    let number = times.len() as f64;
    let mean = times.iter().sum::<f64>() / number;
    let squares: f64 = times.iter().map(|one| (one - mean) * (one - mean)).sum();
    (time - mean) * (time - mean) <= DEVIATIONS * DEVIATIONS * squares / (number - 1.0)
}

/// Moves errors in translated settings to the text that the user wrote.
fn at_given_text(error: WhatIfError, settings: &[GivenSetting]) -> WhatIfError {
    let WhatIfError::Scenario(mut errors) = error else { return error };
    for error in &mut errors {
        settings.iter().for_each(|setting| setting.restore(error));
    }
    WhatIfError::Scenario(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One draw in three is outside of five others: that is no reason to call them different.
    #[test]
    fn a_time_a_little_beyond_five_draws_may_be_another_draw() {
        let draws = [4.0, 4.2, 4.5, 4.9, 5.1];
        assert!(is_one_of(&draws, 5.6));
        assert!(is_one_of(&draws, 3.6));
        assert!(!is_one_of(&draws, 20.0));
        assert!(!is_one_of(&draws, 1.0));
    }
}
