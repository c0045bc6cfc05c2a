//! CC004: ports still in use at the server.
//!
//! Checks for an ACK of the server that answers a SYN and acknowledges something else: the server
//! has an earlier connection between the same ports, in TIME-WAIT or open. The client resets that
//! one and repeats its SYN. Checks also for SYNs without an answer soon after an earlier connection
//! between the same ports.
//!
//! Cost: from the first SYN to the SYN-ACK, or to the last packet without one, less a round trip.

use units::Duration;

use super::case::{DiagnosisCase, count, many, number, seconds, time};
use super::help::{Remedy, RemedyHost, Setting};
use super::{Confidence, DiagnosisRule, Finding};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC004",
    name: "ports still in use at the server",
    check,
    background: "\
The host that closes first keeps the ports of the connection for a while (TIME-WAIT, RFC 9293 section
3.6.1; 60 s on Linux and FreeBSD). A SYN between the same ports is accepted earlier if its sequence number
or its timestamp is beyond those of the old connection (RFC 6191); otherwise the server answers with an
ACK of the old one, or not at all. Proxies and address translators with few ports, clients that bind a
fixed port, and timestamps that differ by host after a translator are the usual reasons.",
    help: &[
        Remedy::freebsd(RemedyHost::Client, "client: no fixed local port; net.inet.ip.portrange.first lower"),
        Remedy::freebsd(RemedyHost::Elsewhere, "translator: more addresses"),
        Remedy::freebsd(RemedyHost::Lacking, "net.inet.tcp.rfc1323=1 at both").unless(Setting::Timestamps),
        Remedy::linux(RemedyHost::Client, "client: no fixed local port; net.ipv4.ip_local_port_range wider"),
        Remedy::linux(RemedyHost::Lacking, "net.ipv4.tcp_timestamps=1 at both").unless(Setting::Timestamps),
        Remedy::linux(RemedyHost::Elsewhere, "translator: more addresses"),
        Remedy::general("let the client close first, so that it keeps TIME-WAIT; keep connections open instead of opening new ones"),
    ],
};

/// Longest TIME-WAIT: twice the maximum segment lifetime of RFC 9293.
const TIME_WAIT: Duration = Duration::from_secs(240);

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let events = &case.analysis.events;
    let seen = events.foreign_acks.count > 0;
    if !seen && !may_explain_silence(case) {
        return None;
    }
    let (from, frame) = events.syns.first;
    let opened = events.syn_acks.count > 0;
    let (to, last) =
        if opened { events.syn_acks.first } else { (case.analysis.last, case.analysis.last_frame) };
    let took = to.since(from);
    let trip = case.course.path.base_rtt.filter(|_| opened).unwrap_or_default();
    let cost = took.saturating_sub(trip);
    let syns = many(events.syns.count, "SYN");
    let title = match (seen, opened) {
        (true, true) => {
            format!(
                "the server first answered for an earlier connection; opened after {}",
                time(took)
            )
        }
        (true, false) => format!("the server answers {syns} for an earlier connection"),
        (false, _) => format!("no answer to {syns} soon after an earlier connection"),
    };
    let mut finding = case
        .finding(&RULE, cost, title)
        .at((from, to), (frame, last))
        .with([
            count("syns", events.syns.count, "SYNs", events.syns.count.to_string()),
            count(
                "foreign_acks",
                events.foreign_acks.count,
                "other ACKs",
                format!("{} that acknowledge none of them", events.foreign_acks.count),
            ),
        ])
        .because("the server still has a connection between the same ports: in TIME-WAIT, or open");
    if let Some(gap) = case.analysis.after_previous {
        let text = format!("ended {} before the first SYN", time(gap));
        finding = finding.with([number("previous_ended_s", seconds(gap), "earlier one", text)]);
    }
    if !opened {
        finding = finding.failure();
    }
    finding.confidence = if seen { Confidence::High } else { Confidence::Low };
    if !seen {
        finding =
            finding.unseen("whether the server dropped the SYN for that, or it never arrived");
    }
    Some(finding)
}

/// Whether SYNs without an answer followed a connection between the same ports.
pub(super) fn may_explain_silence(case: &DiagnosisCase<'_>) -> bool {
    let soon = case.analysis.after_previous.is_some_and(|gap| gap < TIME_WAIT);
    soon && case.analysis.events.syns.count > 1 && case.analysis.events.is_unanswered()
}
