//! CC101: slow start starved by stretch ACKs.
//!
//! Checks whether each ACK in slow start grows the window by a few segments, however many it
//! covers. RFC 3465 section 2.2 limits the growth per ACK to L segments, L at most 2; FreeBSD has L
//! as `net.inet.tcp.abc_l_var` (`newreno_ack_received`, cc_newreno.c). An ACK that covers 45
//! segments, as with LRO and GRO, then counts for two, and the window grows by two per ACK instead
//! of doubling per RTT.
//!
//! Cost: the lost time of slow start, less that of one that doubles each RTT from the same first
//! window to the same last one; and of linear growth after it that is as fast per ACK.

use units::{Duration, Instant};

use super::case::{DiagnosisCase, count, doublings, number, seconds, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{DiagnosisRule, EvidenceItem, EvidenceValue, Finding};
use crate::lost_time::{LostTimeCause, fraction};
use crate::rounds::{Round, RoundOrigin};
use crate::timeline::{LinearGrowth, SlowStartRamp};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC101",
    name: "slow start starved by stretch ACKs",
    check,
    background: "\
Appropriate byte counting (RFC 3465) lets slow start grow by the bytes an ACK covers, but by no
more than L segments, and RFC 3465 section 2.2 allows L = 2 at most: as much as the delayed ACKs
of RFC 5681 (one for two segments) need. Receivers with LRO or GRO hand TCP up to 64 KB at once and
acknowledge that once. Each such ACK counts for two segments, the window grows by two per ACK, and
slow start is linear or quadratic in time where it should be exponential. FreeBSD's default stack
has L = 2 (net.inet.tcp.abc_l_var). Linux counts all that an ACK covers (tcp_slow_start) and is not
affected. On FreeBSD the sender's own LRO merges returning ACKs too, which makes it worse.",
    help: &[
        Remedy::freebsd(
            RemedyHost::Sender,
            "sender: raise net.inet.tcp.abc_l_var to the segments an ACK covers (44 for full LRO)",
        ),
        Remedy::freebsd(RemedyHost::Sender, "or use net.inet.tcp.functions_default=rack")
            .unless(Setting::RackStack),
        Remedy::freebsd(RemedyHost::Receiver, "receiver, to confirm: ifconfig IF -lro"),
        Remedy::linux(RemedyHost::Receiver, "receiver, to confirm: ethtool -K IF gro off lro off"),
        Remedy::linux(RemedyHost::Sender, "a Linux sender has no such limit"),
        Remedy::other(
            RemedyHost::Sender,
            "sender: raise the limit of byte counting (L of RFC 3465), or pace and count all bytes",
        ),
    ],
};

/// Growth of slow start relative to its ACKs.
pub(super) struct RampGrowth {
    /// Window growth per ACK in segments, the median of the rounds.
    pub(super) per_ack: f64,
    /// Segments covered per ACK in those rounds.
    pub(super) covered: f64,
    /// RTTs that doubling would have taken, as a fraction of those taken.
    pub(super) share: f64,
}

/// The growth of a slow start limited per ACK; `None` if it was not.
pub(super) fn starved(case: &DiagnosisCase<'_>, ramp: &SlowStartRamp) -> Option<RampGrowth> {
    let mss = case.flow.mss as f64;
    let (first, last) = ramp.rounds;
    let mut growths = Vec::new();
    let (mut covered, mut acks) = (0.0, 0.0);
    for pair in case.flow.rounds.get(first..=last)?.windows(2) {
        let [before, round] = pair else { continue };
        if round.sent < before.sent {
            continue;
        }
        // The first ACK of a flight ends its round, and the others arrive in the next; if one ACK
        // covers the flight, a capture that ends in the next round has none there.
        let of_flight = f64::from(round.acks.max(1));
        let per_ack = (round.sent - before.sent) as f64 / of_flight / mss;
        let cover = before.sent as f64 / of_flight / mss;
        // Doubling grows the window by as much as the ACK covers; one segment allows for rounding.
        if cover >= 3.0 && per_ack + 1.0 < cover && per_ack < cover * 0.75 {
            growths.push(per_ack);
            covered += before.sent as f64 / mss;
            acks += of_flight;
        }
    }
    growths.sort_by(f64::total_cmp);
    let rounds = (last - first + 1) as f64;
    let needed = doublings(ramp.windows.0, ramp.windows.1) + 1.0;
    // Three rounds that agree, and most of the ramp.
    if growths.len() < 3 || (growths.len() as f64) * 2.0 < rounds - 1.0 {
        return None;
    }
    Some(RampGrowth {
        per_ack: growths[growths.len() / 2],
        covered: covered / acks,
        share: (needed / rounds).min(1.0),
    })
}

/// Linear growth that a few segments per ACK explain: slow start that took longer than a ramp is followed. Congestion
/// avoidance grows by one segment a round trip at most, and so by one per ACK.
pub(super) struct StarvedClimbs {
    /// Lost time, less a round trip for each doubling.
    lost: Duration,
    /// Growth of the window per ACK in segments, of the longest.
    per_ack: f64,
    /// Begin, end and first frame.
    from: Instant,
    to: Instant,
    frame: u64,
}

/// Least growth per ACK that is no congestion avoidance, in segments: that grows by one for a whole window at most.
const MIN_GROWTH: f64 = 1.25;

/// Growth per ACK of a linear growth that is such a slow start; `None` if it is none.
pub(super) fn starved_growth(case: &DiagnosisCase<'_>, growth: &LinearGrowth) -> Option<f64> {
    let is_stretched = case.flow.coverage.stretched() >= 0.5;
    let inside = |round: &&Round| round.start >= growth.from && round.start < growth.to;
    let acks: u64 = case.flow.rounds.iter().filter(inside).map(|round| u64::from(round.acks)).sum();
    let grown =
        growth.windows.1.saturating_sub(growth.windows.0) as f64 / case.flow.mss.max(1) as f64;
    let per_ack = grown / acks.max(1) as f64;
    let is_early = growth.blame == LostTimeCause::EarlyExit;
    (is_stretched && is_early && per_ack >= MIN_GROWTH).then_some(per_ack)
}

fn starved_climbs(case: &DiagnosisCase<'_>) -> Option<StarvedClimbs> {
    let growths = case.course.linear_growths.iter();
    let of: Vec<_> = growths.filter_map(|one| Some((one, starved_growth(case, one)?))).collect();
    let base = case.course.path.base_rtt.unwrap_or_default();
    let lost = |growth: &LinearGrowth| {
        let (from, to) = growth.windows;
        growth.lost.saturating_sub(fraction(base, doublings(from, to)))
    };
    let (first, last) = (of.first()?.0, of.last()?.0);
    let longest = of.iter().max_by_key(|one| one.0.lost)?;
    Some(StarvedClimbs {
        lost: of.iter().map(|one| lost(one.0)).sum(),
        per_ack: longest.1,
        from: first.from,
        to: last.to,
        frame: first.frame,
    })
}

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let climbs = starved_climbs(case);
    let ramp = case.course.ramps.iter().find(|ramp| ramp.before == RoundOrigin::Opening);
    let ramp = ramp.and_then(|ramp| Some((ramp, starved(case, ramp)?)));
    let of_ramp = ramp.as_ref().map(|(ramp, growth)| fraction(ramp.lost, 1.0 - growth.share));
    let of_climbs = climbs.as_ref().map_or(Duration::ZERO, |climbs| climbs.lost);
    let cost = of_ramp.unwrap_or_default() + of_climbs;
    let usual = case.flow.coverage.mean().unwrap_or_default() / case.flow.mss.max(1) as f64;
    let (per_ack, covered) = match (&ramp, &climbs) {
        (Some((_, growth)), _) => (growth.per_ack, growth.covered),
        (None, Some(climbs)) => (climbs.per_ack, usual),
        (None, None) => return None,
    };
    let title =
        format!("slow start grows by {per_ack:.1} MSS per ACK, ACKs cover {covered:.1} MSS");
    let from = ramp.as_ref().map(|(ramp, _)| (ramp.from, ramp.frame));
    let from = from.or(climbs.as_ref().map(|climbs| (climbs.from, climbs.frame)))?;
    let to = climbs.as_ref().map(|climbs| climbs.to);
    let to = to.or(ramp.as_ref().map(|(ramp, _)| ramp.to))?;
    let mut finding = case
        .finding(&RULE, cost, title)
        .at((from.0, to), (from.1, case.flow.last_frame.max(from.1)))
        .with([
            number(
                "growth_per_ack_mss",
                per_ack,
                "growth",
                format!("{per_ack:.1} MSS per ACK (L of RFC 3465)"),
            ),
            number("acks_cover_mss", covered, "", String::new()),
        ]);
    if let Some((ramp, growth)) = &ramp {
        finding = finding.with(evidence_of_ramp(case, ramp, growth));
    }
    if let Some(climbs) = &climbs {
        let text = format!("{} without a doubling in each round trip", time(climbs.lost));
        finding = finding.with([number("climb_lost_s", seconds(climbs.lost), "climb", text)]);
    }
    let finding = finding
        .with(case.path_rate())
        .because("the receiver or the way back merges ACKs, and the sender counts no more than a few segments per ACK")
        .unseen("whether LRO, GRO or the network merged them")
        .unseen(case.bound());
    Some(finding)
}

fn evidence_of_ramp(
    case: &DiagnosisCase<'_>,
    ramp: &SlowStartRamp,
    growth: &RampGrowth,
) -> [EvidenceItem; 3] {
    let (first, last) = ramp.rounds;
    let flights: Vec<f64> = case.flow.rounds[first..=last]
        .iter()
        .take(8)
        .map(|round| case.segments(round.sent) as f64)
        .collect();
    let words: Vec<_> = flights.iter().map(|flight| format!("{flight:.0}")).collect();
    let ideal = fraction(ramp.time, growth.share);
    [
        EvidenceItem {
            key: "flights_mss",
            value: EvidenceValue::List(flights),
            label: "flights",
            text: format!("{} MSS (each would be twice the one before)", words.join(" ")),
        },
        number(
            "ramp_s",
            seconds(ramp.time),
            "ramp",
            format!("{}; doubling needs about {}", time(ramp.time), time(ideal)),
        ),
        count("ramp_rounds", (last - first + 1) as u64, "", String::new()),
    ]
}
