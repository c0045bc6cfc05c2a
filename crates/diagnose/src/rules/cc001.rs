//! CC001: connection refused.
//!
//! Checks for an RST that answers the SYN, before any SYN-ACK. A note if the same port, at this
//! address or at another one that the client tried beside it, answers within a handshake: clients
//! try the addresses of a name one after the other, or again, and use the one that answers.
//!
//! Cost: the time from the first SYN to the last reset.

use units::Instant;

use super::case::{DiagnosisCase, count, number, seconds, time};
use super::help::{Remedy, RemedyHost};
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
        Remedy::freebsd(RemedyHost::Server, "server: sockstat -4 -6 -l -p PORT (is anything listening, at which address?); pfctl -sr, ipfw list for rules that reset"),
        Remedy::linux(RemedyHost::Server, "server: ss -ltnp 'sport = :PORT' (is anything listening, at which address?); nft list ruleset for reject with tcp reset"),
        Remedy::general("try from the server itself; if that works, a firewall or load balancer on the way refuses"),
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
    if !refusal.acks_syn {
        finding = finding.of_kind("foreign-reset").because(
            "the RST does not acknowledge the SYN, as one of the server does: the client ignores it, and something else \
             sent it",
        );
        finding.title =
            format!("a RST that does not acknowledge the SYN came after {}{times}", time(after));
    }
    finding.severity = Severity::Error;
    finding.confidence = Confidence::High;
    let ends = case.analysis.ends;
    let refused = last.at.0;
    let pair = (ends.src.ip(), ends.dst);
    if let Some(other) = case.neighbours.answered_instead(pair, from, refused) {
        let text = format!(
            "by connection {} to {}, {}",
            other.stream,
            other.server,
            relative(other.answered, refused)
        );
        let stream = u64::from(other.stream);
        finding = finding.with([count("answered_by_connection", stream, "answered", text)]);
        finding.severity = Severity::Note;
    }
    Some(finding.failure_above_note())
}

/// `30.0 ms later`, `612 ms earlier`: `at` relative to `to`.
fn relative(at: Instant, to: Instant) -> String {
    if at >= to {
        format!("{} later", time(at.since(to)))
    } else {
        format!("{} earlier", time(to.since(at)))
    }
}

/// `2 routers`, by the time to live.
pub(super) fn routers(ttl: u8) -> String {
    super::many(u64::from(hops(ttl)), "router")
}
