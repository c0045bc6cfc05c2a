//! The criteria of RFC 9743 (BCP 133), one file per section.

mod aqm;
mod bufferbloat;
mod collapse;
mod data_centers;
mod fairness;
mod high_delay;
mod high_loss;
mod iot;
mod mixed;
mod paths;
mod real_time;
mod reordering;
mod short_flows;
mod transient;
mod varying_delay;

use crate::SuiteError;
use crate::evaluation::Evaluation;

/// A suite: a document or an evaluation with its criteria.
#[derive(Debug)]
pub struct Suite {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// True if its worlds are drawn: start times, noise, losses.
    pub is_drawn: bool,
    /// Its title.
    pub title: &'static str,
    /// How its limits are set, in sentences.
    pub lead: &'static str,
    /// Its criteria, in order.
    pub criteria: &'static [SuiteCriterion],
}

/// A criterion of a document.
#[derive(Debug)]
pub struct SuiteCriterion {
    /// Its section.
    pub section: &'static str,
    /// Its subject.
    pub title: &'static str,
    /// How its limits are set.
    pub limits: &'static str,
    /// Where its limits come from: the document's words, a paper, or this project.
    pub source: &'static str,
    /// Why it is not evaluated.
    pub not_evaluated: Option<&'static str>,
    pub(crate) evaluate: fn(&mut Evaluation<'_>) -> Result<(), SuiteError>,
}

pub(crate) const fn not_evaluated(
    section: &'static str,
    title: &'static str,
    why: &'static str,
) -> SuiteCriterion {
    SuiteCriterion {
        section,
        title,
        limits: "",
        source: "",
        not_evaluated: Some(why),
        evaluate: |_| Ok(()),
    }
}

/// The suite of RFC 9743.
pub static RFC9743: Suite = Suite {
    name: "rfc9743",
    is_drawn: true,
    title: "RFC 9743 (BCP 133)",
    lead: "RFC 9743 (BCP 133) gives no limits; a new algorithm must not do more harm than the existing \
           ones, so each limit is the worst reference with a margin.",
    criteria: &CRITERIA,
};

/// How a limit relative to a reference is set where the document names none.
const RELATIVE: &str =
    "RFC 9743: no more harm than existing algorithms; the factors are this project's";

/// The criteria in the order of RFC 9743.
static CRITERIA: [SuiteCriterion; 23] = [
    collapse::CRITERION,
    bufferbloat::CRITERION,
    high_loss::CRITERION,
    fairness::CRITERION,
    short_flows::CRITERION,
    mixed::CRITERION,
    real_time::CRITERION,
    short_flows::BESIDE_LONG,
    paths::TAIL_DROP,
    paths::TUNNELS,
    paths::WIRED,
    paths::WIRELESS,
    aqm::CRITERION,
    high_loss::POLICER,
    varying_delay::CRITERION,
    iot::CRITERION,
    high_delay::CRITERION,
    not_evaluated("7.6", "misbehaving nodes", "receivers that lie are not modelled"),
    reordering::CRITERION,
    transient::OUTAGE,
    transient::CROSS_TRAFFIC,
    not_evaluated("7.10", "multipath transport", "all modelled transports use one path"),
    data_centers::CRITERION,
];
