//! CC206: the window was reduced for marks (ECN).
//!
//! Checks for marks that the receiver echoed and that the sender answered with CWR (RFC 3168
//! section 6.1.2), without a loss. Nothing is retransmitted, but the window is reduced.
//!
//! Cost: the growth after such reductions, in rounds in which the path could have carried more,
//! less the time their bytes take at its rate.

use super::case::{DiagnosisCase, count, many, number, seconds, time};
use super::help::{Remedy, RemedyHost};
use super::{DiagnosisRule, Finding};
use crate::lost_time::LostTimeCause;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC206",
    name: "the window was reduced for marks (ECN)",
    check,
    background: "\
A queue with AQM marks packets instead of dropping them (RFC 3168): the receiver echoes the mark in its
ACKs (ECE), the sender reduces its window once a round trip and says so (CWR). Nothing is lost and
nothing has to be retransmitted, so a mark costs less than a loss. But the window falls as far (CUBIC: to 70
%, NewReno: to half; with RFC 8511 to 80 % or so), and a queue that marks early, as CoDel does after
5 ms and as switches of data centres do at a few packets, leaves a long path idle after each mark.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "sender: net.inet.tcp.cc.abe=1 (RFC 8511: smaller reductions for marks)"),
        Remedy::freebsd(RemedyHost::Elsewhere, "at a FreeBSD router: a larger target of fq_codel in dummynet"),
        Remedy::linux(RemedyHost::Elsewhere, "at a Linux router: tc qdisc fq_codel or cake with target and interval for the round trip (cake rtt), no ce_threshold below it"),
        Remedy::general("marking thresholds for the round trips there are; senders made for shallow marks (DCTCP, Prague) only where the queue is made for them"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let marks = case.episodes(LostTimeCause::Mark);
    if marks.count == 0 {
        return None;
    }
    let cost = case.course.lost(LostTimeCause::Mark);
    let flow = case.flow;
    let base = case.course.path.base_rtt?;
    let queue = marks.rtt.saturating_sub(base);
    let title = format!(
        "a queue marked packets (ECN): the window was reduced {}",
        many(marks.count, "time")
    );
    let seen = (flow.marked > 0)
        .then(|| count("marked_packets", flow.marked, "marked", many(flow.marked, "packet")));
    let reductions = format!("{}, {} of marks", marks.count, many(flow.ecn_echoes, "echo"));
    let waited = format!(
        "{} at most when the sender learned of a mark, round trip {} without",
        time(queue),
        time(base)
    );
    let before = format!("{} MSS before", case.segments(marks.window));
    let behind = "which packets were marked: that shows behind the queue";
    Some(
        case.finding(&RULE, cost, title)
            .at(marks.interval, marks.frames)
            .with([
                count("reductions", marks.count, "reductions", reductions),
                number("queue_s", seconds(queue), "queue", waited),
                count("window_bytes", marks.window, "window", before),
            ])
            .with(seen)
            .with(case.path_rate())
            .because(
                "a queue on the path signals congestion by marks, and the sender answers each \
                 round trip's first",
            )
            .unseen(if flow.marked > 0 { "" } else { behind })
            .unseen(case.bound()),
    )
}
