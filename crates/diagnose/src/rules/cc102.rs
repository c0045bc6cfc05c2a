//! CC102: slow start is most of the transfer.
//!
//! Checks the time that the first slow start lost while the path could have carried more. It is the
//! cost of an unknown path: the window doubles each RTT from ten segments (RFC 6928), so it takes
//! log2(window/10) RTTs to fill the path, and a transfer that is not much longer than that is all
//! slow start.
//!
//! Cost: the time of the rounds of slow start less the time their bytes take at the rate of the
//! path, and less the RTT that the first data take with any window. The effect of stretch ACKs is
//! CC101's, that of reordering CC301's; a slow start that overflowed the queue is CC103's.

use super::case::{DiagnosisCase, count, many, number, seconds, size, time, time_percent};
use super::help::{Remedy, RemedyHost};
use super::{DiagnosisRule, Finding, Severity, cc101, cc301};
use crate::lost_time::{LostTimeCause, fraction};
use crate::rounds::RoundOrigin;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
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
        Remedy::freebsd(
            RemedyHost::Sender,
            "reuse connections; net.inet.tcp.initcwnd_segments (10) on paths that are known",
        ),
        Remedy::linux(
            RemedyHost::Sender,
            "reuse connections; ip route change ROUTE initcwnd 30 initrwnd 30 on paths that are known",
        ),
        Remedy::general("reuse connections, transfer more over each, or serve from nearer"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    if case.course.episode_causes.contains(&LostTimeCause::Overshoot) {
        return None;
    }
    let ramp = case.course.ramps.iter().find(|ramp| ramp.before == RoundOrigin::Opening)?;
    let share = cc101::starved(case, ramp).map_or(1.0, |growth| growth.share);
    let trip = case.course.first_rtt;
    let all = case.course.lost(LostTimeCause::SlowStart) + trip;
    let cost = fraction(all, share).saturating_sub(trip + cc301::slow_start_delay(case));
    // A transfer within the first window waits for its RTT, not for slow start.
    if !case.is_significant(cost) || !case.is_sizeable() || ramp.rounds.0 == ramp.rounds.1 {
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
                time_percent(ramp.time, case.active()),
            )),
            count("bytes", case.flow.bytes, "transfer", size(case.flow.bytes)),
        ])
        .with(case.path_rate())
        .because("the transfer is short for its path: the window begins at a few segments and doubles each round trip")
        .unseen(case.bound());
    // It is how TCP works, not a fault; and a session that mostly rests waits for its user.
    let limit = if case.is_mostly_idle() { Severity::Note } else { Severity::Warning };
    finding.severity = finding.severity.min(limit);
    Some(finding)
}
