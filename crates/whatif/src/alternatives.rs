//! The requested alternatives.

use fit::{FittedTransfer, LossPattern, PathDoubt};
use runner::stop::StopFlag;
use tcp::knobs::find;
use tcp::profile::TcpProfile;

use super::prediction::{Absent, PredictionBasis, prediction};
use super::settings::{compared_sender, scenario_setting};
use super::simulate::{simulate, with_kernels};
use super::{
    Alternative, BestSender, Candidate, KernelRunner, SimulatedTransfer, WhatIfError,
    WhatIfRequest, split,
};

/// Runs of an alternative with random losses.
const SEEDS: u64 = 10;

/// Keys of the losses and of the queue of a fitted path.
const LOSS: &str = "path.forward.loss=";
const BUFFER: &str = "link.buffer=";

/// A fitted transfer whose recorded sender was simulated, and on which alternatives are tried.
#[derive(Clone, Copy)]
pub(crate) struct FittedPath<'a> {
    pub(crate) fitted: &'a dyn FittedTransfer,
    pub(crate) best: &'a BestSender<'a>,
    /// All that were simulated, the best first.
    pub(crate) senders: &'a [Candidate],
    pub(crate) stop: StopFlag<'a>,
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
        let mut alternatives = Vec::new();
        for name in &question.compare {
            alternatives.push(self.alternative(compared_sender(name, self.best), &[])?);
        }
        if !question.set.is_empty() || question.sender.is_some() {
            let sender = question.sender.as_deref().map(|name| compared_sender(name, self.best));
            let sender = sender.unwrap_or_else(|| self.sender_with(&question.set));
            alternatives.push(self.alternative(sender, &question.set)?);
        }
        Ok(alternatives)
    }

    /// The best sender that has the changed knobs, if its system is unknown.
    fn sender_with(&self, set: &[String]) -> NamedSender<'_> {
        let changes = set.iter().map(|one| scenario_setting(one));
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

    /// Simulates `sender` with the changes `set`.
    pub(crate) fn alternative(
        &self,
        sender: NamedSender<'_>,
        set: &[String],
    ) -> Result<Alternative, WhatIfError> {
        let mut changes: Vec<String> = set.iter().map(|one| scenario_setting(one)).collect();
        let of_knobs = self.fitted.for_knobs(&changes);
        let fitted = of_knobs.as_deref().unwrap_or(self.fitted);
        let changes_of = |key: &str| changes.iter().any(|change| change.contains(key));
        let absent = match () {
            () if changes_of(LOSS) && !fitted.is_random() => Some(Absent::Losses),
            () if changes_of(BUFFER) && fitted.is_random() && !fitted.has_full_queue() => {
                Some(Absent::FullQueue)
            }
            () => None,
        };
        changes.retain(|change| fitted.is_random() || !change.starts_with(LOSS));
        let (pattern, seeds) = match fitted.is_random() {
            true => (LossPattern::Random, SEEDS),
            false => (LossPattern::Same, 1),
        };
        let run = |fitted: &dyn FittedTransfer, seed| {
            let text = fitted.scenario(sender.0, sender.1, pattern, seed);
            simulate(&text, &changes, fitted, self.stop)
        };
        let mut courses = Vec::new();
        for seed in 1..=seeds {
            courses.push((run(fitted, seed)?, seed));
        }
        let time = |course: &SimulatedTransfer| course.0.time_s;
        courses.sort_by(|(a, _), (b, _)| time(a).total_cmp(&time(b)));
        let spread_s = (time(&courses[0].0), time(&courses[courses.len() - 1].0));
        let ((middle, progress), seed) = courses.swap_remove(courses.len() / 2);
        let mut others = Vec::new();
        for (doubt, other) in fitted.other_paths() {
            let key = match doubt {
                PathDoubt::Rate => "link.rate=",
                PathDoubt::Queue => BUFFER,
            };
            if !changes.iter().any(|change| change.contains(key)) {
                others.push((doubt, time(&run(&*other, seed)?)));
            }
        }
        let text = fitted.scenario(sender.0, sender.1, pattern, seed);
        let kernel = with_kernels(&text, &changes, fitted, self.kernels)?;
        let what = match set {
            [] => called(sender),
            set => format!("{} with {}", called(sender), set.join(", ")),
        };
        let prediction = prediction(&PredictionBasis {
            error: self.best.error,
            absent,
            time_s: middle.time_s,
            spread_s,
            others: &others,
        });
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
