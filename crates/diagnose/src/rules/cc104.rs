//! CC104: slow start left early.
//!
//! Checks whether slow start ended without a loss, well below the bandwidth-delay product, and the
//! window then grew slowly. HyStart takes a few late ACKs for a queue; a threshold cached from an
//! earlier connection does the same (FreeBSD's host cache, Linux's tcp_metrics).
//!
//! Cost: the time of the rounds after that, until the queue was first seen busy or something else
//! limited the sender, less the time their bytes take at the rate of the path.

use super::case::{DiagnosisCase, bytes_in, count, many, number, rate, size, time};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding};
use crate::lost_time::LostTimeCause;
use crate::rounds::RoundOrigin;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC104",
    name: "slow start left early",
    check,
    background: "\
Slow start can end without any loss: HyStart (RFC 9406, and CUBIC's own on Linux) ends it when ACKs
of a round come later than those before, or when their train is long. Jitter, GRO and ACK thinning
look like that. A cached slow-start threshold ends it too: FreeBSD keeps one per host (hostcache),
Linux per destination (tcp_metrics). From there the window grows by about a segment a round trip.",
    help: &[
        Remedy::freebsd(
            RemedyHost::Sender,
            "net.inet.tcp.hostcache.enable=0 or sysctl net.inet.tcp.hostcache.purgenow=1 to forget cached thresholds",
        ),
        Remedy::linux(
            RemedyHost::Sender,
            "net.ipv4.tcp_no_metrics_save=1, ip tcp_metrics flush; /sys/module/tcp_cubic/parameters/hystart=0 to confirm",
        ),
        Remedy::general("look for jitter on the ACK path"),
        Remedy::other(RemedyHost::Sender, "HyStart++ (RFC 9406) resumes where HyStart gives up"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let cost = case.course.lost(LostTimeCause::EarlyExit);
    let path = &case.course.path;
    // Fewer than four rounds are the end of the transfer, not linear growth.
    if case.course.rounds_after_exit < 4 || !case.is_significant(cost) {
        return None;
    }
    // A window that does not grow at all is limited by something else (CC503).
    if case.course.plateau.is_some_and(|flat| flat.rounds * 2 >= case.course.rounds_after_exit) {
        return None;
    }
    let ramp = case.course.ramps.iter().find(|ramp| ramp.before == RoundOrigin::Opening)?;
    let (base, capacity) = (path.base_rtt?, path.rate?);
    let holds = bytes_in(capacity, base) as u64;
    // A transfer of less than the path holds twice is over before any growth matters.
    if ramp.windows.1 * 4 >= holds * 3 || case.flow.bytes < 2 * holds {
        return None;
    }
    let title = format!(
        "slow start ended at {} MSS without a loss; the path holds {}",
        case.segments(ramp.windows.1),
        case.segments(holds)
    );
    let mut finding = case
        .finding(&RULE, cost, title)
        .at((ramp.to, case.flow.last_delivery), (ramp.frame, case.flow.last_frame))
        .with([
            count(
                "exit_window_bytes",
                ramp.windows.1,
                "window",
                format!("{} at the end of slow start", size(ramp.windows.1)),
            ),
            number(
                "path_rate_bps",
                capacity * 8.0,
                "path",
                format!("{} and {}: {}", rate(capacity), time(base), size(holds)),
            ),
            count(
                "rounds_after",
                case.course.rounds_after_exit,
                "after",
                format!("{} of slow growth", many(case.course.rounds_after_exit, "round trip")),
            ),
        ])
        .because("HyStart or a cached threshold ended slow start")
        .unseen("the sender's threshold: a log of the sender (BBLog, siftr, ss -ti) shows it");
    finding.confidence = finding.confidence.min(Confidence::Medium);
    Some(finding)
}
