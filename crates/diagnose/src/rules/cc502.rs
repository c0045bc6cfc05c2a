//! CC502: slow start again after each rest.
//!
//! Checks for slow starts after an idle time longer than a timeout that begin at less than half of
//! the previous window (RFC 5681 section 4.1: the window falls to the initial one).
//!
//! Cost: the lost time of those slow starts: with the old window the same bytes take their time at
//! the rate of the path. There is no finding unless the sender waited for ACKs with data left to send.

use units::Duration;

use super::case::{DiagnosisCase, count, number, seconds, time};
use super::help::{Remedy, RemedyHost};
use super::{DiagnosisRule, Finding};
use crate::rounds::RoundOrigin;
use crate::timeline::SlowStartRamp;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC502",
    name: "slow start again after each rest",
    check,
    background: "\
After a rest of more than a retransmission timeout the window says nothing about the path any more,
and RFC 5681 section 4.1 lets it fall to the initial window. FreeBSD does so (cc_after_idle), Linux
halves it per timeout of rest (net.ipv4.tcp_slow_start_after_idle). A connection that carries an answer
now and then pays for slow start each time. RFC 7661 keeps the window for some minutes if it was used.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "no setting in the default stack; keep the connection busy, or pace answers (RACK: net.inet.tcp.rack.features)"),
        Remedy::linux(RemedyHost::Sender, "sender: net.ipv4.tcp_slow_start_after_idle=0"),
        Remedy::general("send answers together, or keep several connections warm"),
        Remedy::other(RemedyHost::Sender, "RFC 7661 where there is such a thing"),
    ],
};

fn repeated(ramp: &&SlowStartRamp) -> bool {
    ramp.before == RoundOrigin::Idle && ramp.waits > 0 && ramp.window_before >= 2 * ramp.windows.0
}

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let ramps = || case.course.ramps.iter().filter(repeated);
    let (first, last) = (ramps().next()?, ramps().next_back()?);
    let cost: Duration = ramps().map(|ramp| ramp.lost).sum();
    let many = ramps().count() as u64;
    let title = format!(
        "slow start begins anew after {}: from {} MSS, where {} were in use",
        super::case::many(many, "rest"),
        case.segments(first.windows.0),
        case.segments(first.window_before)
    );
    let mut finding = case
        .finding(&RULE, cost, title)
        .at((first.from, last.to), (first.frame, case.flow.last_frame))
        .with([
            count("restarts", many, "restarts", many.to_string()),
            number(
                "lost_each_s",
                seconds(cost / many),
                "each",
                format!("{} of lost time", time(cost / many)),
            ),
            count("window_before_bytes", first.window_before, "", String::new()),
        ])
        .with(case.path_rate())
        .because("after a rest longer than a timeout the sender forgets its window")
        .unseen(case.bound());
    // Of a session that mostly rests little is lost, unless its time at work is mostly that. Each first flight takes a
    // round trip with any window.
    let trips = case.course.path.base_rtt.unwrap_or_default() * many;
    if case.is_mostly_idle() && cost * 2 < case.active().saturating_sub(trips) {
        finding = finding.note();
    }
    Some(finding)
}
