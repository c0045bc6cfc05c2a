//! CC852: large datagrams are lost.
//!
//! Checks for lost packets with stream data that were larger than any packet acknowledged by then,
//! at least three, most of the losses: the path carries small datagrams only. Probes of path MTU
//! discovery carry no stream data. Or for at least five lost packets of a size that arrived before, none of
//! which arrives any more while smaller ones do (kind `mtu`).
//!
//! Cost: the time that the losses took, if they are all of the losses.

use super::QuicRule;
use super::case::{episodes, finding};
use crate::quic::analysis::QuicVanished;
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{DEAD_PATH, Finding, Remedy, RemedyHost, Severity, count, many, number};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC852",
    name: "large datagrams are lost",
    check,
    background: "\
QUIC forbids fragmentation and needs a path that carries 1,200 bytes (RFC 9000 section 14). A tunnel
or a route change that lowers the path MTU drops larger datagrams, often without an ICMP message: all
packets above a size are lost while smaller ones arrive. Stacks with DPLPMTUD (RFC 8899) notice such
a black hole after some losses; stacks with a fixed size do not.",
    help: &[
        Remedy::stack(RemedyHost::Elsewhere, "quic-go", "Config.InitialPacketSize, Config.DisablePathMTUDiscovery"),
        Remedy::stack(RemedyHost::Elsewhere, "quinn", "TransportConfig::initial_mtu, TransportConfig::mtu_discovery_config (black_hole_cooldown)"),
        Remedy::stack(RemedyHost::Elsewhere, "quiche", "Config::set_max_send_udp_payload_size, Config::discover_pmtu"),
        Remedy::stack(RemedyHost::Elsewhere, "msquic", "QUIC_SETTINGS MinimumMtu, MaximumMtu"),
        Remedy::stack(RemedyHost::Elsewhere, "lsquic", "es_base_plpmtu, es_max_plpmtu, es_dplpmtud"),
        Remedy::stack(RemedyHost::Elsewhere, "neqo", "ConnectionParameters::pmtud"),
        Remedy::stack(RemedyHost::Elsewhere, "mvfst", "TransportSettings::canIgnorePathMTU"),
        Remedy::general("path: let ICMP \"fragmentation needed\" and \"packet too big\" pass"),
    ],
};

/// Fewest packets of a size that vanished.
const MIN_VANISHED: u64 = 5;

/// Whether packets of a size that arrived before vanish, while smaller ones arrive.
pub(super) fn has_vanished(analysis: &QuicAnalysis) -> bool {
    vanished(analysis).is_some()
}

fn vanished(analysis: &QuicAnalysis) -> Option<&QuicVanished> {
    let [rtt, ..] = analysis.round_trips?;
    // The losses of one flight may be all that had the size, and a new path begins with a small one.
    let is_lasting = |run: &&QuicVanished| run.lost >= MIN_VANISHED && run.span >= rtt;
    analysis.sizes.vanished.as_ref().filter(|_| analysis.challenges.0 == 0).filter(is_lasting)
}

/// A path MTU that fell during the connection.
fn fallen(analysis: &QuicAnalysis, run: &QuicVanished) -> Finding {
    let waited = analysis.budget.of(QuicLimiter::Timeout).ns;
    let events = episodes(analysis, |episode| episode.at >= run.at).map_or(0, |sum| sum.cost);
    let title = format!(
        "{} of {} B or more vanish after {}, smaller ones arrive",
        many(run.lost, "packet"),
        run.bytes,
        time(run.at)
    );
    let mut found = finding(analysis, &RULE, waited + events, title)
        .at(interval((run.at, analysis.last)), run.events)
        .with([
            count("lost_larger", run.lost, "lost", format!("{} of {} B or more", run.lost, run.bytes)),
            count("vanishing_bytes", run.bytes, "", String::new()),
            count(
                "largest_acked_bytes",
                run.smaller,
                "arrived",
                format!("{} of {} B at most", many(run.arrived, "packet"), run.smaller),
            ),
            number("until_s", seconds(run.at), "", String::new()),
        ])
        .because("the path MTU fell below the datagrams that the sender uses, and no ICMP message said so");
    found.kind = "mtu";
    found.severity = found.severity.max(Severity::Warning);
    if analysis.unanswered >= u64::from(DEAD_PATH) { found.failure_above_note() } else { found }
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    if let Some(run) = vanished(analysis) {
        return Some(fallen(analysis, run));
    }
    let sizes = &analysis.sizes;
    if sizes.lost_larger < 3 || sizes.lost_larger * 2 < sizes.lost_data {
        return None;
    }
    let all = sizes.lost_larger == sizes.lost_data;
    let cost = episodes(analysis, |_| true).filter(|_| all).map_or(0, |sum| sum.cost);
    let title = format!(
        "{} of {} lost packets were larger than any that arrived",
        sizes.lost_larger, sizes.lost_data
    );
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(sizes.interval), sizes.events)
        .with([
            count(
                "lost_larger",
                sizes.lost_larger,
                "lost",
                format!("{} larger ones", sizes.lost_larger),
            ),
            count(
                "largest_acked_bytes",
                sizes.largest_acked,
                "arrived",
                format!("{} B at most", sizes.largest_acked),
            ),
            count(
                "largest_sent_bytes",
                sizes.largest_sent,
                "sent",
                format!("{} B at most", sizes.largest_sent),
            ),
            number("until_s", seconds(sizes.interval.1), "until", time(sizes.interval.1)),
        ])
        .because("the path MTU is smaller than the datagrams that the sender uses");
    found.severity = found.severity.max(Severity::Warning);
    Some(found)
}
