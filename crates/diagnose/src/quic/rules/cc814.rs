//! CC814: persistent congestion.
//!
//! Checks for congestion events that took the window to its minimum: by the trigger in the log, or
//! by a window of at most two datagrams (RFC 9002 section 7.2) that was more than four before.
//!
//! Cost: the time in which the window limited the sender until it was regained, less the time its
//! bytes take at the rate of the bottleneck; after an outage also the waits for its timeouts, and the time in which the window
//! is still too small afterwards.

use super::QuicRule;
use super::case::{bound, episodes, finding, path_rate, regrowth};
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{Finding, Remedy, RemedyHost, count, many, number, size};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC814",
    name: "persistent congestion",
    check,
    background: "\
If all packets sent over three probe timeouts are lost, the window falls to its minimum of two
datagrams (RFC 9002 section 7.6), as after a retransmission timeout of TCP, and slow start begins
again. Short outages of a radio link look like this although nothing is congested. A wrong smoothed
RTT or max_ack_delay makes it more likely: the duration counts from those.",
    help: &[
        Remedy::stack(
            RemedyHost::Sender,
            "quinn",
            "TransportConfig::persistent_congestion_threshold (default 3)",
        ),
        Remedy::general("the outage itself: handover, power saving, a queue that is flushed"),
    ],
};

/// Whether the window collapsed after an outage and cost more than the waits for its timeouts: then those are its own, too;
/// else both are CC813's.
pub(super) fn follows_outage(analysis: &QuicAnalysis) -> bool {
    let collapsed = episodes(analysis, |episode| episode.persistent && episode.after_outage);
    collapsed.is_some_and(|sum| sum.cost > 0 && sum.cost >= super::cc813::waits(analysis))
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let sum = episodes(analysis, |episode| episode.persistent)?;
    let others = || episodes(analysis, |episode| episode.persistent && !episode.after_outage);
    let cost = match follows_outage(analysis) {
        true => {
            let grown = regrowth(analysis, |episode| episode.after_outage);
            sum.cost + super::cc813::waits(analysis) + grown
        }
        false => others().map_or(0, |sum| sum.cost),
    };
    let low =
        analysis.episodes.iter().filter(|e| e.persistent).filter_map(|e| e.window_after).min();
    let high =
        analysis.episodes.iter().filter(|e| e.persistent).filter_map(|e| e.window_before).max();
    let title = format!(
        "the window fell to {} {}",
        low.map_or("its minimum".to_owned(), size),
        many(sum.count, "time")
    );
    Some(
        finding(analysis, &RULE, cost, title)
            .at(interval(sum.interval), sum.events)
            .with([
                count("persistent_congestions", sum.count, "collapses", many(sum.count, "time")),
                count("lost_packets", sum.lost, "lost", many(sum.lost, "packet")),
                count(
                    "window_before_bytes",
                    high.unwrap_or(0),
                    "window",
                    format!("{} before, {} after", size(high.unwrap_or(0)), size(low.unwrap_or(0))),
                ),
                number(
                    "limited_s",
                    seconds(sum.span.ns),
                    "limited",
                    format!("for {} until it was regained", time(sum.span.ns)),
                ),
            ])
            .with(path_rate(analysis))
            .because("every packet of three probe timeouts was lost, or the controller took it so")
            .unseen(if cost > 0 { bound(analysis) } else { "" }),
    )
}
