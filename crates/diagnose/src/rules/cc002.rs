//! CC002: handshake never completed.
//!
//! Checks for SYNs that no packet of the server answers, and for SYN-ACKs that the client never
//! acknowledges.
//!
//! Cost: from the first SYN to the last packet.

use units::Instant;

use super::case::{DiagnosisCase, SECOND, count, many, number, seconds, time};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding, Severity};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC002",
    name: "handshake never completed",
    check,
    background: "\
A SYN without an answer is repeated after a second, and then after twice as long each time (RFC 6298);
the application learns of it after its own timeout, or after two minutes (Linux, net.ipv4.tcp_syn_retries)
or 75 s (FreeBSD). Firewalls that drop, hosts that are down, and servers whose queue of new connections
is full look like that. SYN-ACKs without an answer show that the way to the server works and the way back
does not, or that the source address of the SYN is not the sender's own (a SYN flood).",
    help: &[
        Remedy::freebsd(RemedyHost::Server, "server: netstat -Lan (full queues of listeners), pflog for dropped packets; net.inet.tcp.syncookies=1"),
        Remedy::freebsd(RemedyHost::Client, "client: net.inet.tcp.keepinit shorter"),
        Remedy::linux(RemedyHost::Server, "server: ss -ltn (Recv-Q at Send-Q: the queue is full), nstat -az TcpExtListenDrops TcpExtListenOverflows, nft list ruleset"),
        Remedy::linux(RemedyHost::Client, "client: net.ipv4.tcp_syn_retries lower"),
        Remedy::general("capture at the server too: if the SYN arrives there, the server or its firewall drops it; if not, the path does (tcptraceroute)"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let events = &case.analysis.events;
    let unanswered = events.is_unanswered();
    if !(unanswered || events.is_half_open())
        || super::cc005::explains_failure(case)
        || super::cc004::may_explain_silence(case)
    {
        return None;
    }
    let (from, frame) = events.syns.first;
    let (to, last_frame) = (case.analysis.last, case.analysis.last_frame);
    // The client waits for the answer to its last SYN until it gives up: seen at least until the end
    // of the capture, and a second as the shortest timer (RFC 6298 section 2).
    let waited = to.since(from);
    let quiet = case.analysis.silent_after;
    let span = waited + quiet.min(SECOND);
    let syns = many(events.syns.count, "SYN");
    let (title, cause, unseen) = if unanswered {
        (
            format!("no answer to {syns} in {}", time(span)),
            "the packets are dropped on the way to the server, the server is down or drops them, or its answers are lost",
            "which of them: a capture at the server shows whether the SYN arrives",
        )
    } else {
        let answers = many(events.syn_acks.count, "SYN-ACK");
        (
            format!("{answers} in {}, none acknowledged", time(span)),
            "the way back to the client loses them, the client is gone, or its address is forged",
            "which of them: a capture at the client shows whether the SYN-ACK arrives",
        )
    };
    let kind = if unanswered { kind_of_silence(case, (from, to)) } else { "" };
    let (cause, unseen) = match kind {
        "syn-ecn" => (
            "SYNs that ask for ECN are not answered, plain ones of other connections to this server are",
            "what drops them: a capture at the server shows whether they arrive",
        ),
        "backlog" => (
            "the server answered other connections meanwhile: its queue of new connections was full, or it drops this client",
            "the queue: ss -ltn, netstat -Lan at the server",
        ),
        _ => (cause, unseen),
    };
    let mut finding = case
        .finding(&RULE, waited, title)
        .of_kind(kind)
        .at((from, to), (frame, last_frame))
        .with([
            count("syns", events.syns.count, "SYNs", events.syns.count.to_string()),
            count("syn_acks", events.syn_acks.count, "SYN-ACKs", events.syn_acks.count.to_string()),
            number("waited_s", seconds(span), "waited", format!("at least {}", time(span))),
        ])
        .because(cause)
        .unseen(unseen);
    let repeated = events.syns.count > 1 || events.syn_acks.count > 1;
    finding.severity = Severity::Error;
    finding.confidence = Confidence::High;
    if !repeated && quiet < SECOND {
        finding.severity = Severity::Note;
        finding.confidence = Confidence::Low;
        finding = finding.unseen("the answer may have come after the end of the capture");
    }
    Some(finding.failure_above_note())
}

/// SYNs without an answer of which more than two in a row are no accident of the path, if it carries those of others.
const SYSTEMATIC: u64 = 3;

/// What SYNs that are never answered show beside the connections that the server answered meanwhile.
fn kind_of_silence(case: &DiagnosisCase<'_>, span: (Instant, Instant)) -> &'static str {
    let events = &case.analysis.events;
    let which = (case.analysis.ends.dst, case.analysis.stream);
    let mut beside = case.neighbours.answered_meanwhile(which, span).peekable();
    let asks = events.ecn_syns.count == events.syns.count;
    match () {
        () if events.syns.count < SYSTEMATIC || beside.peek().is_none() => "",
        () if asks && beside.all(|one| one.is_plain) => "syn-ecn",
        () => "backlog",
    }
}
