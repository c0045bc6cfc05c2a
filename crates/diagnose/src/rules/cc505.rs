//! CC505: the server is slow.
//!
//! Checks for think time of the server before its responses, and pauses within them, that are most of
//! the time of the connection, also without the longest wait; else for one or two responses that take a second
//! or more, and half of the time, after the ACK of their requests. Silent with short think times, heartbeats
//! and long polls, and without the handshake, which shows who the server is.
//!
//! Cost: the think time and the pauses; of one or two responses their waits after the ACK.

use packet::Dir;

use super::case::{DiagnosisCase, number, seconds, time, time_percent};
use super::help::{Remedy, RemedyHost};
use super::slow_responses::SlowResponses;
use super::think_time::ThinkTime;
use super::{DiagnosisRule, Finding, held_messages, slow_server};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC505",
    name: "the server is slow",
    check,
    background: "\
From the last data of a request to the first data of its response a capture shows a round trip and the
time that the server needs before it answers: it computes, reads a disk, or waits for another server.
The round trip is known from the handshake and from ACKs, so the rest is the server's, at any capture
point. No setting of the network changes that. Requests that are sent without waiting for the response
to the one before (pipelining, HTTP/2, several connections) overlap these times; they do not shorten them.
One or two slow responses are reported only if the server's host had acknowledged the request a second or
more before: a lost request looks different.",
    help: &[
        Remedy::freebsd(RemedyHost::Server, "server: truss -d -p PID and procstat -kk PID: what it waits for between its read and its write"),
        Remedy::linux(RemedyHost::Server, "server: strace -r -f -e trace=network,desc -p PID: what it waits for between its read and its write"),
        Remedy::general("server: log the duration of each request, and of the requests that it makes itself ($request_time, $upstream_response_time); slow query log; client: several requests at once"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let Some(found) = ThinkTime::of(case, Dir::Reverse) else {
        let slow = SlowResponses::of(case).map(|found| found.finding(case, &RULE));
        return slow
            .or_else(|| held_messages::finding(case, &RULE, Dir::Reverse))
            .or_else(|| slow_server::finding(case, &RULE));
    };
    let title = format!(
        "the server takes {} of the time: {} on average before a response",
        time_percent(found.total, found.work()),
        time(found.waits.mean().unwrap_or_default())
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
