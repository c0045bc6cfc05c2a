//! CC202: losses by queue overflow.
//!
//! Checks for losses at the moment the queue was as long as it ever gets, outside the first slow
//! start. That is how a drop-tail queue tells a sender to slow down; it costs something only if
//! the queue is so short that the path runs dry after the window is reduced.
//!
//! Cost: recoveries after such losses, and the growth after them, in rounds in which the path could
//! have carried more, less what their bytes take at its rate.

use super::case::{Case, count, number, seconds, time};
use super::{Finding, Rule};
use crate::blame::Blame;

pub(super) const RULE: Rule = Rule {
    code: "CC202",
    name: "losses by queue overflow",
    check,
    background: "\
The window grows until a queue overflows; the loss halves it; it grows again. As long as the queue
holds what the reduced window leaves (for NewReno a bandwidth-delay product, RFC 3439 section 2.4,
for CUBIC 3/7 of it) the path stays busy and nothing is lost but the packets. A shorter queue leaves
the path idle after each loss. A longer one costs waiting instead (CC601).",
    help: &[
        (
            "FreeBSD",
            "net.inet.tcp.cc.algorithm=cubic; at a FreeBSD router: dummynet with fq_codel, ALTQ codel",
        ),
        (
            "Linux",
            "net.ipv4.tcp_congestion_control=cubic; at a Linux router: tc qdisc fq_codel or cake",
        ),
        ("other", "a queue of one bandwidth-delay product with AQM, ECN at both ends"),
    ],
};

fn check(case: &Case<'_>) -> Option<Finding> {
    let losses = case.episodes(Blame::Overflow);
    if losses.count == 0 {
        return None;
    }
    let cost = case.course.lost(Blame::Overflow);
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
                Case::lost_packets(&losses),
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
