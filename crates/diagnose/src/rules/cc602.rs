//! CC602: competing traffic.
//!
//! Checks whether this transfer had clearly less than the bottleneck's capacity while its queue
//! never ran empty: others used the rest. The capacity is that of the spacing of bursts, or the sum
//! of this and of other transfers of the capture between the same hosts.
//!
//! Cost: the time in which the bottleneck was busy, times the share of the others: alone, the same
//! bytes would have taken that much less. Of a step in the rate that explains nearly all of it, the larger of both costs.

use units::Duration;

use super::case::{DiagnosisCase, number, rate, time_percent, time_share};
use super::help::{Remedy, RemedyHost};
use super::neighbours::TransferSummary;
use super::rate_drop::RateDrop;
use super::{Confidence, DiagnosisRule, Finding};
use crate::lost_time::fraction;
use crate::path::delay_follows_load;
use crate::time_budget::Limiter;
use crate::timeline::SHARED_FRACTION;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC602",
    name: "competing traffic",
    check,
    background: "\
Flows that share a bottleneck share its rate, roughly evenly if their round trips and controllers are
alike; a shorter round trip or a bolder controller takes more. The queue stays busy, so nothing is
wasted: each is simply not alone. Packets that were sent together leave the bottleneck spaced to its
whole rate now and then, which shows more than this flow gets.",
    help: &[
        Remedy::freebsd(RemedyHost::Elsewhere, "weights at the bottleneck: dummynet queues; a scavenger class for background transfers"),
        Remedy::linux(RemedyHost::Elsewhere, "tc qdisc cake or fq_codel at the bottleneck shares per flow or host; SO_PRIORITY/DSCP for classes"),
        Remedy::general("fewer transfers at a time, or a queue that shares by weight"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let drop = RateDrop::of(case).map(|drop| drop.finding(case, &RULE));
    let of_others = share_of_others(case);
    match (drop, of_others) {
        // A step that explains nearly all of it is the more exact answer.
        (Some(drop), Some(others)) if others.cost <= drop.cost / 4 * 5 => {
            Some(Finding { cost: drop.cost.max(others.cost), ..drop })
        }
        (drop, others) => others.or(drop),
    }
}

/// This flow has less than the bottleneck carries.
fn share_of_others(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let path = &case.course.path;
    let (share, edge) = (path.share?, path.rate?);
    let budget = &case.course.budget;
    // Without SACK a recovery repairs a packet a round trip, whatever the path carries.
    let repairs = if case.has_no_sack() { Duration::ZERO } else { budget.of(Limiter::Recovery) };
    let busy = budget.of(Limiter::Path) + repairs;
    let base = path.base_rtt?;
    if busy * 4 < case.active() || !delay_follows_load(case.flow, base) {
        return None;
    }
    let (others, concurrent_transfers) = concurrent_transfers(case);
    let all = edge.max(if concurrent_transfers > 0 { share + others } else { 0.0 });
    if share >= SHARED_FRACTION * all {
        return None;
    }
    let cost = fraction(busy, 1.0 - share / all);
    let title = format!(
        "this transfer has {} of the {} that the bottleneck carries",
        rate(share),
        rate(all)
    );
    let mut finding = case
        .finding(&RULE, cost, title)
        .with([
            number(
                "share_bps",
                share * 8.0,
                "share",
                format!("{} while the queue never ran empty", rate(share)),
            ),
            number("capacity_bps", all * 8.0, "capacity", rate(all)),
            number(
                "busy_share",
                time_share(busy, case.active()),
                "busy",
                format!("{} of the time at work", time_percent(busy, case.active())),
            ),
        ])
        .because("others use the same bottleneck");
    if concurrent_transfers > 0 {
        let text = format!(
            "{} between the same hosts at the same time: {}",
            super::case::many(concurrent_transfers, "transfer"),
            rate(others)
        );
        finding = finding.with([number("others_bps", others * 8.0, "beside", text)]);
    } else {
        finding.confidence = finding.confidence.min(Confidence::Medium);
        finding = finding.unseen("the other traffic: it does not pass here");
    }
    Some(finding)
}

/// Rate and number of the other transfers of the capture between the same hosts during this one.
fn concurrent_transfers(case: &DiagnosisCase<'_>) -> (f64, u64) {
    let (from, to) = (case.flow.first_data.0, case.flow.last_delivery);
    let Some(own) = TransferSummary::of(case.analysis) else { return (0.0, 0) };
    let near = case.neighbours.between(own.hosts);
    let (mut bytes, mut count) = (0.0, 0);
    for one in near.filter(|one| one.stream != own.stream) {
        let overlap = to.min(one.span.1).since(from.max(one.span.0));
        let length = one.span.1.since(one.span.0);
        // They count if they overlap for more than a tenth of the time.
        if overlap * 10 > to.since(from) {
            bytes += one.bytes as f64 * time_share(overlap, length);
            count += 1;
        }
    }
    (bytes * 1e9 / to.since(from).as_nanos().max(1) as f64, count)
}
