//! CC202: losses by queue overflow.
//!
//! Checks for losses at the moment of the longest queue, outside the first slow start. That is how
//! a drop-tail queue signals congestion; it costs time only if the queue is so short that it runs
//! empty after the window is reduced.
//!
//! Cost: recoveries after such losses, and the growth after them, in rounds in which the path could
//! have carried more, less the time their bytes take at its rate.

use super::case::{DiagnosisCase, count, number, seconds, time};
use super::help::{Remedy, RemedyHost, SACK_ON_FREEBSD, SACK_ON_LINUX, Setting};
use super::{DiagnosisRule, Finding};
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC202",
    name: "losses by queue overflow",
    check,
    background: "\
The window grows until a queue overflows; the loss halves it; it grows again. As long as the queue
holds what the reduced window leaves (for NewReno a bandwidth-delay product, RFC 3439 section 2.4,
for CUBIC 3/7 of it) the path stays busy and nothing is lost but the packets. A shorter queue leaves
the path idle after each loss. A longer one costs waiting instead (CC601).",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.cc.algorithm=cubic")
            .unless(Setting::Controller("cubic")),
        Remedy::freebsd(
            RemedyHost::Elsewhere,
            "at a FreeBSD router: dummynet with fq_codel, ALTQ codel",
        ),
        SACK_ON_FREEBSD,
        Remedy::linux(RemedyHost::Sender, "net.ipv4.tcp_congestion_control=cubic")
            .unless(Setting::Controller("cubic")),
        Remedy::linux(RemedyHost::Elsewhere, "at a Linux router: tc qdisc fq_codel or cake"),
        SACK_ON_LINUX,
        Remedy::general("a queue of one bandwidth-delay product with AQM"),
        Remedy::general("ECN at both ends").unless(Setting::Ecn),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let losses = case.episodes(LostTimeCause::QueueOverflow);
    if losses.count == 0 {
        return None;
    }
    let cost = case.course.lost(LostTimeCause::QueueOverflow);
    let base = case.course.path.base_rtt?;
    let title = format!(
        "a queue overflowed {}: {} lost",
        super::case::many(losses.count, "time"),
        super::case::many(losses.lost, "packet")
    );
    Some(
        case.finding(&RULE, cost, title)
            .at(losses.interval, losses.frames)
            .with([
                DiagnosisCase::lost_packets(&losses),
                number(
                    "queue_s",
                    seconds(losses.rtt.saturating_sub(base)),
                    "queue",
                    format!(
                        "{} long when it overflowed, {} without",
                        time(losses.rtt.saturating_sub(base)),
                        time(base)
                    ),
                ),
                count(
                    "window_bytes",
                    losses.window,
                    "window",
                    format!("{} MSS then", case.segments(losses.window)),
                ),
            ])
            .with(case.path_rate())
            .because("the window outgrew the path and its queue")
            .unseen(case.bound()),
    )
}
