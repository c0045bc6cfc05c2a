//! CC505: the server is slow.
//!
//! Checks for think time of the server before its responses, and pauses within them, that are most of
//! the time of the connection, also without the longest wait. Silent with few turns, short think times, heartbeats
//! and long polls, and without the handshake, which shows who the server is.
//!
//! Cost: the think time and the pauses.

use packet::Dir;

use super::case::{DiagnosisCase, number, percent, seconds, time};
use super::think_time::ThinkTime;
use super::{DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC505",
    name: "the server is slow",
    check,
    background: "\
From the last data of a request to the first data of its response a capture shows a round trip and the
time that the server needs before it answers: it computes, reads a disk, or waits for another server.
The round trip is known from the handshake and from ACKs, so the rest is the server's, at any capture
point. No setting of the network changes that. Requests that are sent without waiting for the response
to the one before (pipelining, HTTP/2, several connections) overlap these times; they do not shorten them.",
    help: &[
        ("FreeBSD", "server: truss -d -p PID and procstat -kk PID: what it waits for between its read and its write"),
        ("Linux", "server: strace -r -f -e trace=network,desc -p PID: what it waits for between its read and its write"),
        ("other", "server: log the duration of each request, and of the requests that it makes itself ($request_time, $upstream_response_time); slow query log; client: several requests at once"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let found = ThinkTime::of(case, Dir::Reverse)?;
    let title = format!(
        "the server takes {} of the time: {} on average before a response",
        percent(found.total, found.work()),
        time(found.waits.mean().unwrap_or(0))
    );
    let first_byte = found.first_byte();
    Some(
        found
            .finding(case, &RULE, Dir::Reverse, title)
            .with([number(
                "first_byte_s",
                seconds(first_byte),
                "first byte",
                format!("{} after the request on average, at the client", time(first_byte)),
            )])
            .because("the server's application computes, reads a disk or waits for another server")
            .unseen("which of them, and whether it waits for an event, as a long poll does"),
    )
}
