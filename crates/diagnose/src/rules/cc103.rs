//! CC103: slow start ran over the queue.
//!
//! Checks whether the first losses came when slow start filled a queue, and were a large part of a
//! window. The window doubles once more in the RTT before the first loss is reported, so up to half
//! of that window is lost (RFC 9406 section 1), and the recovery takes RTTs in which the
//! application receives nothing.
//!
//! Cost: the lost time of this slow start and of its recovery together: one slow start, one
//! finding.

use super::case::{DiagnosisCase, count, number, seconds, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{DiagnosisRule, Finding, Severity};
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC103",
    name: "slow start ran over the queue",
    check,
    background: "\
Slow start doubles the window until a loss is reported, and that report comes a round trip late. With
a drop-tail queue the last doubling is lost: often as many packets as the path holds. They are all
repaired in one long recovery, during which the application gets nothing, and with a stack without
SACK it takes a round trip per packet. HyStart (RFC 9406) ends slow start when the round trip grows,
before the queue is full; CUBIC has it on Linux and on FreeBSD (net.inet.tcp.cc.hystartplusplus).
Pacing makes the overrun smaller.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.cc.algorithm=cubic (HyStart++ on) instead of newreno").unless(Setting::Controller("cubic")),
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.functions_default=rack paces").unless(Setting::RackStack),
        Remedy::linux(RemedyHost::Sender, "net.ipv4.tcp_congestion_control=cubic with HyStart on (default)").unless(Setting::Controller("cubic")),
        Remedy::linux(RemedyHost::Sender, "net.core.default_qdisc=fq for pacing"),
        Remedy::other(RemedyHost::Sender, "HyStart++ (RFC 9406), pacing"),
        Remedy::general("a queue with AQM (CoDel, PIE) at the bottleneck"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let over = case.episodes(LostTimeCause::Overshoot);
    if over.count == 0 {
        return None;
    }
    let ramp = case.course.ramps.first()?;
    let cost =
        case.course.lost(LostTimeCause::SlowStart) + case.course.lost(LostTimeCause::Overshoot);
    let title = format!(
        "slow start ran over the queue: {} packets lost of a window of {}",
        over.lost,
        case.segments(over.window)
    );
    let mut finding = case
        .finding(&RULE, cost, title)
        .at((ramp.from, over.interval.1), (ramp.frame, over.frames.1))
        .with([
            count(
                "lost_packets",
                over.lost,
                "lost",
                format!("{} packets in one recovery", over.lost),
            ),
            number(
                "ramp_lost_s",
                seconds(ramp.lost),
                "ramp",
                format!("{} of lost time", time(ramp.lost)),
            ),
            number(
                "repair_s",
                seconds(over.length()),
                "repair",
                format!(
                    "{}, in which little or nothing is delivered in order",
                    time(over.length())
                ),
            ),
            number(
                "rtt_at_loss_s",
                seconds(over.rtt),
                "round trip",
                format!(
                    "{} when the loss was seen, {} at rest",
                    time(over.rtt),
                    time(case.course.path.base_rtt.unwrap_or_default())
                ),
            ),
        ])
        .with(case.path_rate())
        .because("the window doubled into a full queue; the loss was reported a round trip later")
        .unseen(case.bound());
    finding.severity = finding.severity.min(Severity::Warning);
    Some(finding)
}
