//! CC506: the client is slow.
//!
//! Checks for think time of the client before its further requests that is most of the time of the
//! connection, also without the longest wait. Silent unless the connection carries bulk data in turns
//! that are alike, of half a second at most: else the client may wait for a user.
//!
//! Cost: the think time and the pauses.

use packet::Dir;

use super::case::{DiagnosisCase, time, time_percent};
use super::help::{Remedy, RemedyHost};
use super::think_time::ThinkTime;
use super::{DiagnosisRule, Finding, held_messages};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC506",
    name: "the client is slow",
    check,
    background: "\
From the last data of a response to the next request a capture shows a round trip and the time that the
client needs: it processes the response, writes to a disk, or waits for something else. If these waits are
alike and short, and responses carry bulk data, a program causes them, not a user. No setting of the
network changes that. A client that asks for the next part before it has processed the last one, or over
several connections, overlaps its own time with the server's.",
    help: &[
        Remedy::freebsd(RemedyHost::Client, "client: truss -d -p PID and procstat -kk PID: what it does between its read and its next write"),
        Remedy::linux(RemedyHost::Client, "client: strace -r -f -e trace=network,desc -p PID: what it does between its read and its next write"),
        Remedy::general("client: several requests at once, larger ones (fetch size, page size), processing in another thread"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let Some(found) = ThinkTime::of(case, Dir::Forward) else {
        return held_messages::finding(case, &RULE, Dir::Forward);
    };
    let title = format!(
        "the client takes {} of the time: {} on average before a further request",
        time_percent(found.total, found.work()),
        time(found.waits.mean().unwrap_or_default())
    );
    Some(
        found
            .finding(case, &RULE, Dir::Forward, title)
            .because(
                "the client's application processes a response before it sends the next request",
            )
            .unseen("whether it computes, waits for a disk, or rests on purpose"),
    )
}
