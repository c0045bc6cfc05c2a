//! Whether the path carried more at first than later: a part of CC602.
//!
//! While the queue of the bottleneck never runs empty, what is delivered is what the bottleneck carries for this flow.
//! A step down that lasts until the end of the transfer is a slower link, a shaper whose credit is used up, or
//! traffic that came. The step is where the sum of the deviations from the mean rate is largest (Page, "Continuous
//! inspection schemes", Biometrika 41, 1954).

use units::{Duration, Instant};

use super::case::{DiagnosisCase, RATE_AFTER, number, rate, seconds, time};
use super::kinds::RATE_DROP;
use super::{DiagnosisRule, Finding};
use crate::lost_time::fraction;
use crate::path::busy;
use crate::rounds::{Round, TimeUse};

/// Least ratio of the rates before and after a step.
const STEP: f64 = 1.4;
/// Each half of the time after a step has the rate of the whole, give or take this part.
const STEADY: f64 = 0.25;
/// Fewest rounds on either side.
const FEWEST: usize = 4;
/// Least part of the time after a step: one of this number.
const LEAST_PART: u64 = 10;

/// A path that carries less from a time on.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateDrop {
    at: Instant,
    frame: u64,
    /// Bytes per second before and after.
    rates: (f64, f64),
    /// Time at work after it.
    after: Duration,
}

/// Bytes delivered in a round, and its length in ns.
type DeliveredRound = (u64, u64);

fn rate_of(rounds: &[DeliveredRound]) -> f64 {
    let (bytes, length) = rounds.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    bytes as f64 * 1e9 / length.max(1) as f64
}

/// Whether both halves of the time have about the rate of all.
fn is_steady(rounds: &[DeliveredRound]) -> bool {
    let whole: u64 = rounds.iter().map(|one| one.1).sum();
    let mut past = 0;
    let middle = rounds.iter().position(|one| {
        past += one.1;
        past * 2 >= whole
    });
    let (first, second) = rounds.split_at(middle.map_or(0, |middle| middle + 1));
    let all = rate_of(rounds);
    let is_near = |part: &[DeliveredRound]| {
        part.is_empty() || (rate_of(part) / all.max(1.0) - 1.0).abs() <= STEADY
    };
    is_near(first) && is_near(second)
}

impl RateDrop {
    /// The step down to a path that is busy until the end; `None` without one.
    pub(super) fn of(case: &DiagnosisCase<'_>) -> Option<Self> {
        let flow = case.flow;
        let path = &case.course.path;
        let (base, best) = (path.data_rtt?, path.rate?);
        // Without SACK a recovery repairs a packet a round trip, whatever the path carries.
        let has_no_sack = case.has_no_sack();
        let is_repair =
            |round: &Round| has_no_sack && round.of(TimeUse::Recovery) * 2 >= round.length();
        let is_at_work = |round: &&Round| {
            let is_used = round.of(TimeUse::Idle).is_zero() && !round.length().is_zero();
            is_used && round.sent > 0 && !is_repair(round)
        };
        let found: Vec<&Round> = flow.rounds.iter().filter(is_at_work).collect();
        let rounds: Vec<DeliveredRound> =
            found.iter().map(|round| (round.delivered, round.length().as_nanos())).collect();
        let mean = rate_of(&rounds) / 1e9;
        let mut sum = 0.0;
        let sums = rounds.iter().map(|one| {
            sum += one.0 as f64 - mean * one.1 as f64;
            sum
        });
        let (last, _) = sums.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let (before, after) = rounds.split_at(last + 1);
        let now = rate_of(after);
        let time_of = |part: &[DeliveredRound]| part.iter().map(|one| one.1).sum::<u64>();
        let is_step = before.len() >= FEWEST
            && after.len() >= FEWEST
            && time_of(after) >= time_of(&rounds) / LEAST_PART
            && best >= now * STEP
            && is_steady(after);
        let at = found.get(last + 1).filter(|_| is_step)?;
        // Recoveries between busy rounds are times of a full path; alone they are those of a sender that repairs losses.
        let is_busy = |round: &&&Round| busy(round, base, flow.mss);
        let is_full =
            |round: &&&Round| is_busy(round) || round.of(TimeUse::Recovery) * 2 >= round.length();
        let time_in = |rounds: &mut dyn Iterator<Item = &&Round>| -> u64 {
            rounds.map(|round| round.length().as_nanos()).sum()
        };
        let rounds = &found[last + 1..];
        let full = time_in(&mut rounds.iter().filter(is_full));
        let busy = time_in(&mut rounds.iter().filter(is_busy));
        let after = time_of(after);
        let is_limit = full * 4 >= after * 3 && busy * 2 >= full;
        let after = Duration::from_nanos(after);
        is_limit.then_some(Self { at: at.start, frame: at.frame, rates: (best, now), after })
    }

    /// The finding about it. Cost: the time after it less the one that the bytes take at the rate before.
    pub(super) fn finding(self, case: &DiagnosisCase<'_>, rule: &DiagnosisRule) -> Finding {
        let Self { at, frame, rates: (before, now), after } = self;
        let since = at.since(case.analysis.first);
        let title = format!(
            "the path carries {} from {} on, {} before",
            rate(now),
            time(since),
            rate(before)
        );
        case.finding(rule, fraction(after, 1.0 - now / before), title)
            .of_kind(RATE_DROP)
            .at((at, case.flow.last_delivery), (frame, case.flow.last_frame))
            .with([
                number("rate_before_bps", before * 8.0, "before", rate(before)),
                number(RATE_AFTER, now * 8.0, "after", rate(now)),
                number(
                    "after_s",
                    seconds(after),
                    "busy",
                    format!("{} at work after the step", time(after)),
                ),
            ])
            .because("a link became slower, a shaper's credit is used up, or other traffic came")
            .unseen("which of them: the other traffic does not pass here")
    }
}
