//! CC504: the sender waits for delayed ACKs.
//!
//! Checks for data that follow the delayed ACK of less than two segments at once: the sender held
//! them back until then (Nagle's algorithm, RFC 9293 section 3.7.4, or a send buffer of less than two
//! segments), and the receiver delayed the ACK because nothing more came.
//!
//! Cost: the delays of those ACKs beyond the shortest round trip.

use super::case::{DiagnosisCase, count, many, number, seconds, time};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC504",
    name: "the sender waits for delayed ACKs",
    check,
    background: "\
Nagle's algorithm holds a small segment back while data are outstanding, and a receiver delays the ACK
of a lone segment for more data to come (40 to 200 ms on Linux, 100 ms on BSD, 200 ms on Windows). An
application that writes a message in two parts makes the two wait for each other each time. A send
buffer below two segments does the same without Nagle. Nothing is lost in such a silence, and a faster
path does not help.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "sender: one writev() per message, TCP_NODELAY or TCP_NOPUSH; SO_SNDBUF of several segments"),
        Remedy::linux(RemedyHost::Sender, "sender: one writev() per message, TCP_NODELAY or TCP_CORK; SO_SNDBUF of several segments"),
        Remedy::linux(RemedyHost::Receiver, "receiver: TCP_QUICKACK"),
        Remedy::other(RemedyHost::Sender, "sender: write each message at once, TCP_NODELAY; a send buffer of several segments"),
    ],
};

/// Fewest stalls that are no coincidence.
const MIN_STALLS: u64 = 3;

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let stalls = case.flow.stalls;
    if stalls.count < MIN_STALLS || !case.is_significant(stalls.waited) {
        return None;
    }
    // What waited for the ACK would have gone with the write before it: a round trip earlier than without the delay.
    let cost = stalls.waited + case.course.path.base_rtt.unwrap_or_default() * stalls.count;
    let each = stalls.waited / stalls.count;
    let title = format!(
        "the sender waited {} for an ACK that was delayed by {} on average",
        many(stalls.count, "time"),
        time(each)
    );
    let mut finding = case
        .finding(&RULE, cost, title)
        .at(stalls.interval, stalls.frames)
        .with([
            count("stalls", stalls.count, "stalls", many(stalls.count, "time")),
            number("delay_each_s", seconds(each), "delay", format!("{} each, {} in all", time(each), time(stalls.waited))),
        ])
        .because("the sender holds back a small write (Nagle), or its send buffer has room for one segment, and the receiver delays the ACK that both wait for")
        .unseen("which of them: the socket options of the sender show it");
    finding.confidence = finding.confidence.min(Confidence::Medium);
    Some(finding)
}
