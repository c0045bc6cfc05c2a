//! CC813: probe timeouts.
//!
//! Checks for probe timeouts after the handshake: their number, the longest chain, and the silence
//! before them.
//!
//! If the last three have no answer, the connection failed.
//!
//! Cost: the silence since the acknowledgments were due; and, after an outage, the time until the window was regained and
//! in which it is still too small afterwards, less what its bytes take at the rate of the bottleneck.

use super::QuicRule;
use super::case::{episodes, finding, regrowth};
use crate::quic::analysis::QuicEpisode;
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{DEAD_PATH, Finding, Remedy, RemedyHost, count, many, number};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC813",
    name: "probe timeouts",
    check,
    background: "\
If nothing is acknowledged the sender sends a probe after smoothed_rtt + max(4*rttvar, 1 ms) +
max_ack_delay (RFC 9002 section 6.2), and doubles the time at each further one. Losses at the end of
a flight are found this way only. A chain of several is an outage of the path (handover, a dead NAT
binding, a blocked UDP flow) or a peer that stopped; a peer that acknowledges later than its
max_ack_delay causes spurious ones.",
    help: &[
        Remedy::stack(
            RemedyHost::Sender,
            "quic-go",
            "Config.KeepAlivePeriod below the NAT's timeout, if the chains follow idle times",
        ),
        Remedy::stack(
            RemedyHost::Sender,
            "quinn",
            "TransportConfig::keep_alive_interval; TransportConfig::initial_rtt",
        ),
        Remedy::stack(
            RemedyHost::Sender,
            "msquic",
            "QUIC_SETTINGS KeepAliveIntervalMs, DisconnectTimeoutMs",
        ),
        Remedy::stack(RemedyHost::Sender, "s2n-quic", "Limits::with_max_keep_alive_period"),
        Remedy::general(
            "migrate or reconnect after two timeouts on mobile hosts (RFC 9000 section 9)",
        ),
        Remedy::general(
            "fewer, larger writes, so that the last packets of a message are seldom alone",
        ),
    ],
};

fn usual_round_trip(analysis: &QuicAnalysis) -> u64 {
    analysis.round_trips.map_or(0, |[_, smoothed, _]| smoothed)
}

/// The silence before probe timeouts in ns, since the ACKs were due.
pub(super) fn waits(analysis: &QuicAnalysis) -> u64 {
    analysis.budget.of(QuicLimiter::Timeout).ns.saturating_sub(analysis.acks_due)
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let after = analysis.timeouts - analysis.handshake.timeouts.min(analysis.timeouts);
    let waited = analysis.budget.of(QuicLimiter::Timeout);
    let rtt = usual_round_trip(analysis);
    // Packets of a size that vanishes are CC852's.
    let has_vanished = super::cc852::has_vanished(analysis);
    if after == 0 || has_vanished || !analysis.is_sender() && waited.ns == 0 {
        return None;
    }
    // The window that an outage reduced is a part of its cost. One that collapsed has a finding of its own, CC814, which
    // has the waits, too.
    let is_outage = |episode: &QuicEpisode| episode.after_outage;
    let reduced = episodes(analysis, is_outage).map_or(0, |sum| sum.cost);
    // Those of single losses, again and again, are a part of CC811's.
    let is_of_another =
        super::cc814::follows_outage(analysis) || super::cc811::explains_timeouts(analysis);
    let cost = match is_of_another {
        true => 0,
        false => waits(analysis) + reduced + regrowth(analysis, is_outage),
    };
    let chain = analysis.max_timeouts;
    let title = match chain {
        0 | 1 => {
            format!("{}, {} of waiting for them", many(after, "probe timeout"), time(waited.ns))
        }
        _ => format!(
            "{}, up to {chain} in a row, {} of waiting for them",
            many(after, "probe timeout"),
            time(waited.ns)
        ),
    };
    let (period, events) = if waited.times > 0 {
        (waited.interval, waited.events)
    } else {
        ((analysis.first, analysis.last), analysis.range)
    };
    let found = finding(analysis, &RULE, cost, title)
        .at(interval(period), events)
        .with([
            count("timeouts", after, "timeouts", many(after, "probe timeout")),
            count("longest_chain", chain, "in a row", format!("{chain}")),
            number(
                "waited_s",
                seconds(waited.ns),
                "waited",
                format!("{}; a round trip is {}", time(waited.ns), time(rtt)),
            ),
        ])
        .because(if chain > 1 {
            "nothing came back for several timeouts: the path or the peer was gone"
        } else if analysis.episodes.iter().any(is_outage) {
            "nothing of a full window arrived: the path was gone for a while"
        } else {
            "the last packets of a flight, or all of their acknowledgments, were lost or late"
        });
    let is_dead = analysis.unanswered >= u64::from(DEAD_PATH);
    Some(if is_dead { found.failure_above_note() } else { found })
}
