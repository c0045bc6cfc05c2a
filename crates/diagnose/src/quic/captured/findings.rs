//! Findings about a QUIC connection of a capture: those of logs, as far as datagrams without keys show them.
//!
//! A cost is time that the capture shows. Facts that are encrypted are listed as unseen, and
//! lower the confidence.

use packet::Dir;
use units::Duration;

use super::CapturedQuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::quic::rules::{cc836, cc837, quic_rule, sort};
use crate::rules::{
    Confidence, Finding, FindingHelp, Severity, count, many, number, percent, size,
};

/// Repeated Initials within less are those of a ClientHello of several datagrams, in ns.
const REPEATED: u64 = 100_000_000;
/// A burst is this many times what the largest rate sends in the same time.
const FASTER: f64 = 4.0;
/// Silences count from this part of the connection on.
const SILENT_PART: u64 = 20;

/// Codes of the findings that a capture shows.
pub const CAPTURED_CODES: [&str; 7] =
    ["CC801", "CC802", "CC803", "CC815", "CC831", "CC836", "CC837"];

/// The findings of a connection: failures first, then the costliest.
pub fn captured_findings(analysis: &CapturedQuicAnalysis) -> Vec<Finding> {
    let rules = [no_answer, handshake, amplification, silences, marks, bursts, drop];
    let mut findings: Vec<_> = rules.iter().filter_map(|rule| rule(analysis)).collect();
    sort(&mut findings);
    findings
}

/// A finding of the rule with this code about the whole connection, with the severity of its cost.
fn finding(
    analysis: &CapturedQuicAnalysis,
    code: &str,
    cost: u64,
    title: String,
) -> Option<Finding> {
    let rule = quic_rule(code)?;
    let active = analysis.active().max(1);
    let severity = match cost {
        0 => Severity::Note,
        cost if cost >= active.div_ceil(2) => Severity::Error,
        cost if cost >= active.div_ceil(10) => Severity::Warning,
        _ => Severity::Note,
    };
    Some(Finding {
        code: rule.code,
        kind: "",
        severity,
        confidence: Confidence::High,
        title,
        cost: Duration::from_nanos(cost),
        interval: interval(analysis.interval),
        frames: analysis.frames,
        evidence: Vec::new(),
        cause: String::new(),
        help: FindingHelp::of(rule.help),
        named: None,
        unseen: String::new(),
        is_failure: false,
    })
}

/// CC803: the client's Initials and no datagram of the server.
fn no_answer(analysis: &CapturedQuicAnalysis) -> Option<Finding> {
    let [client, server] = &analysis.directions;
    analysis.handshake.client_initial?;
    if server.datagrams > 0 {
        return None;
    }
    let lasted = analysis.duration();
    let sent = many(client.datagrams, "datagram");
    let title = format!("{sent} of the client in {}, none of the server", time(lasted));
    let mut found = finding(analysis, "CC803", lasted, title)?
        .with([count("datagrams_sent", client.datagrams, "sent", sent)])
        .because("UDP is blocked, no host listens, or the server discards the packets")
        .unseen("datagrams that pass another interface than the captured one");
    found.confidence = Confidence::Medium;
    Some(found.failure())
}

/// CC801: Initials until the server answered one with its own. Cost: the time from the first to that one.
fn handshake(analysis: &CapturedQuicAnalysis) -> Option<Finding> {
    let known = &analysis.handshake;
    let first = known.client_initial?;
    let accepted = known.accepted_initial?;
    let cost = accepted.checked_sub(first)?;
    let retries = u64::from(known.retries.1.is_some());
    let negotiations = u64::from(known.negotiations.1.is_some());
    let repeats = match known.unanswered {
        Some((_, datagrams)) if known.waited() >= REPEATED => datagrams - 1,
        _ => 0,
    };
    if retries + negotiations + repeats == 0 && cost < REPEATED {
        return None;
    }
    let mut reasons = Vec::new();
    for (n, what) in [
        (repeats, "more datagram with Initials before an answer"),
        (retries, "Retry"),
        (negotiations, "version negotiation"),
    ] {
        match (n, what) {
            (0, _) => {}
            (n, "Retry" | "version negotiation") => reasons.push(many(n, what)),
            (1, what) => reasons.push(format!("1 {what}")),
            (n, _) => reasons.push(format!("{n} more datagrams with Initials before an answer")),
        }
    }
    let cause = if repeats > 0 {
        "an Initial or its answer was lost or late, and the client's timer repeated it"
    } else if retries > 0 {
        "the server validated the client's address with a Retry, which costs a round trip"
    } else if negotiations > 0 {
        "the server does not speak the first version that the client offered"
    } else {
        "the client repeated its Initials before the server accepted them"
    };
    let detail = match reasons.is_empty() {
        true => String::new(),
        false => format!(": {}", reasons.join(", ")),
    };
    let title = format!("the server accepted the client's Initial after {}{detail}", time(cost));
    let mut found = finding(analysis, "CC801", cost, title)?
        .at(interval((first, accepted)), known.frames)
        .with([
            number("until_accepted_s", seconds(cost), "accepted", time(cost)),
            count("retries", retries, "", String::new()),
            count("version_negotiations", negotiations, "", String::new()),
            count("repeated_initials", repeats, "", String::new()),
        ])
        .because(cause);
    if repeats > 0 {
        found.confidence = Confidence::Medium;
        found = found.unseen("whether the Initial or the answer was lost, and on which side");
    }
    Some(found)
}

/// CC802: the server waited for the client at the anti-amplification limit. Cost: a round trip.
fn amplification(analysis: &CapturedQuicAnalysis) -> Option<Finding> {
    let flight = analysis.handshake.first_flight;
    let round_trip = analysis.handshake.round_trip.filter(|_| flight.is_limited())?.whole();
    let title = format!(
        "the server's first flight of {} stopped at the anti-amplification limit",
        size(flight.sent)
    );
    let limit = format!("{}; the limit is {}", size(flight.sent), size(3 * flight.received));
    let mut found = finding(analysis, "CC802", round_trip, title)?
        .at(interval(analysis.interval), analysis.handshake.frames)
        .with([
            number("round_trip_s", seconds(round_trip), "waited", time(round_trip)),
            count("received_bytes", flight.received, "received", size(flight.received)),
            count("sent_bytes", flight.sent, "sent", limit),
        ])
        .because("the server's first flight is larger than three times the client's")
        .unseen("whether the server had more to send at once");
    found.confidence = Confidence::Medium;
    Some(found)
}

/// CC831: neither host sent. Cost: that time.
fn silences(analysis: &CapturedQuicAnalysis) -> Option<Finding> {
    let silences = &analysis.silences;
    let whole = analysis.duration();
    if silences.count == 0 || silences.ns < whole.div_ceil(SILENT_PART) {
        return None;
    }
    let share = percent(silences.ns, whole);
    let title = format!("neither host sent anything {share} of the time");
    let longest = format!(
        "{}, between frames {} and {}",
        time(silences.longest),
        silences.frames.0,
        silences.frames.1
    );
    let mut found = finding(analysis, "CC831", silences.ns, title)?
        .with([
            number("silent_s", seconds(silences.ns), "silent", time(silences.ns)),
            count("silences", silences.count, "silences", many(silences.count, "silence")),
            number("longest_s", seconds(silences.longest), "longest", longest),
        ])
        .because("an application that waits is the usual reason")
        .unseen(
            "whether a host had no data, had used up a flow control window, or waited for a timer",
        );
    // Requests pause: only a log can call that a fault.
    (found.severity, found.confidence) = (Severity::Note, Confidence::Low);
    Some(found)
}

/// CC815: CE marks arrived. Their cost cannot be seen.
fn marks(analysis: &CapturedQuicAnalysis) -> Option<Finding> {
    let dir = if analysis.directions[0].ecn[3] > analysis.directions[1].ecn[3] {
        Dir::Forward
    } else {
        Dir::Reverse
    };
    let direction = &analysis.directions[dir as usize];
    let marked = direction.ecn[3];
    if marked == 0 {
        return None;
    }
    let from = if dir == Dir::Forward { "client" } else { "server" };
    let share = percent(marked, direction.datagrams);
    let title = format!("{} of the {from} with a CE mark, {share}", many(marked, "datagram"));
    let mut found = finding(analysis, "CC815", 0, title)?
        .with([count("ce_marks", marked, "marked", many(marked, "datagram"))])
        .because("a queue before the capture point marks instead of dropping")
        .unseen("by how much the sender reduced its window, and marks after the capture point");
    found.confidence = Confidence::Medium;
    Some(found)
}

/// CC836: a host sends in bursts, as far as the capture point sees them.
fn bursts(analysis: &CapturedQuicAnalysis) -> Option<Finding> {
    let dir = analysis.main_dir() as usize;
    let bursts = &analysis.directions[dir].bursts;
    // A path of this rate sends as much in any millisecond.
    let smooth = analysis.rates.largest(dir)? / 1e3;
    if !cc836::is_habit(bursts) || (bursts.longest as f64) < FASTER * smooth {
        return None;
    }
    let (title, evidence) = cc836::facts(bursts, "datagram");
    let mut found = finding(analysis, "CC836", 0, title)?
        .at(interval(bursts.interval), bursts.events)
        .with(evidence)
        .because("the sender does not pace, or its pacer wakes up rarely")
        .unseen("whether a host or a device before the capture point held the datagrams together");
    found.confidence = Confidence::Medium;
    Some(found)
}

/// CC837: the rate of the direction with more bytes fell and remained low.
fn drop(analysis: &CapturedQuicAnalysis) -> Option<Finding> {
    let drop = analysis.rates.drop(analysis.main_dir() as usize)?;
    let (title, evidence) = cc837::facts(&drop);
    let begin = analysis.interval.0;
    let mut found = finding(analysis, "CC837", 0, title)?
        .at(interval((begin + drop.at, begin + drop.end)), analysis.frames)
        .with(evidence)
        .because("the path, the sender's window, flow control or the application changed")
        .unseen("which of these it was: windows, losses and flow control are encrypted");
    found.confidence = Confidence::Medium;
    Some(found)
}
