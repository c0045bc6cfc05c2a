//! CC102: slow start is most of the transfer.
//!
//! Checks what the first slow start lost while the path could have carried more. It is the price of
//! an unknown path: the window doubles each round trip from ten segments (RFC 6928), so it takes
//! log2(window/10) round trips to fill the path, and a transfer that is not much longer than that
//! is all slow start.
//!
//! Cost: the time of the ramp's rounds less what their bytes take at the rate of the path, and less
//! the round trip that the first data take with any window. What stretch ACKs add is CC101's, what
//! reordering adds CC301's; a ramp that overran the queue is CC103's.

use super::case::{Case, count, many, number, percent, seconds, size, time};
use super::{Finding, Rule, Severity, cc101, cc301};
use crate::blame::Blame;
use crate::rounds::Before;

pub(super) const RULE: Rule = Rule {
    code: "CC102",
    name: "slow start is most of the transfer",
    check,
    background: "\
A new connection knows nothing of its path. It begins with about ten segments (RFC 6928) and doubles
them each round trip (RFC 5681 section 3.1) until something gives. To fill a path of 100 Mbit/s and
100 ms, seven round trips pass: 0.7 s, in which the path could have carried 9 MB. A short transfer
over a long path never gets further. Nothing is broken; what helps is to pay the price less often
(keep connections open, fetch several things over one), to begin higher where the path is known, or
to shorten the way.",
    help: &[
        (
            "FreeBSD",
            "reuse connections; net.inet.tcp.initcwnd_segments (10) on paths that are known",
        ),
        (
            "Linux",
            "reuse connections; ip route change ROUTE initcwnd 30 initrwnd 30 on paths that are known",
        ),
        ("other", "reuse connections, transfer more over each, or serve from nearer"),
    ],
};

fn check(case: &Case<'_>) -> Option<Finding> {
    if case.course.blames.contains(&Blame::Overshoot) {
        return None;
    }
    let ramp = case.course.ramps.iter().find(|ramp| ramp.before == Before::Opening)?;
    let share = cc101::starved(case, ramp).map_or(1.0, |growth| growth.share);
    let trip = case.course.first_trip;
    let all = case.course.lost(Blame::SlowStart) + trip;
    let cost = ((all as f64 * share) as u64).saturating_sub(trip + cc301::withheld(case));
    // What fits into the first window waits for its round trip, not for slow start.
    if !case.worth(cost) || ramp.rounds.0 == ramp.rounds.1 {
        return None;
    }
    let (first, last) = ramp.windows;
    let title =
        format!("slow start takes {} of the {} at work", time(ramp.time), time(case.active()));
    let mut finding = case
        .finding(&RULE, cost, title)
        .at((ramp.from, ramp.to), (ramp.frame, case.flow.rounds.get(ramp.rounds.1 + 1).map_or(case.flow.last_frame, |next| next.frame)))
        .with([
            number("ramp_s", seconds(ramp.time), "ramp", format!(
                "from {} to {} MSS in {}, {} of the time at work",
                case.segments(first), case.segments(last), many((ramp.rounds.1 - ramp.rounds.0 + 1) as u64, "round trip"),
                percent(ramp.time, case.active()),
            )),
            count("bytes", case.flow.bytes, "transfer", size(case.flow.bytes)),
        ])
        .with(case.path_rate())
        .because("the transfer is short for its path: the window begins at a few segments and doubles each round trip")
        .unseen(case.bound());
    // It is how TCP works, not a fault.
    finding.severity = finding.severity.min(Severity::Warning);
    Some(finding)
}
