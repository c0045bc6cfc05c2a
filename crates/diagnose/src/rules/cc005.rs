//! CC005: ICMP errors about the connection.
//!
//! Checks for ICMP errors that quote a packet of the connection: destination unreachable, time to
//! live exceeded, packet too big.
//!
//! Cost: of a connection that never opened, from the first SYN to the last packet.

use packet::wire::IcmpProblem;
use units::Duration;

use super::case::{DiagnosisCase, count, many, time};
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding, Severity};
use crate::connection_events::IcmpNotice;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC005",
    name: "ICMP errors about the connection",
    check,
    background: "\
Routers and hosts report packets that they cannot forward (RFC 792, RFC 4443) and quote their headers.
\"Unreachable\" ends a connection that is being opened; an open one survives it and retransmits (RFC 1122
section 4.2.3.9). \"Too big\" is how a sender learns the path's MTU (RFC 1191, RFC 8201): a few of them at
the beginning are normal, and if a firewall drops them, full segments vanish while small ones pass. \"Time
to live exceeded\" shows a routing loop, or a traceroute.",
    help: &[
        Remedy::freebsd(RemedyHost::Elsewhere, "at the reporter: netstat -rn, pfctl -sr"),
        Remedy::freebsd(RemedyHost::Sender, "too big: net.inet.tcp.pmtud_blackhole_detection=1, ifconfig IF mtu"),
        Remedy::linux(RemedyHost::Elsewhere, "at the reporter: ip route get ADDRESS, nft list ruleset"),
        Remedy::linux(RemedyHost::Sender, "too big: net.ipv4.tcp_mtu_probing=1, ip route show cache ADDRESS"),
        Remedy::general("ask the administrator of the reporter; too big: let ICMP pass firewalls, or clamp the MSS at the narrow link"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let events = &case.analysis.events;
    // The error that decided, or else the first.
    let notice = events.icmp.iter().find(|one| is_fatal(one)).or(events.icmp.first())?;
    let failed = explains_failure(case);
    let from = if failed { events.syns.first.0 } else { notice.at.0 };
    let first = if failed { events.syns.first.1 } else { notice.at.1 };
    let last = events.icmp.last().unwrap_or(notice);
    let to = if failed { case.analysis.last.max(last.at.0) } else { last.at.0 };
    let cost = if failed { to.since(from) } else { Duration::ZERO };
    let what = problem(notice.problem);
    let title =
        format!("{} reports: {what} ({})", notice.reporter, many(events.icmp_count, "ICMP error"));
    let (cause, unseen) = match notice.problem {
        IcmpProblem::TooBig { .. } => (
            "a link of the path has a smaller MTU than the sender's own; it sends smaller packets from now on",
            "",
        ),
        IcmpProblem::TtlExceeded => (
            "the packets circle between routers, or the sender limits their time to live",
            "the routers of the loop: traceroute to the destination shows them",
        ),
        IcmpProblem::Prohibited => ("a filter forbids these packets", "the rule that forbids them"),
        IcmpProblem::PortUnreachable => (
            "a host or firewall refuses the port",
            "whether the host itself or a firewall reports it",
        ),
        IcmpProblem::NetworkUnreachable | IcmpProblem::HostUnreachable => (
            "the reporter has no route to the destination, or the destination does not answer on its link",
            "",
        ),
    };
    let mut finding = case
        .finding(&RULE, cost, title)
        .at((from, to), (first, last.at.1.max(case_last_frame(case, failed))))
        .with([count(
            "icmp_errors",
            events.icmp_count,
            "errors",
            format!(
                "{}, the first {} after the first packet",
                events.icmp_count,
                time(notice.at.0.since(case.analysis.first))
            ),
        )])
        .because(cause)
        .unseen(unseen);
    if let IcmpProblem::TooBig { mtu } = notice.problem
        && mtu > 0
    {
        let text = format!("{mtu} bytes");
        finding = finding.with([count("mtu_bytes", u64::from(mtu), "MTU", text)]);
    }
    finding.severity = match notice.problem {
        _ if failed => Severity::Error,
        IcmpProblem::TooBig { .. } => Severity::Note,
        _ => Severity::Warning,
    };
    finding.confidence = Confidence::High;
    Some(if failed { finding.failure_above_note() } else { finding })
}

fn case_last_frame(case: &DiagnosisCase<'_>, failed: bool) -> u64 {
    if failed { case.analysis.last_frame } else { 0 }
}

/// Whether a packet that this error is about can never arrive.
fn is_fatal(notice: &IcmpNotice) -> bool {
    !matches!(notice.problem, IcmpProblem::TooBig { .. })
}

/// Whether an ICMP error is the reason why the connection never opened.
pub(super) fn explains_failure(case: &DiagnosisCase<'_>) -> bool {
    let events = &case.analysis.events;
    (events.is_unanswered() || events.is_half_open()) && events.icmp.iter().any(is_fatal)
}

/// `packet too big, 1300 bytes at most`, `host unreachable`.
fn problem(problem: IcmpProblem) -> String {
    let name = match problem {
        IcmpProblem::TooBig { mtu: 0 } => "packet too big",
        IcmpProblem::TooBig { mtu } => return format!("packet too big, at most {mtu} bytes"),
        IcmpProblem::NetworkUnreachable => "network unreachable",
        IcmpProblem::HostUnreachable => "host unreachable",
        IcmpProblem::PortUnreachable => "port unreachable",
        IcmpProblem::Prohibited => "administratively prohibited",
        IcmpProblem::TtlExceeded => "time to live exceeded",
    };
    name.to_owned()
}
