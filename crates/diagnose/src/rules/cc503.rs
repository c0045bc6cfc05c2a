//! CC503: the send buffer is the limit.
//!
//! Checks for a window that stays constant for many RTTs for no other reason: no loss before it,
//! the receive window open, no queue, and every burst empties the send buffer (PSH). A congestion
//! window would grow; a full send buffer admits exactly as much as was acknowledged.
//!
//! Cost: the time of those rounds less the time their bytes take at the rate of the path.

use super::case::{DiagnosisCase, count, number, rate, size, throughput, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{Confidence, DiagnosisRule, Finding};
use crate::timeline::WindowPlateau;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC503",
    name: "the send buffer is the limit",
    check,
    background: "\
A sender keeps what is not acknowledged, so no more than its send buffer can be in flight. Both
systems grow the buffer as needed up to a limit, unless the application fixed it with SO_SNDBUF. The
flight then stays the same for as long as the transfer lasts, without losses and without queues.",
    help: &[
        Remedy::freebsd(
            RemedyHost::Sender,
            "sender: net.inet.tcp.sendbuf_max and kern.ipc.maxsockbuf higher",
        ),
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.sendbuf_auto=1 (default)")
            .unless(Setting::Default),
        Remedy::freebsd(RemedyHost::Sender, "no SO_SNDBUF in the application"),
        Remedy::linux(
            RemedyHost::Sender,
            "sender: third figure of net.ipv4.tcp_wmem higher; no SO_SNDBUF in the application (ss -ti shows sndbuf_limited)",
        ),
        Remedy::general(
            "sender: a buffer of at least rate x round trip, larger while losses are repaired",
        ),
    ],
};

/// Rounds after which a congestion window in use would have grown by several segments: NewReno
/// grows by one per round.
const MIN_ROUNDS: u64 = 16;

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let WindowPlateau { rounds, lost, from, to } = case.course.plateau?;
    // Small messages at intervals fill no buffer.
    if rounds < MIN_ROUNDS || !case.is_significant(lost) || !case.is_bulk() {
        return None;
    }
    // CUBIC plateaus around the window of the last loss; without a loss there is no plateau.
    if case.flow.episodes.iter().any(|episode| episode.begin < to) {
        return None;
    }
    let within = || case.flow.rounds.iter().filter(|round| round.start >= from && round.start < to);
    let waits: u64 = within().map(|round| u64::from(round.waits)).sum();
    let drained: u64 = within().map(|round| u64::from(round.waits_after_push)).sum();
    if waits == 0 || drained * 4 < waits * 3 {
        return None;
    }
    let window = within().map(|round| round.flight).max().unwrap_or(0);
    let base = case.course.path.base_rtt?;
    let title = format!(
        "the flight stays at {} for {rounds} round trips, with room everywhere",
        size(window)
    );
    let mut finding = case
        .finding(&RULE, lost, title)
        .at((from, to), (within().next().map_or(0, |round| round.frame), case.flow.last_frame))
        .with([
            count("flight_bytes", window, "flight", format!("{}: {} at {}", size(window), rate(throughput(window, base)), time(base))),
            number("emptied_share", drained as f64 / waits as f64, "emptied", format!("{drained} of {waits} bursts sent all there was")),
        ])
        .with(case.path_rate())
        .because("the send buffer holds no more, so each ACK lets as much be written as it acknowledges")
        .unseen("the sender's buffer; an application that waits for replies before it writes looks alike")
        .unseen(case.bound());
    finding.confidence = finding.confidence.min(Confidence::Medium);
    Some(finding)
}
