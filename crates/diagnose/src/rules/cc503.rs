//! CC503: the send buffer is the limit.
//!
//! Checks for a window that stays the same for many round trips with nothing to explain it: no loss
//! before it, the receiver's window open, no queue, and every burst empties what there is to send
//! (PSH). A congestion window would grow; a send buffer that is full lets exactly as much go as
//! was acknowledged.
//!
//! Cost: the time of those rounds less what their bytes take at the rate of the path.

use super::case::{Case, count, number, rate, size, time};
use super::{Confidence, Finding, Rule};

pub(super) const RULE: Rule = Rule {
    code: "CC503",
    name: "the send buffer is the limit",
    check,
    background: "\
A sender keeps what is not acknowledged, so no more than its send buffer can be under way. Both
systems grow the buffer as needed up to a limit, unless the application fixed it with SO_SNDBUF. The
flight then stays the same for as long as the transfer lasts, without losses and without queues.",
    help: &[
        (
            "FreeBSD",
            "sender: net.inet.tcp.sendbuf_max and kern.ipc.maxsockbuf higher, net.inet.tcp.sendbuf_auto=1; no SO_SNDBUF in the application",
        ),
        (
            "Linux",
            "sender: third figure of net.ipv4.tcp_wmem higher; no SO_SNDBUF in the application (ss -ti shows sndbuf_limited)",
        ),
        (
            "other",
            "sender: a buffer of at least rate x round trip, larger while losses are repaired",
        ),
    ],
};

/// Round trips after which a congestion window that is in use would have grown by segments, not by
/// one: NewReno grows by one each.
const LONG: u64 = 16;

fn check(case: &Case<'_>) -> Option<Finding> {
    let (rounds, lost, from, to) = case.course.plateau;
    if rounds < LONG || !case.worth(lost) {
        return None;
    }
    // CUBIC stands still around the window of the last loss; without a loss there is no such.
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
            count("flight_bytes", window, "flight", format!("{}: {} at {}", size(window), rate(window as f64 * 1e9 / base as f64), time(base))),
            number("emptied_share", drained as f64 / waits as f64, "emptied", format!("{drained} of {waits} bursts sent all there was")),
        ])
        .with(case.path_rate())
        .because("the send buffer holds no more, so each ACK lets as much be written as it acknowledges")
        .unseen("the sender's buffer; an application that waits for replies before it writes looks alike")
        .unseen(case.bound());
    finding.confidence = finding.confidence.min(Confidence::Medium);
    Some(finding)
}
