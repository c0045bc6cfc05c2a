//! CC853: the path changed.
//!
//! Checks for path challenges after the handshake (RFC 9000 section 8.2) and the window around
//! them: a new path begins with the initial window and round trip (section 9.4).
//!
//! Cost: if the window was reset to less than half, that of the congestion events which the change began; slow start on the
//! new path is in the time budget.

use super::QuicRule;
use super::case::{episodes, finding};
use crate::quic::QuicAnalysis;
use crate::quic::analysis::QuicEpisode;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{Finding, Remedy, RemedyHost, Severity, count, many, number, size};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC853",
    name: "the path changed",
    check,
    background: "\
A client that changes its network, or whose NAT gives it another port, appears at a new address. The
other side validates it with PATH_CHALLENGE and resets its congestion window and round trip unless
only the port changed (RFC 9000 section 9.4). NATs that rebind every few seconds, or load balancers
that change addresses, keep a transfer in slow start.",
    help: &[
        Remedy::stack(RemedyHost::Elsewhere, "msquic", "QUIC_SETTINGS MigrationEnabled"),
        Remedy::stack(RemedyHost::Elsewhere, "quinn", "ServerConfig::migration"),
        Remedy::stack(RemedyHost::Elsewhere, "quiche", "Config::set_disable_active_migration"),
        Remedy::general("a keep-alive interval below the NAT's timeout for UDP, often 30 s"),
    ],
};

/// Round trips in which the losses of a change are found, and the window is that of a new path.
pub(in crate::quic) const CHANGE_TRIPS: u64 = 3;

/// Whether a congestion event began with the packets that the change of the path lost.
pub(super) fn is_of_change(analysis: &QuicAnalysis, episode: &QuicEpisode) -> bool {
    let (challenges, at, _) = analysis.challenges;
    let is_reset = analysis.challenge_windows.is_some_and(|(before, after)| after * 2 < before);
    let trip = analysis.mean_rtt.unwrap_or(0).saturating_mul(CHANGE_TRIPS);
    challenges > 0 && is_reset && episode.at.abs_diff(at) <= trip
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let (challenges, at, event) = analysis.challenges;
    if challenges == 0 {
        return None;
    }
    let title = format!("the path was validated again, first at {}", time(at));
    // The window that was reset is that of the congestion event that the change falls into.
    let reset = episodes(analysis, |episode| is_of_change(analysis, episode));
    let mut found = finding(analysis, &RULE, reset.map_or(0, |sum| sum.cost), title)
        .at(interval((at, analysis.last)), (event, event))
        .with([
            count(
                "path_challenges",
                challenges,
                "challenges",
                many(challenges, "PATH_CHALLENGE frame"),
            ),
            number("first_challenge_s", seconds(at), "", String::new()),
        ])
        .because("an endpoint's address changed, or it probes another path");
    if let Some((before, after)) = analysis.challenge_windows {
        let text = format!("{} before, {} at least since", size(before), size(after));
        found = found.with([count("window_after_bytes", after, "window", text)]);
        // What the sender regains on the new path, that of the old one had reached.
        if after * 2 < before {
            found.severity = found.severity.max(Severity::Warning);
        }
    }
    Some(found)
}
