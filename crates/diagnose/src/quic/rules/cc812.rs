//! CC812: spurious loss by reordering.
//!
//! Checks for packets that were declared lost and acknowledged later, and the congestion events
//! that consist of them. `packets` is how many larger numbers had been acknowledged before one of
//! them, what the packet threshold (RFC 9002 section 6.1.1) would have had to exceed.
//!
//! Cost: the time in which the window limited the sender after such an event until it was regained, and is still too small
//! afterwards, less the time its bytes take at the rate of the bottleneck.

use super::QuicRule;
use super::case::{bound, episodes, finding, is_spurious, path_rate, regrowth, severity};
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::quic::record::QuicLossTrigger;
use crate::rules::{Finding, Remedy, RemedyHost, Severity, count, many, number, percent};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC812",
    name: "spurious loss by reordering",
    check,
    background: "\
A packet counts as lost when one sent three packets later is acknowledged (kPacketThreshold, RFC
9002 section 6.1.1), or 9/8 of a round trip after it was sent once a later one is acknowledged
(kTimeThreshold). Paths that reorder by more (several links, some radio links, GSO with several
queues) make the sender reduce its window for packets that arrive. RFC 9002 recommends no packet
threshold below 3 and allows an adaptive one; few stacks adapt it, and few undo the reduction.",
    help: &[
        Remedy::stack(
            RemedyHost::Sender,
            "quinn",
            "TransportConfig::packet_threshold above the reordering seen; TransportConfig::time_threshold",
        ),
        Remedy::stack(
            RemedyHost::Sender,
            "quic-go",
            "packetThreshold and timeThreshold are constants of internal/ackhandler; there is no option",
        ),
        Remedy::general(
            "a higher packet threshold with the time threshold as the guard, as RACK has (RFC 8985)",
        ),
        Remedy::general("path: one queue per flow; hash packets of a flow to the same link"),
    ],
};

/// Whether the packets arrived in order, but after the sender's timeouts.
const fn is_late(analysis: &QuicAnalysis) -> bool {
    analysis.spurious > 0 && analysis.reordering.packets == 0
}

fn overtaken(analysis: &QuicAnalysis) -> String {
    let threshold = analysis.reordering_threshold.unwrap_or(3);
    match analysis.reordering.packets {
        0 if is_late(analysis) => "by none".to_owned(),
        0 => format!("not in the log by how many packets; the threshold is {threshold}"),
        most => format!("by up to {}; the threshold is {threshold}", many(most, "packet")),
    }
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let arrived = analysis.spurious.max(analysis.reported_spurious);
    let lost = analysis.all_lost();
    if arrived == 0 {
        return None;
    }
    let sum = episodes(analysis, is_spurious).unwrap_or_default();
    let cost = sum.cost + regrowth(analysis, is_spurious);
    let reordering = &analysis.reordering;
    let title =
        format!("{arrived} of {lost} packets declared lost arrived ({})", percent(arrived, lost));
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(reordering.interval), reordering.events)
        .with([
            count(
                "spurious_packets",
                arrived,
                "spurious",
                format!("{arrived} of {lost} declared lost"),
            ),
            count("overtaken_by_packets", reordering.packets, "overtaken", overtaken(analysis)),
            number(
                "late_s",
                seconds(reordering.late),
                "late",
                format!(
                    "acknowledged up to {} after they were declared lost",
                    time(reordering.late)
                ),
            ),
            count(
                "by_packet_threshold",
                analysis.lost.get(&QuicLossTrigger::Packets).copied().unwrap_or(0),
                "",
                String::new(),
            ),
            count(
                "by_time_threshold",
                analysis.lost.get(&QuicLossTrigger::Time).copied().unwrap_or(0),
                "",
                String::new(),
            ),
            count(
                "spurious_congestion_events",
                sum.count,
                "events",
                format!("{} in which most packets arrived", many(sum.count, "congestion event")),
            ),
        ])
        .with(path_rate(analysis))
        .because(if is_late(analysis) {
            "the packets or their ACKs came late, after all others: no later packet overtook them"
        } else {
            "the path reorders packets by more than the sender's thresholds allow"
        })
        .unseen(if cost > 0 { bound(analysis) } else { "" });
    // Most losses of the connection are none: a fault even where the cost cannot be computed.
    let mostly = arrived * 2 > lost && arrived >= 10;
    let floor = if mostly { Severity::Warning } else { Severity::Note };
    found.severity = severity(analysis, cost).max(floor);
    Some(found)
}
