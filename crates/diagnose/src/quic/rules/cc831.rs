//! CC831: the application is the limit (QUIC).
//!
//! Checks, in this order: whether a host waits before its messages for a tenth of the time (`think-client`,
//! `think-server`); whether at least ten exchanges go one after the other (`round-trips`), unless pauses within messages are
//! longer; time in which the window was open, no limit of the peer was reached, the pacer let the next packet leave, no queue
//! was standing, and nothing was sent, also within messages (`in-request`).
//!
//! Cost: that time, of which what its bytes take at the rate of the bottleneck is no part where nothing was sent; of round
//! trips their number times the shortest, of pauses within messages these. Waits above 900 ms are rests of users.

use super::QuicRule;
use super::case::{MIN_COST, finding, is_significant};
use crate::quic::clock::{interval, seconds, time};
use crate::quic::exchange::LONGEST_WAIT;
use units::Duration;

use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{
    Confidence, Finding, Remedy, RemedyHost, Severity, count, many, number, percent, rate, size,
};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC831",
    name: "the application is the limit (QUIC)",
    check,
    background: "\
The sender could have sent and had nothing to send: the application produces data slowly, waits for
requests, or its writes are limited by the stack's send buffer. In user space the event loop belongs
to the application: a thread that is busy elsewhere, a lock, or timers of 15 ms on Windows look the
same. A controller must not grow its window meanwhile (RFC 9002 section 7.8), so the transfer stays
slow for a while afterwards.",
    help: &[
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quinn",
            "TransportConfig::send_window; drive the endpoint on its own task",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "msquic",
            "QUIC_SETTINGS SendBufferingEnabled; post the next send before the last completes",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quic-go",
            "write larger chunks: each Stream.Write wakes the connection's goroutine",
        ),
        Remedy::stack(
            RemedyHost::Elsewhere,
            "quiche",
            "call Connection::send until it returns Done, and stream_send whenever writable",
        ),
        Remedy::stack(RemedyHost::Elsewhere, "s2n-quic", "Limits::with_max_send_buffer_size"),
        Remedy::general("profile the thread that drives the connection"),
    ],
};

/// Shortest mean think time: half of the 0.1 s that a person perceives as no delay at all.
const MIN_MEAN: u64 = 50_000_000;
/// Shortest sum of one or two waits of a server.
const MIN_SINGLE: u64 = 200_000_000;
/// Longest mean think time of a server: long polls and heartbeats take longer.
const MAX_SERVER_MEAN: u64 = 10_000_000_000;
/// Fewest turns of a server and of a client, which may wait for a user.
const MIN_TURNS: [u64; 2] = [3, 5];
/// A client's longest wait is at most this many times the mean: a program's are alike, a user's vary.
const CLIENT_SPREAD: u64 = 4;
/// Fewest exchanges that go one after the other for their round trips to be the limit.
const MIN_EXCHANGES: u64 = 10;
/// Fewest pauses within messages that are a habit.
const MIN_PAUSES: u64 = 3;

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    // Pauses that are longer than all round trips are not explained by them.
    let exchange = &analysis.exchange;
    let trips = analysis.round_trips.map_or(0, |[min, ..]| exchange.rounds.saturating_mul(min));
    let is_paused = exchange.pause_count >= MIN_PAUSES && exchange.pauses > trips;
    let found = think_time(analysis)
        .or_else(|| quiet(analysis).filter(|_| is_paused))
        .or_else(|| round_trips(analysis))
        .or_else(|| quiet(analysis));
    let found = found.into_iter().chain(unseen_limit(analysis)).max_by_key(|found| found.cost)?;
    Some(of_users(found, analysis))
}

/// A log without frames shows neither the peer's limits nor the application's: a sender that lets as much leave in each round
/// trip, below its window, is at one of them.
fn unseen_limit(analysis: &QuicAnalysis) -> Option<Finding> {
    let span = analysis.budget.of(QuicLimiter::Unknown);
    let [min, ..] = analysis.round_trips?;
    let cost = analysis.lost_time(span);
    let is_lasting = span.ns >= MIN_EXCHANGES.saturating_mul(min);
    let is_unseen = analysis.frames_inferred && analysis.is_sender() && min > 0;
    if !is_unseen || !is_lasting || !is_significant(analysis, cost) {
        return None;
    }
    let work = analysis.work();
    let each = (span.bytes as f64 * min as f64 / span.ns as f64) as u64;
    let title = format!(
        "a limit that the log does not show holds the sender {} of the time: about {} in each round trip",
        percent(span.ns, work),
        size(each)
    );
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(span.interval), span.events)
        .with([
            number("limited_s", seconds(span.ns), "limited", time(span.ns)),
            count("bytes_each_round_trip", each, "in flight", format!("about {}", size(each))),
            number("rtt_s", seconds(min), "round trip", time(min)),
            number("goodput_bps", analysis.goodput() * 8.0, "goodput", rate(analysis.goodput())),
        ])
        .because("the congestion window had room, and data in flight were no more")
        .unseen("whose limit it is, the peer's flow control or a window of the application: the log has no frames");
    found.confidence = Confidence::Medium;
    found.severity = severity_of(cost, work).min(Severity::Warning);
    Some(found)
}

/// A connection that mostly rests waits for its users, and so does one with messages of a datagram.
fn of_users(mut found: Finding, analysis: &QuicAnalysis) -> Finding {
    let is_small = analysis.bytes() < 10 * analysis.datagram;
    let is_restful = analysis.rests() > analysis.work();
    if is_small && found.kind.is_empty() || is_restful {
        found.severity = Severity::Note;
    }
    found
}

/// Severity of a wait by the time without rests: a tenth of it is a warning, half of it an error.
fn severity_of(cost: u64, work: u64) -> Severity {
    match cost {
        cost if cost < MIN_COST => Severity::Note,
        cost if cost >= work.div_ceil(2) => Severity::Error,
        cost if cost >= work.div_ceil(10) => Severity::Warning,
        _ => Severity::Note,
    }
}

/// A host that waits before its messages.
fn think_time(analysis: &QuicAnalysis) -> Option<Finding> {
    let exchange = &analysis.exchange;
    let work = analysis.work();
    let [min, ..] = analysis.round_trips.unwrap_or_default();
    let queue = analysis.mean_rtt.unwrap_or(min).saturating_sub(min);
    let client = analysis.client?;
    // Pauses within messages are seen of this host only.
    let totals = [exchange.local().total + exchange.pauses, exchange.remote().total];
    let is_thinking = |&host: &usize| {
        let waits = &exchange.waits[host];
        let is_client = client == (host == 0);
        if waits.count < MIN_TURNS[usize::from(is_client)] {
            // A single late answer of a server is none of a user; the application that reads slowly answers late.
            // Nor is one that waited on a slow way back.
            let is_reader = host == 1
                && (super::case::reads_slowly(analysis) || super::case::late_answers(analysis) > 0);
            let is_late = !is_reader && waits.total >= MIN_SINGLE && waits.total * 10 >= work;
            return !is_client && is_late && waits.total <= MAX_SERVER_MEAN * waits.count;
        }
        let rest = waits.total - waits.longest;
        let mean = rest / (waits.count - 1);
        // A few long waits are no sign of a slow host: it must hold without the longest one.
        let is_most = totals[host] * 10 >= work && rest * 10 >= work.saturating_sub(waits.longest);
        let is_usual = if is_client {
            waits.longest <= LONGEST_WAIT && waits.longest <= mean * CLIENT_SPREAD
        } else {
            mean <= MAX_SERVER_MEAN
        };
        // What this host waits is seen without the queue.
        let queue = if host == 0 { 0 } else { queue };
        is_most && mean >= MIN_MEAN.max(2 * queue) && is_usual
    };
    let host = (0..2).filter(is_thinking).max_by_key(|&host| totals[host])?;
    let (waits, total) = (&exchange.waits[host], totals[host]);
    let (name, kind) = match client == (host == 0) {
        true => ("client", "think-client"),
        false => ("server", "think-server"),
    };
    let mean = waits.total / waits.count;
    let title = format!(
        "the {name} waits {} before its messages, {} of the time",
        time(mean),
        percent(total, work)
    );
    let mut found = finding(analysis, &RULE, total, title)
        .at(interval(waits.interval), waits.events)
        .with([
            number(
                "think_s",
                seconds(waits.total),
                "thinks",
                format!("{} before {}", time(waits.total), many(waits.count, "message")),
            ),
            number("longest_think_s", seconds(waits.longest), "longest", time(waits.longest)),
            number("mean_think_s", seconds(mean), "", String::new()),
            count("turns", waits.count, "", String::new()),
            number("goodput_bps", analysis.goodput() * 8.0, "goodput", rate(analysis.goodput())),
        ])
        .because(match host {
            0 => "this host had what it waited for, the limits were open, and it sent nothing",
            _ => "all that was sent had been acknowledged, and the peer sent nothing",
        });
    found.kind = kind;
    found.severity = severity_of(total, work);
    if host == 1 {
        found.confidence = Confidence::Medium;
        found = found.unseen(match analysis.frames_inferred {
            true => "packets of the peer that were lost, and what its packets held: a message, or a higher limit",
            false => "packets of the peer that were lost",
        });
    }
    Some(found)
}

/// Exchanges that go one after the other: each costs a round trip.
fn round_trips(analysis: &QuicAnalysis) -> Option<Finding> {
    let exchange = &analysis.exchange;
    let exchanges = exchange.rounds;
    let [min, ..] = analysis.round_trips?;
    let work = analysis.work();
    let cost = exchanges.saturating_mul(min).min(work);
    if exchanges < MIN_EXCHANGES || cost * 10 < work {
        return None;
    }
    let title = format!(
        "{} go one after the other, each after a round trip of {}: {} of the time",
        many(exchanges, "exchange"),
        time(min),
        percent(cost, work)
    );
    let mut found = finding(analysis, &RULE, cost, title)
        .with([
            count("exchanges", exchanges, "exchanges", exchanges.to_string()),
            number("rtt_s", seconds(min), "round trip", time(min)),
            number("goodput_bps", analysis.goodput() * 8.0, "goodput", rate(analysis.goodput())),
        ])
        .because("a host sends its next message only when it has the other's");
    found.kind = "round-trips";
    found.severity = severity_of(cost, work);
    Some(found)
}

/// Nothing to send although nothing held the sender.
fn quiet(analysis: &QuicAnalysis) -> Option<Finding> {
    let span = analysis.budget.of(QuicLimiter::Application);
    let exchange = &analysis.exchange;
    // Pauses longer than a probe timeout are idle time in the budget. Of a log without frames they end with a packet of the
    // peer, which may have been a message or a higher limit, unless users rest.
    let has_pauses = exchange.pause_count >= MIN_PAUSES;
    let remote = exchange.remote();
    let is_inferred = analysis.frames_inferred && remote.rests.0 == 0;
    let inferred = if is_inferred { remote.total } else { 0 };
    let pauses = if has_pauses { exchange.pauses } else { 0 };
    let cost = analysis.lost_time(span).max(pauses.saturating_add(inferred));
    if !analysis.is_sender() || !is_significant(analysis, cost) {
        return None;
    }
    let work = analysis.work();
    let share = percent(cost, work);
    let title = format!("the application had nothing to send {share} of the time");
    let [_, _, window] = analysis.windows.unwrap_or_default();
    let pacing = &analysis.pacing;
    let used = if pacing.used_ns == 0 { 0.0 } else { pacing.used / pacing.used_ns as f64 };
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(span.interval), span.events)
        .with([
            number("waited_s", seconds(cost), "waited", time(cost)),
            number(
                "window_used",
                used,
                "window",
                format!(
                    "{:.0} % of it used on average while data were in flight; {} at the end",
                    used * 100.0,
                    size(window)
                ),
            ),
            number("goodput_bps", analysis.goodput() * 8.0, "goodput", rate(analysis.goodput())),
        ])
        .because(if analysis.frames_inferred {
            "the window was open and nothing was sent"
        } else {
            "the window was open, the peer's limits were not reached, and nothing was sent"
        });
    if analysis.frames_inferred {
        found = found.unseen("the peer's limits: the log has no frames");
    }
    if analysis.reported_application > 0 {
        let text =
            format!("{} by the controller itself", many(analysis.reported_application, "time"));
        found = found.with([count(
            "application_limited_states",
            analysis.reported_application,
            "reported",
            text,
        )]);
    } else {
        found.confidence = Confidence::Medium;
        found = found.unseen(if pacing.logged {
            "whether the application had no data or the stack did not run"
        } else {
            "whether the application had no data, the stack did not run, or it paced below 1.25 windows per round trip: the log has no pacing rate"
        });
    }
    found.severity = severity_of(cost, work);
    let turns = exchange.local().count.max(exchange.remote().count);
    // Between messages the time is that of round trips, and of the peer.
    if has_pauses && turns >= MIN_PAUSES && exchange.pauses * 2 >= cost {
        found.kind = "in-request";
        found.cost = Duration::from_nanos(exchange.pauses);
        found.severity = severity_of(exchange.pauses, work);
    }
    // Messages of a datagram are those of speech or telemetry, on purpose, if no answer starts them: of equal intervals none
    // does, and few logs have the size of a full datagram.
    let has_rhythm = analysis.rhythm.period > 0;
    let largest = if has_rhythm { analysis.sizes.largest_acked } else { 0 };
    let is_stream = (has_rhythm || turns < MIN_PAUSES)
        && analysis.stream_bytes <= exchange.messages * analysis.datagram.max(largest);
    // A round trip or two are those of the peer's turn, as in an opening.
    let turns_of_peer = analysis.round_trips.map_or(0, |[min, ..]| MIN_PAUSES.saturating_mul(min));
    if is_stream || !has_pauses && cost < turns_of_peer {
        found.severity = Severity::Note;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::rhythm::QuicRhythm;

    /// 40 messages of 1,250 bytes, more than the first size of a datagram, with three packets of the peer that seem answers.
    #[test]
    fn messages_of_a_datagram_at_equal_intervals_are_a_stream() {
        for (period, severity) in [(20_000_000, Severity::Note), (0, Severity::Error)] {
            let mut analysis = QuicAnalysis { last: 800_000_000, ..QuicAnalysis::default() };
            (analysis.datagram, analysis.stream_bytes) = (1_200, 50_000);
            (analysis.data_packets, analysis.sizes.largest_acked) = (40, 1_452);
            analysis.round_trips = Some([4_000_000; 3]);
            analysis.rhythm = QuicRhythm { period, ..QuicRhythm::default() };
            let exchange = &mut analysis.exchange;
            (exchange.messages, exchange.pause_count, exchange.pauses) = (40, 36, 700_000_000);
            exchange.waits.iter_mut().for_each(|waits| waits.count = 3);
            let quiet = &mut analysis.budget.spans[QuicLimiter::Application as usize];
            quiet.add(0, 800_000_000, 1);
            assert_eq!(check(&analysis).map(|found| found.severity), Some(severity));
        }
    }

    /// A server that answers once, a second late.
    #[test]
    fn an_answer_among_late_acks_is_no_slow_server() {
        for return_path in [None, Some(5e4)] {
            let mut analysis = QuicAnalysis { last: 2_000_000_000, ..QuicAnalysis::default() };
            (analysis.client, analysis.return_path) = (Some(true), return_path);
            let answers = &mut analysis.exchange.waits[1];
            (answers.count, answers.total) = (1, 1_000_000_000);
            analysis.budget.spans[QuicLimiter::Path as usize].add(0, 2_000_000_000, 1);
            let found = check(&analysis);
            assert_eq!(found.is_some(), return_path.is_none(), "{found:?}");
        }
    }
}
