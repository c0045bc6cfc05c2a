//! CC601: standing queue (bufferbloat).
//!
//! Checks the delay of a queue that never ran empty for whole rounds.
//!
//! Cost: the mean queue delay. The transfer itself gains nothing from a shorter queue, but it
//! delays everything that shares the path, and each request on this connection.

use units::Duration;

use super::case::{DiagnosisCase, bytes_in, number, seconds, size, time, time_percent, time_share};
use super::help::{Remedy, RemedyHost};
use super::{DiagnosisRule, Finding, Severity};
use crate::lost_time::LostTimeCause;
use crate::path::delay_follows_load;
use crate::time_budget::Limiter;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC601",
    name: "standing queue (bufferbloat)",
    check,
    background: "\
A sender that stops growing only at a loss fills any queue and keeps it full. The transfer is as fast
as the path, but every packet through that queue waits: pages, calls and games beside it suffer. ITU-T
G.114 asks for less than 150 ms one way for a conversation. Queue management at the bottleneck (CoDel,
RFC 8289; PIE, RFC 8033; FQ-CoDel, RFC 8290) keeps the queue at a few milliseconds, and a shaper moves
it to a device that has it.",
    help: &[
        Remedy::freebsd(RemedyHost::Elsewhere, "at the bottleneck: dummynet with fq_codel (ipfw pipe/sched), pf with ALTQ codel"),
        Remedy::linux(RemedyHost::Elsewhere, "at the bottleneck: tc qdisc replace dev IF root cake bandwidth RATE, or fq_codel"),
        Remedy::general("SQM or a shaper just below the line's rate, at the device before the slow link"),
    ],
};

/// Largest tolerable queue delay for a conversation (ITU-T G.114: 150 ms one way in all).
const MAX_CONVERSATION_DELAY: Duration = Duration::from_millis(100);

/// Shortest mean wait of ACKs that is a queue of theirs, beyond the resolution of timestamps.
const MIN_WAIT_OF_ACKS: Duration = Duration::from_millis(5);

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    way_back(case).or_else(|| way_there(case))
}

/// A queue on the way of the ACKs. Cost: their waits in round trips that a window limits, less the time that the bytes
/// take at the rate of the path.
fn way_back(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let base = case.course.path.base_rtt?;
    let rounds = || case.flow.rounds.iter().filter(|round| round.sent > 0);
    let waited: Duration = rounds().map(|round| round.wait_on_way_back.min(round.length())).sum();
    let cost = case.course.lost(LostTimeCause::WayBack);
    let count = rounds().count() as u64 * u64::from(case.flow.rounds_per_entry);
    let mean = waited / count.max(1);
    // A queue grows, and shrinks, from one round trip to the next; jitter jumps.
    let waits: Vec<Duration> = rounds().map(|round| round.wait_on_way_back).collect();
    let jumps: Duration =
        waits.windows(2).map(|pair| pair[0].max(pair[1]) - pair[0].min(pair[1])).sum();
    let longest = waits.iter().copied().max().unwrap_or_default();
    if jumps.saturating_sub(longest) * 2 > waited {
        return None;
    }
    if mean < MIN_WAIT_OF_ACKS || mean * 2 < base || !case.is_significant(cost) {
        return None;
    }
    let title = format!("the ACKs wait {} on their way back, on top of {}", time(mean), time(base));
    let share = time_percent(waited, case.active());
    Some(
        case.finding(&RULE, cost, title)
            .of_kind("return-path")
            .with([
                number("mean_wait_of_acks_s", seconds(mean), "wait", format!("{} in each round trip on average", time(mean))),
                number("waited_s", seconds(waited), "waited", format!("{} in all, {share} of the time at work", time(waited))),
            ])
            .because("the way of the ACKs is full: by its own rate, or by other traffic in that direction")
            .unseen("whose packets fill it"),
    )
}

/// A queue before the bottleneck of the data.
fn way_there(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let (mean, most) = case.course.standing_queue;
    let base = case.course.path.base_rtt?;
    let busy = case.course.budget.of(Limiter::Path);
    // A queue of up to one RTT keeps the path busy through a window reduction.
    if mean < base || busy * 4 < case.active() || !delay_follows_load(case.flow, base) {
        return None;
    }
    let title = format!("a queue of {} stands in the path, on top of {}", time(mean), time(base));
    let mut finding = case
        .finding(&RULE, mean, title)
        .with([
            number("mean_wait_s", seconds(mean), "wait", format!("{} on average, {} at most for a whole round trip", time(mean), time(most))),
            number("busy_share", time_share(busy, case.active()), "busy", format!("{} of the time at work", time_percent(busy, case.active()))),
        ])
        .with(case.course.path.rate.map(|rate| {
            let bytes = bytes_in(rate, mean);
            number("queue_bytes", bytes, "queue", format!("{} at that rate", size(bytes as u64)))
        }))
        .with(case.path_rate())
        .because("the queue before the bottleneck is long, and only a loss makes the sender stop growing")
        .unseen("whose traffic fills it, if not this one's alone");
    finding.severity =
        if mean >= MAX_CONVERSATION_DELAY { Severity::Warning } else { Severity::Note };
    Some(finding)
}
