//! CC603: the path is saturated, healthy.
//!
//! Checks whether the bottleneck was busy for most of the active time: its queue never ran empty.
//! Then the transfer is as fast as the path, and nothing is wrong.
//!
//! Cost: none.

use units::Duration;

use super::case::{DiagnosisCase, number, rate, time_percent};
use super::help::{Remedy, RemedyHost};
use super::{DiagnosisRule, Finding};
use crate::time_budget::Limiter;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC603",
    name: "the path is saturated, healthy",
    check,
    background: "\
The queue before the bottleneck never ran empty, so the bottleneck never stood still. The transfer is
as fast as the path allows. To be faster it needs a faster path, or fewer others on it (CC602).",
    help: &[
        Remedy::freebsd(RemedyHost::Elsewhere, "nothing to do"),
        Remedy::linux(RemedyHost::Elsewhere, "nothing to do"),
        Remedy::general("nothing to do; a faster transfer needs a faster path"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let busy = case.course.budget.of(Limiter::Path);
    if busy * 2 < case.active() {
        return None;
    }
    let share = case.course.path.share?;
    let title = format!(
        "the path is busy {} of the time, at {}",
        time_percent(busy, case.active()),
        rate(share)
    );
    Some(
        case.finding(&RULE, Duration::ZERO, title)
            .with([number("rate_bps", share * 8.0, "rate", rate(share))])
            .because("the bottleneck's queue never ran empty: this is what the path carries")
            .note(),
    )
}
