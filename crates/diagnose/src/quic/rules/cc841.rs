//! CC841: the peer delays its ACKs.
//!
//! Checks the ACK delays that the peer reports: above its own `max_ack_delay` (RFC 9000 section
//! 13.2.1), or more than a quarter of the minimum RTT on average.
//!
//! Behind a slow way back (kind `return-path`) the cost is the time in which the sender had data, less what they take at the
//! rate of the way there by a sender that doubles its window each round trip, and the peer's packets of the handshake.
//!
//! Cost: the mean delay in each round trip of the time in which the congestion window was the
//! limit without a queue.

use super::QuicRule;
use super::case::{finding, is_significant, return_path_cost};
use crate::quic::clock::{interval, seconds, time};
use crate::quic::{QuicAnalysis, QuicLimiter};
use crate::rules::{Confidence, Finding, Remedy, RemedyHost, Severity, count, many, number, rate};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC841",
    name: "the peer delays its ACKs",
    check,
    background: "\
A receiver acknowledges every second ack-eliciting packet at once and a single one within
max_ack_delay, 25 ms unless it says otherwise (RFC 9000 section 13.2). Longer delays lengthen the
sender's round trips, delay the window's growth and loss detection, and can fire its probe timeout.
Causes are a busy receiver, batched reads (GRO, recvmmsg) that acknowledge once per batch, coarse
timers, and ACK_FREQUENCY with too large a threshold.",
    help: &[
        Remedy::stack(
            RemedyHost::Sender,
            "quinn",
            "TransportConfig::ack_frequency_config at the sender asks the receiver for other values",
        ),
        Remedy::stack(RemedyHost::Receiver, "quiche", "receiver: Config::set_max_ack_delay"),
        Remedy::stack(RemedyHost::Receiver, "msquic", "receiver: QUIC_SETTINGS MaxAckDelayMs"),
        Remedy::stack(RemedyHost::Receiver, "s2n-quic", "receiver: Limits::with_max_ack_delay"),
        Remedy::stack(RemedyHost::Receiver, "lsquic", "receiver: es_delayed_acks = 0"),
        Remedy::stack(
            RemedyHost::Receiver,
            "picoquic",
            "receiver: max_ack_delay of picoquic_set_default_tp",
        ),
        Remedy::general(
            "receiver: read the socket and write ACKs on the same turn of the event loop",
        ),
    ],
};

/// ACKs that wait on a full way back.
fn return_path(analysis: &QuicAnalysis, back: f64) -> Finding {
    let busy = analysis.budget.of(QuicLimiter::Path);
    let cost = return_path_cost(analysis);
    let [min, _, max] = analysis.round_trips.unwrap_or_default();
    let mean = analysis.mean_rtt.unwrap_or(min);
    let title = format!(
        "the way back carries ACKs at {}: they wait there, and the data for them",
        rate(back)
    );
    let mut found = finding(analysis, &RULE, cost.mean, title)
        .at(interval(busy.interval), busy.events)
        .with([
            number("return_path_bps", back * 8.0, "way back", rate(back)),
            number(
                "mean_rtt_s",
                seconds(mean),
                "round trip",
                format!("{} at least, {} on average, {} at most", time(min), time(mean), time(max)),
            ),
        ])
        .because("the time between two ACKs follows from their own length, not from what they acknowledge")
        .unseen(format!(
            "the rate of the way there, so the cost is between {} and {}",
            time(cost.least),
            time(cost.most)
        ));
    found.kind = "return-path";
    found.confidence = Confidence::Medium;
    found
}

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    if let Some(back) = analysis.return_path.filter(|_| analysis.is_sender()) {
        return Some(return_path(analysis, back));
    }
    let delays = &analysis.ack_delays;
    let [min, ..] = analysis.round_trips?;
    if delays.count < 10 {
        return None;
    }
    let mean = delays.sum / delays.count;
    // A receiver that waits for a second packet holds the ACK of a small window: after losses that is their cost.
    let holds_few = delays.packets <= 2 * delays.count;
    let limited: u64 = match holds_few {
        true => analysis.slow_start.ns + analysis.plain_window.ns,
        false => [QuicLimiter::SlowStart, QuicLimiter::Window, QuicLimiter::Recovery]
            .iter()
            .map(|limiter| analysis.time(*limiter))
            .sum(),
    };
    let cost = (u128::from(limited) * u128::from(mean) / u128::from((min + mean).max(1))) as u64;
    let late = delays.above * 20 > delays.count && delays.above >= 3;
    let long = mean * 4 > min && is_significant(analysis, cost);
    if !late && !long {
        return None;
    }
    let title = if late {
        format!("{} of {} ACKs came after the peer's max_ack_delay", delays.above, delays.count)
    } else {
        format!("the peer delays its ACKs by {} on average", time(mean))
    };
    let per_ack = delays.packets as f64 / delays.count as f64;
    let limit = analysis.max_ack_delay.map_or("not in the log".to_owned(), time);
    let mut found = finding(analysis, &RULE, if long { cost } else { 0 }, title)
        .at(
            interval((analysis.first, analysis.last)),
            (analysis.range.0, delays.event.max(analysis.range.0)),
        )
        .with([
            number(
                "mean_ack_delay_s",
                seconds(mean),
                "delay",
                format!("{} on average, {} at most", time(mean), time(delays.max)),
            ),
            count(
                "late_acks",
                delays.above,
                "late",
                format!(
                    "{} of {}; max_ack_delay is {limit}",
                    delays.above,
                    many(delays.count, "ACK")
                ),
            ),
            number(
                "packets_per_ack",
                per_ack,
                "per ACK",
                format!("{per_ack:.1} ack-eliciting packets"),
            ),
            number("min_rtt_s", seconds(min), "round trip", time(min)),
        ])
        .because("the receiver holds ACKs back, or does not run when packets arrive");
    if late && found.severity == Severity::Note && delays.above * 2 > delays.count {
        found.severity = Severity::Warning;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 MB in 4 s with ACKs that wait on their way, of which the path once carried 1 MB/s.
    #[test]
    fn a_slow_way_back_costs_what_rates_above_the_seen_one_would_save() {
        let mut analysis = QuicAnalysis { last: 4_000_000_000, ..QuicAnalysis::default() };
        (analysis.stream_bytes, analysis.data_packets) = (2_000_000, 2_000);
        analysis.round_trips = Some([1_000, 1_000, 1_000]);
        analysis.windows = Some([10_000, 10_000, 10_000]);
        analysis.largest_rate = Some(1e6);
        analysis.return_path = Some(5e4);
        analysis.budget.spans[QuicLimiter::Path as usize].add(0, 4_000_000_000, 1);
        let found = check(&analysis).unwrap();
        // From 2 s, at that rate, to 4 s.
        let cost = found.cost.as_nanos() / 1_000_000;
        assert!((3_000..=3_300).contains(&cost), "{cost}");
        assert!(found.unseen.contains("between"), "{}", found.unseen);
        // An answer that waits there, or is lost, is late for it.
        let answers = &mut analysis.exchange.waits[1];
        (answers.count, answers.total) = (1, 500_000_000);
        let late = check(&analysis).unwrap().cost.as_nanos() / 1_000_000;
        assert_eq!(late, cost + 500);
    }
}
