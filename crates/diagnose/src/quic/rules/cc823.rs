//! CC823: the number of streams is the limit.
//!
//! Checks for time in which the window was open and STREAMS_BLOCKED was sent without a MAX_STREAMS
//! since (RFC 9000 section 4.6).
//!
//! Cost: that time.

use super::QuicRule;
use super::case::{finding, is_significant};
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{Finding, Remedy, RemedyHost, count, many, number, percent};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC823",
    name: "the number of streams is the limit",
    check,
    background: "\
The peer limits how many streams may be opened (initial_max_streams, MAX_STREAMS). A client with
more requests than that waits until responses end and the peer raises the limit, a round trip later
at least. A peer that never raises it stops the connection.",
    help: &[
        Remedy::stack(
            RemedyHost::Receiver,
            "quic-go",
            "peer: Config.MaxIncomingStreams, Config.MaxIncomingUniStreams",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "quinn",
            "peer: TransportConfig::max_concurrent_bidi_streams, max_concurrent_uni_streams",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "quiche",
            "peer: Config::set_initial_max_streams_bidi, Config::set_initial_max_streams_uni",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "msquic",
            "peer: QUIC_SETTINGS PeerBidiStreamCount, PeerUnidiStreamCount",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "s2n-quic",
            "peer: Limits::with_max_open_remote_bidirectional_streams",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "lsquic",
            "peer: es_init_max_streams_bidi, es_init_max_streams_uni",
        ),
        Remedy::stack(
            RemedyHost::Receiver,
            "mvfst",
            "peer: TransportSettings::advertisedInitialMaxStreamsBidi",
        ),
    ],
};

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let span = analysis.budget.of(QuicLimiter::StreamCount);
    if !is_significant(analysis, span.ns) {
        return None;
    }
    let share = percent(span.ns, analysis.budget.active());
    let title = format!("no further stream may be opened {share} of the time");
    Some(
        finding(analysis, &RULE, span.ns, title)
            .at(interval(span.interval), span.events)
            .with([
                number("blocked_s", seconds(span.ns), "blocked", time(span.ns)),
                count(
                    "streams",
                    analysis.flow.streams,
                    "streams",
                    many(analysis.flow.streams, "stream"),
                ),
            ])
            .because("the peer limits the number of streams below what the application opens"),
    )
}
