//! CC301: reordering.
//!
//! Checks for packets that came behind later ones without having been sent again, three or more
//! places out of order, which is what duplicate-ACK thresholds tolerate (RFC 5681 section 3.2).
//!
//! Cost: what slow start grew less for it. An ACK that reports something behind a gap lets go no
//! more than that, and where the stack counts what moves the left edge alone, less: rounds of slow
//! start in which packets came late and that did not double are short of a part of a round trip. The
//! last of them, in which slow start ended, is not counted. What false recoveries cost is CC302's.

use units::maths::log2;

use super::case::{Case, count, number, seconds, time};
use super::{Finding, Rule, cc101};
use crate::path::busy;
use crate::rounds::Before;

pub(super) const RULE: Rule = Rule {
    code: "CC301",
    name: "reordering",
    check,
    background: "\
Packets overtake each other: several links or queues under one route, a driver or LRO that sorts by
a wrong hash, radio that repeats. The receiver sends a duplicate ACK with SACK for each packet behind
a gap. Three of them were once proof of a loss; RACK (RFC 8985) waits a quarter of a round trip
instead and longer once it has seen reordering, and Linux raises its threshold (net.ipv4.tcp_reordering
up to tcp_max_reordering). FreeBSD's default stack keeps the threshold of three.",
    help: &[
        ("FreeBSD", "net.inet.tcp.functions_default=rack; at the receiver ifconfig IF -lro to see whether LRO sorts wrongly"),
        ("Linux", "net.ipv4.tcp_recovery=1, tcp_sack=1, tcp_dsack=1 (defaults); ethtool -k at the receiver"),
        ("other", "hash flows, not packets, over parallel links; RACK at the sender"),
    ],
};

/// Time by which reordering held back the first slow start, in ns.
pub(super) fn withheld(case: &Case<'_>) -> u64 {
    let ramp = case.course.ramps.iter().find(|ramp| ramp.before == Before::Opening);
    let Some(ramp) = ramp.filter(|ramp| cc101::starved(case, ramp).is_none()) else { return 0 };
    let (first, last) = ramp.rounds;
    let Some(rounds) = case.flow.rounds.get(first..last) else { return 0 };
    let base = case.course.path.base_rtt.unwrap_or(0);
    // Round trips that doubling is behind; a window that something else kept unused for a round
    // catches up in the next. Once the path is busy nothing is lost.
    let behind: f64 = rounds
        .windows(2)
        .filter(|pair| pair[1].late > 0 && pair[0].sent > 0 && pair[1].sent > 0)
        .filter(|pair| !busy(&pair[0], base))
        .map(|pair| 1.0 - log2(pair[1].sent as f64 / pair[0].sent as f64))
        .sum();
    ((behind.max(0.0) * base as f64) as u64).min(ramp.lost)
}

fn check(case: &Case<'_>) -> Option<Finding> {
    let flow = case.flow;
    let seen = flow.reordering;
    if seen.packets == 0 || case.course.path.extent < 3 {
        return None;
    }
    let share = seen.packets as f64 / flow.counts.new.max(1) as f64;
    let withheld = withheld(case);
    let title = format!(
        "{} of {} packets came out of order, up to {} places late",
        seen.packets, flow.counts.new, case.course.path.extent
    );
    Some(
        case.finding(&RULE, withheld, title)
            .at((flow.first_data.0, flow.last_delivery), (seen.first_frame, flow.last_frame))
            .with([
                count("reordered_packets", seen.packets, "late", format!("{} packets ({:.1} %)", seen.packets, share * 100.0)),
                count("extent_packets", case.course.path.extent, "extent", format!("{} packets", case.course.path.extent)),
                number("late_s", seconds(seen.late_ns), "by", format!("{} at most", time(seen.late_ns))),
                number("withheld_s", seconds(withheld), "slow start", format!("{} behind one that doubles", time(withheld))),
                count("spurious_retransmissions", flow.counts.spurious, "false alarms", super::case::many(flow.counts.spurious, "spurious retransmission")),
            ])
            .because("the path, a driver or an offload changes the order of packets")
            .unseen("what happens below this capture: the order before LRO at the receiver, parallel links"),
    )
}
