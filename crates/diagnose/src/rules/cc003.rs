//! CC003: connection reset.
//!
//! Checks for an RST after the opening. The host that it names as its source need not have sent it:
//! its time to live, and packets of that host after it, show whether something between the hosts
//! did. A warning if data were lost by it, a message was cut off, or a request of the client has no response; most clients that reset
//! have what they wanted.
//!
//! Cost: none that is known; the transfer is incomplete.

use packet::Dir;
use units::{Duration, Instant};

use super::case::{DiagnosisCase, count, number, seconds, size, time};
use super::cc001::routers;
use super::help::{Remedy, RemedyHost};
use super::{Confidence, DiagnosisRule, Finding, Severity};
use crate::capture_point::CapturePoint;
use crate::connection_events::{ConnectionEvents, ResetSegment};

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC003",
    name: "connection reset",
    check,
    background: "\
An RST ends a connection at once; what was not delivered is lost. A host sends one if its application
closes without having read everything or with SO_LINGER at zero, if the process is gone, or if it does
not know the connection (RFC 9293 section 3.5.2). Firewalls, intrusion prevention and load balancers send
them in the name of either host. A host's packets have one time to live at a capture point; an RST with
another comes from somewhere else. After an RST of its own a host sends nothing but RSTs.",
    help: &[
        Remedy::freebsd(RemedyHost::Named, "at the host that reset: logs of the application; sysctl net.inet.tcp.log_debug=1"),
        Remedy::linux(RemedyHost::Named, "at the host that reset: logs of the application; nstat -az | grep -i abort; perf trace -e tcp:tcp_send_reset"),
        Remedy::general("something between: idle timeouts and logs of firewalls and load balancers; keepalives below their timeout"),
    ],
};

/// Longest silence that a firewall's idle timeout does not end: shorter ones are not usual.
const IDLE: Duration = Duration::from_secs(30);
/// Fewest bytes of data that are missed by an application that had closed: a closing alert of TLS has at most 85,
/// a close frame of WebSocket a few.
const MIN_MISSED: u32 = 100;
/// Packets of a host are out of order at a capture point by less.
const DISORDER: Duration = Duration::from_millis(3);

/// Who sent a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResetOrigin {
    /// The host that it names, since the capture was taken there.
    HostSeen,
    /// The host that it names, by its time to live.
    HostLikely,
    /// Something between the hosts: another time to live.
    BetweenByTtl,
    /// Something between the hosts: the host that it names went on.
    BetweenBySequel,
    /// The packets do not show it.
    Unknown,
}

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let events = &case.analysis.events;
    if events.refusal().is_some() {
        return None;
    }
    // A client resets what answers its SYN for an earlier connection: CC004.
    let opened = events.syn_acks.count > 0 || events.syns.count == 0;
    let begin = if events.foreign_acks.count > 0 { events.syn_acks.first.0 } else { Instant::ZERO };
    let reset = events.resets.iter().find(|reset| opened && reset.at.0 >= begin)?;
    let origin = origin(case, reset);
    let host = if reset.dir == Dir::Forward { "client" } else { "server" };
    let between = matches!(origin, ResetOrigin::BetweenByTtl | ResetOrigin::BetweenBySequel);
    let by = match origin {
        ResetOrigin::HostSeen | ResetOrigin::HostLikely => format!("by the {host}"),
        ResetOrigin::BetweenByTtl | ResetOrigin::BetweenBySequel => {
            format!("in the {host}'s name, by something between the hosts")
        }
        ResetOrigin::Unknown => format!("by the {host}, or in its name"),
    };
    let lost = reset.lost();
    let own = reset.unacknowledged[reset.dir as usize];
    let closed = reset.fins == 2;
    let is_missed = lost >= if reset.has_closed { MIN_MISSED } else { 1 };
    let incomplete =
        !closed && (is_missed || own > 0 || reset.is_unanswered || reset.is_within_message);
    let mut finding = case
        .finding(&RULE, Duration::ZERO, format!("the connection was reset {by}{}", when(reset)))
        .at((reset.at.0, reset.at.0), (reset.at.1, reset.at.1))
        .with([count(
            "resets",
            events.reset_count,
            "resets",
            format!("{}, the first from the {host}'s address", events.reset_count),
        )])
        .because(cause(reset, host, between, incomplete));
    if lost > 0 || own > 0 {
        let text = format!(
            "{} of the {host}, {} of its peer",
            size(u64::from(own)),
            size(u64::from(lost))
        );
        let sum = u64::from(lost) + u64::from(own);
        finding = finding.with([count("unacknowledged_bytes", sum, "not acknowledged", text)]);
    }
    if reset.silence >= IDLE {
        let silence = reset.silence;
        finding = finding.with([number("silence_s", seconds(silence), "silence", time(silence))]);
    }
    finding = with_ttl(finding, events, reset, host);
    finding.severity = match (between, incomplete) {
        // Both hosts had closed: the transfer was over.
        _ if closed => Severity::Note,
        (true, _) => Severity::Error,
        (false, true) => Severity::Warning,
        (false, false) => Severity::Note,
    };
    let (confidence, unseen) = match origin {
        ResetOrigin::HostSeen | ResetOrigin::BetweenBySequel => (Confidence::High, ""),
        ResetOrigin::BetweenByTtl => (Confidence::Medium, "which device sent it"),
        ResetOrigin::HostLikely => {
            (Confidence::Medium, "a device as many routers away could have sent it")
        }
        ResetOrigin::Unknown => {
            (Confidence::Low, "who sent it: the time to live of the packets is unknown or varies")
        }
    };
    finding.confidence = confidence;
    finding.named = (!between).then_some(reset.dir);
    Some(finding.unseen(unseen).failure_above_note())
}

fn when(reset: &ResetSegment) -> String {
    match reset.fins {
        2 => " after both had closed it".to_owned(),
        1 => " while it was being closed".to_owned(),
        _ if reset.silence >= IDLE => format!(" after {} of silence", time(reset.silence)),
        _ => String::new(),
    }
}

fn cause(reset: &ResetSegment, host: &str, between: bool, incomplete: bool) -> String {
    if reset.fins == 2 {
        "a late packet arrived at a closed socket; nothing is lost".to_owned()
    } else if between {
        "a firewall, an intrusion prevention system or a load balancer ended it".to_owned()
    } else if reset.silence >= IDLE && reset.is_answer {
        format!("the {host}, or a device with its address, no longer knew the connection")
    } else if reset.has_closed && reset.lost() > 0 {
        format!("the {host}'s application had closed, and data of its peer arrived after that")
    } else if incomplete {
        format!("the {host}'s application closed without reading or sending everything, or ended")
    } else {
        format!("the {host}'s application closed with a reset; all data had been acknowledged")
    }
}

fn with_ttl(
    finding: Finding,
    events: &ConnectionEvents,
    reset: &ResetSegment,
    host: &str,
) -> Finding {
    let Some((low, high)) = events.ttl[reset.dir as usize].filter(|_| reset.ttl > 0) else {
        return finding;
    };
    let others = if low == high { low.to_string() } else { format!("{low} to {high}") };
    let text = format!(
        "{} ({} passed), of the {host}'s other packets {others}",
        reset.ttl,
        routers(reset.ttl)
    );
    finding.with([count("reset_ttl", u64::from(reset.ttl), "time to live", text)])
}

fn origin(case: &DiagnosisCase<'_>, reset: &ResetSegment) -> ResetOrigin {
    let events = &case.analysis.events;
    let host = reset.dir as usize;
    // Its own packets leave a host in order.
    if events.others[host].last.0 > reset.at.0 + DISORDER {
        return ResetOrigin::BetweenBySequel;
    }
    let Some((low, high)) = events.ttl[host].filter(|_| reset.ttl > 0) else {
        return ResetOrigin::Unknown;
    };
    if low != high {
        return ResetOrigin::Unknown;
    }
    if reset.ttl != low {
        let passed = crate::connection_events::hops;
        // Some systems send resets with another initial value.
        let same_distance = passed(reset.ttl) == passed(low);
        return if same_distance { ResetOrigin::Unknown } else { ResetOrigin::BetweenByTtl };
    }
    match case.analysis.capture_point(reset.dir) {
        CapturePoint::Sender => ResetOrigin::HostSeen,
        _ => ResetOrigin::HostLikely,
    }
}
