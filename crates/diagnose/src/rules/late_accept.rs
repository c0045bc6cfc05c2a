//! A connection that the server takes late, whose first data were dropped before: a part of CC204.
//!
//! With a full queue of new connections a server drops SYNs, or the ACK of the handshake and the data after it, until
//! there is room (Linux `tcp_v4_syn_recv_sock`, FreeBSD `sonewconn`); then the connection waits in that queue until the
//! application accepts it. The timers and the wait before the first response have one cause.

use packet::Dir;
use units::Duration;

use super::case::{DiagnosisCase, number, seconds, time};
use super::{Confidence, Finding, cc204, cc505};

/// Kind of the finding.
pub(super) const KIND: &str = "backlog";

/// Makes one finding of data, or SYNs, that were dropped at the begin of a connection and of the late first response.
pub(crate) fn merge(findings: &mut Vec<Finding>, case: &DiagnosisCase<'_>) {
    let Some((dropped, late)) = parts(findings, case) else { return };
    let (low, high) = (dropped.min(late), dropped.max(late));
    let second = findings.remove(high);
    let first = findings.remove(low);
    let (dropped, late) = if dropped < late { (first, second) } else { (second, first) };
    let interval =
        (dropped.interval.0.min(late.interval.0), late.interval.1.max(dropped.interval.1));
    let cost = (dropped.cost + late.cost).min(interval.1.since(interval.0));
    let title = format!("the server takes the connection {} late: {}", time(cost), dropped.title);
    let frames = (dropped.frames.0.min(late.frames.0), late.frames.1.max(dropped.frames.1));
    let wait = number(
        "first_response_s",
        seconds(late.cost),
        "then",
        format!("{} until the first response", time(late.cost)),
    );
    let mut merged = case
        .finding(&cc204::RULE, cost, title)
        .of_kind(KIND)
        .at(interval, frames)
        .with(dropped.evidence)
        .with([wait])
        .because(
            "its queue of new connections is full: what comes is dropped until there is room, and a connection in the queue \
             waits until the application accepts it",
        )
        .unseen("the queue: ss -ltn, netstat -Lan at the server");
    merged.confidence = Confidence::Medium;
    findings.push(merged);
}

/// The findings about what was dropped at the begin and about the first response, by index.
fn parts(findings: &[Finding], case: &DiagnosisCase<'_>) -> Option<(usize, usize)> {
    let base = case.course.path.base_rtt?;
    let of_client = case.analysis.flows[Dir::Forward as usize].as_deref()?;
    let of_server = case.analysis.flows[Dir::Reverse as usize].as_deref()?;
    // Some round trips after its begin, and the resolution of what is one.
    let soon = base * 4 + Duration::from_millis(10);
    let is_dropped = |found: &Finding| {
        found.code == cc204::RULE.code
            && !found.is_failure
            && ["", KIND, "syn-lost"].contains(&found.kind)
            && found.interval.0 <= of_client.first_data.0 + soon
    };
    let dropped = findings.iter().position(is_dropped)?;
    let first_answer = of_server.first_data.0;
    let is_first = |found: &Finding| {
        found.code == cc505::RULE.code
            && found.interval.1 <= first_answer + soon
            && found.interval.0 >= findings[dropped].interval.0
    };
    findings.iter().position(is_first).map(|late| (dropped, late))
}
