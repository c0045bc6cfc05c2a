//! CC815: CE marks.
//!
//! Checks for ECN-CE counts in the ACKs received (RFC 9000 section 13.4): each increase is a
//! congestion event (RFC 9002 section 7.1).
//!
//! Cost: the time in which the window limited the sender after such an event until it was regained, less the time its
//! bytes take at the rate of the bottleneck.

use super::QuicRule;
use super::case::{bound, episodes, finding, path_rate};
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{Finding, Remedy, count, many, number};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC815",
    name: "CE marks",
    check,
    background: "\
An AQM marks packets instead of dropping them if both sides use ECN. The sender reduces its window
as for a loss, without a retransmission. A few marks are the sign of a well managed queue; very many
mean that several flows share a short queue, or that the marking threshold is below what the
sender's bursts need.",
    help: &[Remedy::general(
        "a longer marking threshold or pacing, if the path is not busy; otherwise nothing",
    )],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    if analysis.ce == 0 {
        return None;
    }
    let title = format!("the path marked {}", many(analysis.ce, "packet"));
    let sum = episodes(analysis, |episode| episode.by_ce).unwrap_or_default();
    let mut found = finding(analysis, &RULE, sum.cost, title);
    if sum.count > 0 {
        found = found.at(interval(sum.interval), sum.events).with([number(
            "limited_s",
            seconds(sum.span.ns),
            "limited",
            format!(
                "the window for {} until it was regained, in {}",
                time(sum.span.ns),
                many(sum.count, "congestion event")
            ),
        )]);
    }
    let found = found
        .with([count("ce_marks", analysis.ce, "marks", many(analysis.ce, "packet"))])
        .with(path_rate(analysis))
        .because("an AQM on the path signals congestion with CE")
        .unseen(if sum.cost > 0 { bound(analysis) } else { "" });
    Some(found)
}
