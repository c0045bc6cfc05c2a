//! The answer before everything else: the recorded time, and the time with the change that shortens it most.

use diagnose::rules::{size, time};
use ingest::diagnosis::Validity;
use report::verdict::{Verdict, VerdictChange};
use units::Duration;

use super::{Alternative, MAX_MISFIT, WhatIf};

/// A difference of the time that is worth a sentence.
const NOTABLE: f64 = 0.01;

impl WhatIf {
    /// The answer in one sentence.
    pub fn answer(&self) -> String {
        let recorded = seconds(self.recorded.time_s);
        let known = |one: &&Alternative| one.prediction.validity != Validity::None;
        let best = self.alternatives.iter().filter(known);
        let best = best.min_by(|a, b| a.course.time_s.total_cmp(&b.course.time_s));
        let others = match self.alternatives.len() {
            0 | 1 => "",
            _ => ", the shortest of those tried",
        };
        match (best, self.senders.first()) {
            (Some(best), _) => {
                let change = best.course.time_s / self.recorded.time_s - 1.0;
                let verb = if change.abs() < NOTABLE { "stays" } else { "becomes" };
                format!("{recorded} {verb} {} as {}{others}", after(best), best.what)
            }
            (None, _) if !self.alternatives.is_empty() => {
                format!(
                    "nothing of what was asked can be predicted for this transfer of {recorded}"
                )
            }
            (None, Some(sender)) if self.licensed => format!(
                "{} on the fitted path takes {}, recorded {recorded}: it can be asked about other senders and paths",
                sender.sender,
                seconds(sender.course.time_s)
            ),
            (None, _) => format!(
                "no known sender matches this transfer of {recorded} within {:.0} %: other senders cannot be \
                 predicted",
                MAX_MISFIT * 100.0
            ),
        }
    }

    /// The first card of the page.
    pub(super) fn verdict(&self) -> Verdict {
        let mut order: Vec<&Alternative> = self.alternatives.iter().collect();
        let rank = |one: &Alternative| one.prediction.validity == Validity::None;
        order.sort_by(|a, b| {
            rank(a).cmp(&rank(b)).then(a.course.time_s.total_cmp(&b.course.time_s))
        });
        let answer = self.answer();
        let mut letters = answer.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().collect::<String>());
        Verdict {
            sentence: format!("{}{}.", first.unwrap_or_default(), letters.as_str()),
            changes: order.into_iter().map(|one| self.change(one)).collect(),
            facts: vec![
                ("recorded".to_owned(), seconds(self.recorded.time_s)),
                (
                    "recorded goodput".to_owned(),
                    format!("{:.2} Mbit/s", self.recorded.goodput_bps / 1e6),
                ),
                ("bytes".to_owned(), size(self.recorded.bytes)),
            ],
            ..Verdict::default()
        }
    }

    fn change(&self, one: &Alternative) -> VerdictChange {
        let recorded = self.recorded.time_s;
        let permille = |s: f64| (s / recorded * 1e3) as u32;
        let prediction = &one.prediction;
        let (permille, note) = match prediction.validity {
            Validity::Figure => {
                let time = permille(one.course.time_s);
                (Some((time, time)), String::new())
            }
            Validity::Range => (
                Some((permille(prediction.low_s), permille(prediction.high_s))),
                prediction.why.clone(),
            ),
            Validity::None => (None, prediction.why.clone()),
        };
        VerdictChange {
            what: one.what.clone(),
            before: seconds(recorded),
            after: after(one),
            permille,
            note,
        }
    }
}

/// The time with a change, in words.
fn after(one: &Alternative) -> String {
    let prediction = &one.prediction;
    match prediction.validity {
        Validity::Figure => seconds(one.course.time_s),
        Validity::Range => {
            format!("{} to {}", seconds(prediction.low_s), seconds(prediction.high_s))
        }
        Validity::None => "cannot be predicted".to_owned(),
    }
}

fn seconds(s: f64) -> String {
    time(Duration::from_nanos((s * 1e9) as u64))
}
