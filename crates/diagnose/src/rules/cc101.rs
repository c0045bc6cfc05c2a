//! CC101: slow start starved by stretch ACKs.
//!
//! Checks whether each ACK in slow start grows the window by a few segments, however many it
//! covers. RFC 3465 section 2.2 limits the growth per ACK to L segments, L at most 2; FreeBSD has L
//! as `net.inet.tcp.abc_l_var` (`newreno_ack_received`, cc_newreno.c). An ACK that covers 45
//! segments, as with LRO and GRO, then counts for two, and the window grows by two per ACK instead
//! of doubling per RTT.
//!
//! Cost: the lost time of slow start, less that of one that doubles each RTT from the same first
//! window to the same last one.

use super::case::{DiagnosisCase, count, doublings, number, seconds, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{DiagnosisRule, EvidenceItem, EvidenceValue, Finding};
use crate::lost_time::fraction;
use crate::rounds::RoundOrigin;
use crate::timeline::SlowStartRamp;

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

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let ramp = case.course.ramps.iter().find(|ramp| ramp.before == RoundOrigin::Opening)?;
    let growth = starved(case, ramp)?;
    let cost = fraction(ramp.lost, 1.0 - growth.share);
    let (first, last) = ramp.rounds;
    let flights: Vec<f64> = case.flow.rounds[first..=last]
        .iter()
        .take(8)
        .map(|round| case.segments(round.sent) as f64)
        .collect();
    let words: Vec<_> = flights.iter().map(|flight| format!("{flight:.0}")).collect();
    let title = format!(
        "slow start grows by {:.1} MSS per ACK, ACKs cover {:.1} MSS",
        growth.per_ack, growth.covered
    );
    let ideal = fraction(ramp.time, growth.share);
    let finding = case
        .finding(&RULE, cost, title)
        .at((ramp.from, ramp.to), (ramp.frame, case.flow.last_frame.max(ramp.frame)))
        .with([
            number("growth_per_ack_mss", growth.per_ack, "growth", format!("{:.1} MSS per ACK (L of RFC 3465)", growth.per_ack)),
            number("acks_cover_mss", growth.covered, "", String::new()),
            EvidenceItem {
                key: "flights_mss",
                value: EvidenceValue::List(flights),
                label: "flights",
                text: format!("{} MSS (each would be twice the one before)", words.join(" ")),
            },
            number("ramp_s", seconds(ramp.time), "ramp", format!("{}; doubling needs about {}", time(ramp.time), time(ideal))),
            count("ramp_rounds", (last - first + 1) as u64, "", String::new()),
        ])
        .with(case.path_rate())
        .because("the receiver or the way back merges ACKs, and the sender counts no more than a few segments per ACK")
        .unseen("whether LRO, GRO or the network merged them")
        .unseen(case.bound());
    Some(finding)
}
