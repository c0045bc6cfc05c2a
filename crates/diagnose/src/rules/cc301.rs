//! CC301: reordering.
//!
//! Checks for packets that arrived after later ones without having been retransmitted, three or
//! more positions out of order, the threshold of duplicate ACKs (RFC 5681 section 3.2).
//!
//! Cost: the growth that slow start missed. An ACK that reports data above a gap allows no more
//! than that, and less if the stack counts only cumulative ACKs: rounds of slow start with
//! reordered packets that did not double missed a part of an RTT. The last of them, in which slow
//! start ended, does not count. The cost of spurious recoveries is CC302's.

use units::{Duration, maths::log2};

use super::case::{DiagnosisCase, count, number, seconds, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{DiagnosisRule, Finding, cc101};
use crate::lost_time::fraction;
use crate::path::busy;
use crate::rounds::RoundOrigin;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
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
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.functions_default=rack").unless(Setting::RackStack),
        Remedy::freebsd(RemedyHost::Receiver, "at the receiver ifconfig IF -lro to see whether LRO sorts wrongly"),
        Remedy::linux(RemedyHost::Sender, "net.ipv4.tcp_recovery=1 (default)").unless(Setting::Default),
        Remedy::linux(RemedyHost::Lacking, "net.ipv4.tcp_sack=1, tcp_dsack=1 (defaults)").unless(Setting::Sack),
        Remedy::linux(RemedyHost::Receiver, "ethtool -k at the receiver"),
        Remedy::general("hash flows, not packets, over parallel links"),
        Remedy::other(RemedyHost::Sender, "RACK at the sender").if_possible(Setting::Sack),
    ],
};

/// Time by which reordering delayed the first slow start.
pub(super) fn slow_start_delay(case: &DiagnosisCase<'_>) -> Duration {
    let ramp = case.course.ramps.iter().find(|ramp| ramp.before == RoundOrigin::Opening);
    let Some(ramp) = ramp.filter(|ramp| cc101::starved(case, ramp).is_none()) else {
        return Duration::ZERO;
    };
    let (first, last) = ramp.rounds;
    let Some(rounds) = case.flow.rounds.get(first..last) else { return Duration::ZERO };
    let base = case.course.path.base_rtt.unwrap_or_default();
    // RTTs by which growth lags doubling; a window left unused for a round catches up in the next.
    // Once the path is busy nothing is lost.
    let behind: f64 = rounds
        .windows(2)
        .filter(|pair| pair[1].late > 0 && pair[0].sent > 0 && pair[1].sent > 0)
        .filter(|pair| !busy(&pair[0], base, case.flow.mss))
        .map(|pair| 1.0 - log2(pair[1].sent as f64 / pair[0].sent as f64))
        .sum();
    fraction(base, behind.max(0.0)).min(ramp.lost)
}

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let flow = case.flow;
    let seen = flow.reordering;
    if seen.packets == 0 || case.course.path.extent < 3 {
        return None;
    }
    let share = seen.packets as f64 / flow.counts.new.max(1) as f64;
    let slow_start_delay = slow_start_delay(case);
    let title = format!(
        "{} of {} packets came out of order, up to {} places late",
        seen.packets, flow.counts.new, case.course.path.extent
    );
    Some(
        case.finding(&RULE, slow_start_delay, title)
            .at((flow.first_data.0, flow.last_delivery), (seen.first_frame, flow.last_frame))
            .with([
                count("reordered_packets", seen.packets, "late", format!("{} packets ({:.1} %)", seen.packets, share * 100.0)),
                count("extent_packets", case.course.path.extent, "extent", format!("{} packets", case.course.path.extent)),
                number("late_s", seconds(seen.late), "by", format!("{} at most", time(seen.late))),
                number("withheld_s", seconds(slow_start_delay), "slow start", format!("{} behind one that doubles", time(slow_start_delay))),
                count("spurious_retransmissions", flow.counts.spurious, "false alarms", super::case::many(flow.counts.spurious, "spurious retransmission")),
            ])
            .because("the path, a driver or an offload changes the order of packets")
            .unseen("what happens below this capture: the order before LRO at the receiver, parallel links"),
    )
}
