//! CC833: the congestion window does not grow.
//!
//! Checks for a window that stayed constant while it limited the sender, for at least ten round
//! trips, without a queue and without a loss.
//!
//! Cost: that time less what its data take at the rate of the bottleneck; a window that grew by a datagram per round trip would have helped by an unknown
//! amount, so the cost is an upper bound.

use super::QuicRule;
use super::case::{finding, is_significant};
use crate::quic::QuicAnalysis;
use crate::quic::clock::{interval, seconds, time};
use crate::rules::{Confidence, Finding, Remedy, RemedyHost, Severity, count, number, size};

pub(super) const RULE: QuicRule = QuicRule {
    code: "CC833",
    name: "the congestion window does not grow",
    check,
    background: "\
A window that limits the sender and sees neither losses nor a queue must grow: by what is
acknowledged in slow start, by a datagram per round trip at least afterwards. If it does not, the
controller takes the sender for limited by the application (RFC 9002 section 7.8) because it compares
bytes in flight with the window at the wrong moment, its window is capped by an option, or its model
(BBR's bandwidth) is stuck at an old value.",
    help: &[
        Remedy::stack(RemedyHost::Sender, "mvfst", "TransportSettings::maxCwndInMss"),
        Remedy::stack(RemedyHost::Sender, "quic-go", "the window is capped at protocol.MaxCongestionWindowPackets (10,000 packets)"),
        Remedy::general("log the controller's reason for not growing; test with NewReno, which has the least state"),
    ],
};

/// Round trips without growth that are not by chance.
const ROUNDS: u64 = 10;

fn check(analysis: &QuicAnalysis) -> Option<Finding> {
    let plateau = &analysis.plateau;
    let rtt = analysis.round_trips.map(|[min, ..]| min).filter(|&rtt| rtt > 0)?;
    // A window in each round trip.
    let carried = plateau.window as f64 * 1e9 / rtt as f64;
    let used = analysis.bottleneck.map_or(0.0, |rate| (carried / rate.max(1.0)).min(1.0));
    let cost = (plateau.ns as f64 * (1.0 - used)) as u64;
    if plateau.ns < ROUNDS.saturating_mul(rtt) || !is_significant(analysis, cost) {
        return None;
    }
    let title = format!(
        "the window stays at {} for {} round trips",
        size(plateau.window),
        (plateau.interval.1 - plateau.interval.0) / rtt
    );
    let mut found = finding(analysis, &RULE, cost, title)
        .at(interval(plateau.interval), plateau.events)
        .with([
            count(
                "window_bytes",
                plateau.window,
                "window",
                format!("{}, constant", size(plateau.window)),
            ),
            number(
                "limited_s",
                seconds(plateau.ns),
                "limited",
                format!("the sender for {}", time(plateau.ns)),
            ),
            number("rtt_s", seconds(rtt), "round trip", time(rtt)),
        ])
        .because(
            "the controller did not let the window grow although it was full and nothing was lost",
        )
        .unseen("what growth would have gained, so the cost is an upper bound");
    found.confidence = Confidence::Medium;
    found.severity = found.severity.min(Severity::Warning);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quic::analysis::QuicPlateau;

    /// 60 kB in each round trip of 100 ms, for 2 s.
    #[test]
    fn a_constant_window_costs_what_the_path_would_have_saved() {
        let cost = |bottleneck| {
            let interval = (0, 2_000_000_000);
            let plateau =
                QuicPlateau { window: 60_000, interval, ns: interval.1, ..QuicPlateau::default() };
            let analysis = QuicAnalysis {
                last: 2_000_000_000,
                round_trips: Some([100_000_000; 3]),
                plateau,
                bottleneck,
                ..QuicAnalysis::default()
            };
            check(&analysis).map(|found| found.cost.as_nanos() / 1_000_000)
        };
        assert_eq!(cost(None), Some(2_000));
        assert_eq!(cost(Some(1e6)), Some(800));
        assert_eq!(cost(Some(6e5)), None);
    }
}
