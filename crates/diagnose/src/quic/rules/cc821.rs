//! CC821: the flow control of the connection is the limit.
//!
//! Checks for time in which the window was open and all bytes that the receiver had granted for the
//! connection were sent (MAX_DATA, RFC 9000 section 4.1), or DATA_BLOCKED was sent.
//!
//! Cost: that time less the time its bytes take at the rate of the bottleneck, and of a slow reader the time
//! in which it takes what is left before its answer.

use super::QuicRule;
use super::case::{bound, finding, is_significant, path_rate, reader, reading_time};
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{
    Confidence, Finding, Remedy, RemedyHost, count, many, number, percent, rate, size,
};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC821",
    name: "connection flow control is the limit",
    check,
    background: "\
The receiver grants bytes for the whole connection with MAX_DATA. It moves at most one such window
per round trip: 1.5 MB at 100 ms is 120 Mbit/s on any path. Stacks raise the limit when the
application has read a part of the window, some grow the window; an application that reads slowly
stops the sender the same way.",
    help: &[
        Remedy::stack(
            RemedyHost::Receiver,
            "quic-go",
            "receiver: Config.InitialConnectionReceiveWindow, Config.MaxConnectionReceiveWindow",
        ),
        Remedy::stack(RemedyHost::Receiver, "quinn", "receiver: TransportConfig::receive_window"),
        Remedy::stack(
            RemedyHost::Receiver,
            "quiche",
            "receiver: Config::set_initial_max_data, Config::set_max_connection_window",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "picoquic",
            "receiver: initial_max_data of picoquic_set_default_tp",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "neqo",
            "receiver: ConnectionParameters::max_data; in Firefox network.http.http3.max_data",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "msquic",
            "receiver: QUIC_SETTINGS ConnFlowControlWindow",
        ),
        Remedy::stack(RemedyHost::Receiver, "s2n-quic", "receiver: Limits::with_data_window"),
        Remedy::stack(
            RemedyHost::Receiver,
            "mvfst",
            "receiver: TransportSettings::advertisedInitialConnectionFlowControlWindow",
        ),
        Remedy::stack(RemedyHost::Receiver, "lsquic", "receiver: es_init_max_data, es_max_cfcw"),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let span = analysis.budget.of(QuicLimiter::ConnectionFlow);
    let blocked = analysis.lost_time(span);
    if !is_significant(analysis, blocked) {
        return None;
    }
    let cost = blocked + reading_time(analysis, QuicLimiter::ConnectionFlow);
    let share = percent(span.ns, analysis.budget.active());
    let title = format!("the receiver's limit for the connection is reached {share} of the time");
    let rtt = analysis.round_trips.map(|[min, ..]| min).filter(|&rtt| rtt > 0);
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(span.interval), span.events)
        .with([
            number(
                "blocked_s",
                seconds(span.ns),
                "blocked",
                format!("{} in {}", time(span.ns), many(span.times, "stretch")),
            ),
            count("limit_bytes", analysis.flow.connection.unwrap_or(0), "", String::new()),
        ])
        .with(path_rate(analysis))
        .with(rtt.map(|rtt| {
            number(
                "rtt_s",
                seconds(rtt),
                "round trip",
                format!("{}; goodput {}", time(rtt), rate(analysis.goodput())),
            )
        }))
        .with(analysis.max_in_flight.map(|most| {
            count("max_in_flight_bytes", most, "in flight", format!("{} at most", size(most)))
        }))
        .because("the receiver grants too little ahead, or its application reads slowly")
        .unseen(bound(analysis));
    reader(analysis, span, analysis.flow.first.0, &mut found);
    if !analysis.is_sender() {
        found.confidence = Confidence::Medium;
        found.cause = "this host grants too little ahead, or its application reads slowly".into();
    }
    Some(found)
}
