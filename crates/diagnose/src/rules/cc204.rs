//! CC204: retransmission timeout or blackout.
//!
//! Checks for an expiry of the retransmission timer with data still to be sent: everything in
//! flight, or its retransmission, was lost. An error if the last expiries have no answer until the
//! end of the capture: the connection failed.
//!
//! Cost: the silence, and the growth after it (a window of one segment, slow start to half of the
//! old window), less the time the bytes of that time take at the rate of the path.

use packet::Dir;
use units::Duration;

use super::case::{DiagnosisCase, SECOND, count, number, seconds, time};
use super::help::{Remedy, RemedyHost, SACK_ON_FREEBSD, SACK_ON_LINUX, Setting};
use super::{DiagnosisRule, Finding};
use crate::capture_point::CapturePoint;
use crate::lost_time::LostTimeCause;
use crate::rounds::RoundOrigin;
use crate::time_budget::Limiter;

pub(super) const RULE: DiagnosisRule = DiagnosisRule {
    code: "CC204",
    name: "retransmission timeout or blackout",
    check,
    background: "\
If nothing comes back, the retransmission timer runs out (RFC 6298): at least 200 ms on Linux, 230 ms
on FreeBSD, doubled each time it runs out again. The window falls to one segment. A path that is dead
for a second keeps a sender silent for up to twice as long, since it finds out only when the doubled
timer runs out. Handovers, route changes, firewalls that lose state and full retransmission queues
look like that; so does the loss of a retransmission on stacks without RACK.",
    help: &[
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.functions_default=rack finds lost retransmissions").unless(Setting::RackStack),
        Remedy::freebsd(RemedyHost::Sender, "net.inet.tcp.rexmit_slop (200 ms) for short paths"),
        SACK_ON_FREEBSD,
        Remedy::linux(RemedyHost::Sender, "net.ipv4.tcp_recovery=1 (RACK, default)").unless(Setting::Default),
        Remedy::linux(RemedyHost::Sender, "ip route change ROUTE rto_min 40ms for short paths"),
        SACK_ON_LINUX,
        Remedy::general("find what goes silent: ping beside the transfer, interface and routing logs at that moment"),
    ],
};

fn check(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let outages = case.episodes(LostTimeCause::Timeout);
    let opening = lost_opening(case);
    if outages.count == 0 {
        return opening;
    }
    // What lost the packets of the opening lost the data too.
    let opening = opening.filter(|opening| ["", "syn-lost"].contains(&opening.kind));
    let cost = case.course.lost(LostTimeCause::Timeout)
        + opening.as_ref().map_or(Duration::ZERO, |opening| opening.cost);
    let (begin, first) = match &opening {
        Some(opening) => (opening.interval.0, opening.frames.0),
        None => (outages.interval.0, outages.frames.0),
    };
    let acks_lost = outages.acked_before > 0 && outages.acked_before >= outages.retransmitted;
    let what = if acks_lost { "no ACK came back" } else { "nothing came through" };
    let cause = if acks_lost {
        "the ACKs passed the capture point and did not reach the sender; each expiry doubles its timer"
    } else {
        "everything in flight was lost, so that only the timer was left; each expiry doubles it"
    };
    let title = format!(
        "{what}, {} of the retransmission timer",
        super::case::many(outages.timeouts.max(1), "timeout")
    );
    let last = case.flow.episodes.last();
    let is_dead = case.flow.more_episodes == 0
        && last.is_some_and(|last| !last.over && last.unanswered_timeouts >= super::DEAD_PATH);
    let finding = case.finding(&RULE, cost, title);
    let (kind, cause) = match is_dead.then(|| kind_of_silence(case)) {
        Some("forgotten") => (
            "forgotten",
            "nothing is answered after a rest: a firewall or NAT forgot the connection; keepalives below its timeout \
             hold it",
        ),
        Some("mtu") => (
            "mtu",
            "small packets pass, full segments were never acknowledged: a link has a smaller MTU, and its ICMP errors do \
             not arrive; MSS clamping or net.ipv4.tcp_mtu_probing=1 (Linux) help",
        ),
        _ => ("", cause),
    };
    let finding = if is_dead { finding.failure() } else { finding }.of_kind(kind);
    Some(
        finding
            .at((begin, outages.interval.1), (first, outages.frames.1))
            .with([
                count(
                    "timeouts",
                    outages.timeouts,
                    "timeouts",
                    format!(
                        "{} in {}",
                        outages.timeouts,
                        super::case::many(outages.count, "stretch")
                    ),
                ),
                number(
                    "silence_s",
                    seconds(outages.stalled),
                    "silence",
                    format!("{} before the first of each", time(outages.stalled)),
                ),
                count(
                    "retransmitted_packets",
                    outages.retransmitted,
                    "retransmitted",
                    super::case::many(outages.retransmitted, "packet"),
                ),
            ])
            .with(opening.into_iter().flat_map(|opening| opening.evidence))
            .with(case.path_rate())
            .because(cause)
            .unseen(if kind.is_empty() {
                "whether the path was down or a queue dropped everything"
            } else {
                ""
            })
            .unseen(case.bound()),
    )
}

/// What data that are never acknowledged show: they follow a rest, or only they are so large.
fn kind_of_silence(case: &DiagnosisCase<'_>) -> &'static str {
    let flow = case.flow;
    let mut silent = flow.rounds.iter().filter(|round| round.start >= flow.last_delivery);
    // The first data may come a rest after the handshake.
    let opened = case.analysis.first + case.course.budget.of(Limiter::Handshake);
    let begins_late = flow.first_data.0.since(opened) >= SECOND;
    let is_first = flow.last_delivery <= flow.first_data.0;
    match () {
        () if is_first && begins_late => "forgotten",
        () if silent.any(|round| round.before == RoundOrigin::Idle) => "forgotten",
        // The packets of the handshake are small.
        () if flow.only_smaller_passed && case.analysis.opened => "mtu",
        () => "",
    }
}

/// Data that are repeated again and again without any packet of the receiver: nothing else can be said of a capture
/// with one direction, but if the other way were only not captured, the sender would go on.
pub(super) fn unanswered(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let flow = case.flow;
    let repeats = flow.counts.retransmitted;
    let answers = flow.answered || case.analysis.seen[flow.dir.reversed() as usize] > 0;
    let last = flow.episodes.last().filter(|last| !last.over && last.sent_above == 0);
    let is_stuck = last.is_some_and(|last| last.unanswered_timeouts >= super::DEAD_PATH);
    if answers
        || repeats < u64::from(super::DEAD_PATH)
        || repeats < flow.counts.new * 3 && !is_stuck
    {
        return None;
    }
    // Of full segments it may be the size.
    let is_full = last.is_some_and(|last| last.flight >= flow.mss);
    let waited = case.analysis.last.since(flow.first_data.0);
    let what = if is_stuck && flow.counts.new > 1 { "the first segment of " } else { "" };
    let title = format!(
        "{what}{} sent {} in {}, and no packet came back",
        super::case::size(flow.bytes),
        super::case::many(repeats + 1, "time"),
        time(waited)
    );
    Some(
        case.finding(&RULE, waited, title)
            .of_kind(if is_full { "" } else { "forgotten" })
            .at(
                (flow.first_data.0, case.analysis.last),
                (flow.first_data.1, case.analysis.last_frame),
            )
            .with([count(
                "retransmitted_packets",
                repeats,
                "repeated",
                super::case::many(repeats, "packet"),
            )])
            .because(if is_full {
                "the path is down, a link has a smaller MTU, the peer is gone, or a firewall or NAT forgot the connection"
            } else {
                "the path is down, the peer is gone, or a firewall or NAT forgot the connection"
            })
            .unseen("which of them: a capture at the other end shows whether the data arrive")
            .failure(),
    )
}

/// The first SYN, its SYN-ACK, or the ACK of that was lost: the handshake took at least one timer (1 s, RFC 6298
/// section 2) longer than an RTT.
fn lost_opening(case: &DiagnosisCase<'_>) -> Option<Finding> {
    let took = case.course.budget.of(Limiter::Handshake);
    let cost = took.saturating_sub(case.course.path.base_rtt?);
    let foreign = case.analysis.events.foreign_acks.count > 0;
    let events = &case.analysis.events;
    // The server repeats its answer until the ACK of the client arrives.
    let answers = events.syn_acks.count;
    let is_repeated = case.analysis.syns > 1 || answers > 1;
    if !is_repeated || foreign || cost < SECOND / 2 {
        return None;
    }
    let packets = match case.analysis.syns {
        1 => super::case::many(answers, "SYN-ACK"),
        syns => format!("{syns} SYNs"),
    };
    let title = format!("the connection took {} and {packets} to open", time(took));
    let from = case.analysis.first;
    let first = case.analysis.first_frame;
    // The first plain SYN came after the last that asked for ECN.
    let asks = events.ecn_syns.count > 0 && events.ecn_syns.count < events.syns.count;
    let is_at_server = case.analysis.capture_point(Dir::Reverse) == CapturePoint::Sender;
    // Several in a row, while the path carried those of others.
    let which = (case.analysis.ends.dst, case.analysis.stream);
    let waited = (case.analysis.first, case.analysis.first + took);
    let is_passed_over = u64::from(case.analysis.syns) > u64::from(super::DEAD_PATH)
        && case.neighbours.answered_meanwhile(which, waited).next().is_some();
    let (kind, cause, unseen) = match () {
        () if asks && events.ecn_syns.last.0 < events.syns.last.0 => (
            "syn-ecn",
            "SYNs that ask for ECN were not answered, the next without was: something on the path drops them",
            "what drops them: a capture at the server shows whether they arrive",
        ),
        () if is_at_server && events.syn_acks.count <= 1 => (
            "backlog",
            "the SYNs arrived and the server did not answer at first: its queue of new connections was full",
            "the queue: ss -ltn, netstat -Lan at the server",
        ),
        () if events.has_two_answers => (
            "two-answers",
            "the SYNs were answered with different sequence numbers: by several hosts behind one address, or a box that \
             answers for the server",
            "which of them: the time to live of the answers, and captures at the server",
        ),
        () if is_passed_over => (
            "backlog",
            "the server answered other connections meanwhile: its queue of new connections was full",
            "the queue: ss -ltn, netstat -Lan at the server",
        ),
        () if case.analysis.syns == 1 => (
            "syn-lost",
            "the answer to the SYN, or the ACK of the client, was lost",
            "which of them",
        ),
        () => (
            "syn-lost",
            "a SYN or its answer was lost, or the server did not answer at first",
            "which of them",
        ),
    };
    Some(
        case.finding(&RULE, cost, title)
            .at((from, from + took), (first, case.flow.first_data.1.max(first)))
            .with([
                count(
                    "syns",
                    u64::from(case.analysis.syns),
                    "SYNs",
                    case.analysis.syns.to_string(),
                ),
                number("opening_s", seconds(took), "opening", time(took)),
            ])
            .of_kind(kind)
            .because(cause)
            .unseen(unseen),
    )
}
