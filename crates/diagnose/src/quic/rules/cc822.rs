//! CC822: the flow control of a stream is the limit.
//!
//! Checks for time in which the window was open and a stream that had not ended was at the limit
//! that the receiver had granted for it (MAX_STREAM_DATA, RFC 9000 section 4.1), or
//! STREAM_DATA_BLOCKED was sent.
//!
//! Cost: that time less the time its bytes take at the rate of the bottleneck, and of a slow reader the time
//! in which it takes what is left before its answer.

use super::QuicRule;
use super::case::{bound, finding, is_significant, path_rate, reader, reading_time};
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{Confidence, Finding, Remedy, RemedyHost, count, many, number, percent, rate};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC822",
    name: "stream flow control is the limit",
    check,
    background: "\
The receiver grants bytes for each stream with MAX_STREAM_DATA. A transfer on one stream moves at
most one such window per round trip, however large the limit of the connection is. Defaults are
often far below what a long path needs: 64 KB at 60 ms is 8.7 Mbit/s.",
    help: &[
        Remedy::stack(
            RemedyHost::Receiver,
            "quic-go",
            "receiver: Config.InitialStreamReceiveWindow, Config.MaxStreamReceiveWindow",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "quinn",
            "receiver: TransportConfig::stream_receive_window",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "quiche",
            "receiver: Config::set_initial_max_stream_data_bidi_local, _bidi_remote, _uni; Config::set_max_stream_window",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "picoquic",
            "receiver: initial_max_stream_data_bidi_local, _bidi_remote, _uni of picoquic_set_default_tp",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "neqo",
            "receiver: ConnectionParameters::max_stream_data; in Firefox network.http.http3.max_stream_data",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "msquic",
            "receiver: QUIC_SETTINGS StreamRecvWindowDefault",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "s2n-quic",
            "receiver: Limits::with_bidirectional_local_data_window, with_bidirectional_remote_data_window, with_unidirectional_data_window",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "mvfst",
            "receiver: TransportSettings::advertisedInitialBidiLocalStreamFlowControlWindow",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "lsquic",
            "receiver: es_init_max_stream_data_bidi_local, es_max_sfcw",
        ),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let span = analysis.budget.of(QuicLimiter::StreamFlow);
    let blocked = analysis.lost_time(span);
    if !is_significant(analysis, blocked) {
        return None;
    }
    let cost = blocked + reading_time(analysis, QuicLimiter::StreamFlow);
    let share = percent(span.ns, analysis.budget.active());
    let title = match analysis.flow.stream {
        Some((id, _)) => format!("stream {id} is at the receiver's limit {share} of the time"),
        None => format!("a stream is at the receiver's limit {share} of the time"),
    };
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
            count(
                "streams",
                analysis.flow.streams,
                "streams",
                many(analysis.flow.streams, "stream"),
            ),
        ])
        .with(analysis.flow.stream.map(|(_, limit)| count("limit_bytes", limit, "", String::new())))
        .with(path_rate(analysis))
        .with(rtt.map(|rtt| {
            let text = format!("{}; goodput {}", time(rtt), rate(analysis.goodput()));
            number("rtt_s", seconds(rtt), "round trip", text)
        }))
        .because(
            "the receiver grants too little ahead for this stream, or its application reads slowly",
        )
        .unseen(bound(analysis));
    reader(analysis, span, analysis.flow.first.1, &mut found);
    if !analysis.is_sender() {
        found.confidence = Confidence::Medium;
    }
    Some(found)
}
