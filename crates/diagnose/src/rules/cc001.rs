//! CC001: connection refused.
//!
//! Checks for an RST that answers the SYN, before any SYN-ACK. A note if another connection of the
//! client with this server carries data within a second: clients try several ports at once, or the
//! next one, and use the one that answers.
//!
//! Cost: the time from the first SYN to the last reset.

use units::Instant;

use super::case::{DiagnosisCase, SECOND, TransferSummary, count, number, seconds, time};
use super::{Confidence, DiagnosisRule, Finding, Severity};
use crate::connection_events::hops;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC001",
    name: "connection refused",
    check,
    background: "\
A host without a listener at a port answers a SYN with RST (RFC 9293 section 3.10.7.1). Firewalls that
reject instead of dropping do the same in its name, and so do load balancers without a healthy server.
The time to live shows how many routers the RST has passed: compare it with packets of the same host.
The client learns it after one round trip; what it loses is the service, not time.",
    help: &[
        ("FreeBSD", "server: sockstat -4 -6 -l -p PORT (is anything listening, at which address?); pfctl -sr, ipfw list for rules that reset"),
        ("Linux", "server: ss -ltnp 'sport = :PORT' (is anything listening, at which address?); nft list ruleset for reject with tcp reset"),
        ("other", "try from the server itself; if that works, a firewall or load balancer on the way refuses"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let events = &case.analysis.events;
    let refusal = events.refusal()?;
    let (from, first_frame) = events.syns.first;
    let last = events.resets.last().unwrap_or(refusal);
    let after = refusal.at.0.since(from);
    let times = match events.syns.count {
        1 => String::new(),
        count => format!(", {count} SYNs in {}", time(last.at.0.since(from))),
    };
    let title = format!("the connection was refused: RST after {}{times}", time(after));
    let mut finding = case
        .finding(&RULE, last.at.0.since(from), title)
        .at((from, last.at.0), (first_frame, last.at.1))
        .with([
            count("syns", events.syns.count, "SYNs", events.syns.count.to_string()),
            number("refused_after_s", seconds(after), "refused", format!("after {}", time(after))),
        ])
        .because("nothing listens at this port, or a firewall in front of it rejects")
        .unseen("which of them: the host that sent the RST sent nothing else");
    if refusal.ttl > 0 {
        let text = format!("{}: it has passed {}", refusal.ttl, routers(refusal.ttl));
        finding = finding.with([count("reset_ttl", u64::from(refusal.ttl), "time to live", text)]);
    }
    finding.severity = Severity::Error;
    finding.confidence = Confidence::High;
    if let Some((other, ahead)) = answered_beside(case, last.at.0) {
        let text = format!("by connection {}, whose data begin {}", other.stream, ahead);
        let stream = u64::from(other.stream);
        finding = finding.with([count("answered_by_connection", stream, "answered", text)]);
        finding.severity = Severity::Note;
    }
    Some(finding)
}

/// The first other connection between the hosts that carries data within a second of `refused`, and
/// when its data begin, in words.
fn answered_beside<'a>(
    case: &DiagnosisCase<'a>,
    refused: Instant,
) -> Option<(&'a TransferSummary, String)> {
    let ends = case.analysis.ends;
    let (client, server) = (ends.src.ip(), ends.dst.ip());
    let near = |hosts| {
        let from = case.neighbours.partition_point(|one| one.hosts < hosts);
        case.neighbours[from..]
            .iter()
            .take_while(move |one| one.hosts == hosts)
            .find(|one| one.span.0 <= refused + SECOND && one.span.1 + SECOND >= refused)
    };
    let other = near((server, client)).or_else(|| near((client, server)))?;
    let begin = other.span.0;
    let begins = if begin >= refused {
        format!("{} later", time(begin.since(refused)))
    } else {
        format!("{} earlier", time(refused.since(begin)))
    };
    Some((other, begins))
}

/// `2 routers`, by the time to live.
pub(super) fn routers(ttl: u8) -> String {
    super::many(u64::from(hops(ttl)), "router")
}
