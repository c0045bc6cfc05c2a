//! One rule of the sender or the receiver at a time: its effect on the figures. The expected values
//! come from an independent model with the same rules.

use super::headline::acks;
use super::world::{Loss, MathisVariant, spread};
use crate::cases::{CaseError, CaseRow, Workers};

/// A change, and the model's values for periodic and random loss, with ACKs of every and every
/// other packet.
struct RuleChange {
    name: &'static str,
    /// Knobs of the client and of the server.
    client: &'static [&'static str],
    server: &'static [&'static str],
    /// Other changes.
    other: OtherChange,
    expected: [f64; 4],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OtherChange {
    None,
    /// 49 packets pass.
    EveryFiftieth,
    /// Infinite link rate.
    NoLine,
    /// 1 Gbit/s.
    SlowLine,
    /// 2 % of the ACKs are lost.
    AckLoss,
    /// The whole profile of March 2025.
    March,
}

const fn change(
    name: &'static str,
    client: &'static [&'static str],
    expected: [f64; 4],
) -> RuleChange {
    RuleChange { name, client, server: &[], other: OtherChange::None, expected }
}

const fn receiver(
    name: &'static str,
    server: &'static [&'static str],
    expected: [f64; 4],
) -> RuleChange {
    RuleChange { name, client: &[], server, other: OtherChange::None, expected }
}

const fn other(name: &'static str, other: OtherChange, expected: [f64; 4]) -> RuleChange {
    RuleChange { name, client: &[], server: &[], other, expected }
}

const CHANGES: &[RuleChange] = &[
    change("baseline", &[], [35.77, 31.30, 41.22, 36.05]),
    other("INET of March 2025", OtherChange::March, [41.30, 35.77, 47.6, 43.8]),
    change(
        "packets of a recovery count",
        &["partial_counts_in_recovery=true"],
        [39.53, 35.77, 46.6, 42.8],
    ),
    change("a loss clears nothing", &["partial_cleared_at_loss=false"], [38.53, 35.77, 44.0, 39.4]),
    change(
        "the whole window must be counted",
        &["growth_by_whole_windows=true"],
        [30.35, 31.30, 37.2, 27.1],
    ),
    change("the last packet goes beyond", &["send_beyond_window=true"], [35.77, 31.30, 45.4, 42.1]),
    other("every 50th lost", OtherChange::EveryFiftieth, [35.05, 30.67, 41.2, 36.1]),
    change("70 % of the window kept", &["loss_reduction_percent=70"], [46.95, 44.84, 54.8, 50.9]),
    change(
        "accurate increase off",
        &["accurateIncreaseInNewRenoCongestionAvoidance=false"],
        [35.77, 31.30, 40.7, 36.7],
    ),
    change(
        "RFC 9002's integer division",
        &["growth_without_remainder=true"],
        [35.77, 31.30, 40.6, 36.6],
    ),
    change("ACKs counted before losses", &["losses_before_acks=false"], [35.77, 31.30, 41.5, 36.5]),
    change(
        "an empty flight clears nothing",
        &["partial_cleared_when_empty=false"],
        [35.77, 31.30, 41.2, 36.4],
    ),
    change("no loss by time", &["time_threshold_eighths=0"], [35.77, 31.30, 40.8, 35.2]),
    change("packet threshold 1", &["kPacketThreshold=1"], [35.77, 31.30, 40.9, 35.6]),
    receiver("gaps draw no ACK", &["ack_reordering_threshold=0"], [35.77, 31.30, 41.2, 35.7]),
    receiver("max_ack_delay 5 ms", &["max_ack_delay=5ms"], [35.77, 31.30, 41.2, 36.4]),
    receiver("max_ack_delay 1 ms", &["max_ack_delay=1ms"], [35.77, 31.30, 41.2, 37.0]),
    receiver("max_ack_delay 0.5 ms", &["max_ack_delay=500us"], [35.77, 33.38, 41.2, 38.1]),
    other("a line that takes no time", OtherChange::NoLine, [35.77, 31.30, 40.8, 35.7]),
    other("1 Gbit/s", OtherChange::SlowLine, [35.52, 31.05, 40.9, 35.8]),
    change("initial window 2", &["initial_window=2"], [35.77, 31.30, 41.2, 36.1]),
    change("least window 1", &["minimum_window=1"], [35.77, 31.30, 41.1, 34.4]),
    other("2 % of the ACKs lost", OtherChange::AckLoss, [35.59, 30.65, 41.0, 34.4]),
];

impl RuleChange {
    fn variant(&self, every: u32, random: bool) -> MathisVariant {
        let loss = match (random, self.other) {
            (true, _) => Loss::Random(50),
            (false, OtherChange::EveryFiftieth) => Loss::Periodic(49),
            (false, _) => Loss::Periodic(50),
        };
        let mut variant = MathisVariant::new(every, loss);
        for (host, knobs) in [("client", self.client), ("server", self.server)] {
            let set = knobs.iter().map(|knob| format!("host.{host}.knobs.{knob}"));
            variant.set.extend(set);
        }
        match self.other {
            OtherChange::NoLine => variant.rate = None,
            OtherChange::SlowLine => variant.rate = Some("1Gbit/s"),
            OtherChange::AckLoss => variant.ack_loss = Some(50),
            OtherChange::March => {
                // Only its NewReno: the handshake does not matter.
                let both = ["client", "server"].into_iter().flat_map(|host| {
                    [
                        format!("host.{host}.profile=quic-inet-2025-03"),
                        format!("host.{host}.knobs.handshake=false"),
                    ]
                });
                variant.set.extend(both);
            }
            OtherChange::None | OtherChange::EveryFiftieth => {}
        }
        variant
    }
}

/// Runs with random loss per row.
const RUNS: u64 = 2;

/// Periodic loss is shown as measured. For random loss the change from the baseline is shown, with
/// the same seeds, since a few runs scatter more than most changes.
pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let figures = workers.map(CHANGES, |change| {
        let periodic = workers
            .map(&[1, 2], |&every| change.variant(every, false).round_trips(2_240).mbps(workers))?;
        // It differs in the periodic loss only.
        if change.other == OtherChange::EveryFiftieth {
            return Ok::<_, CaseError>((periodic, None));
        }
        Ok((periodic, Some(workers.map(&[1, 2], |&every| random_mean(change, every, workers))?)))
    })?;
    let mut rows = Vec::new();
    let mut baseline: Option<Vec<f64>> = None;
    for (change, (periodic, means)) in CHANGES.iter().zip(figures) {
        for ((every, mbps), expected) in [1, 2].into_iter().zip(periodic).zip(change.expected) {
            let name = format!("{}: periodic loss, {}", change.name, acks(every));
            let row = CaseRow::predicted(name, "Mbit/s", Some(expected), Some(mbps));
            rows.push(row.note("model"));
        }
        let Some(means) = means else { continue };
        let Some(base) = &baseline else {
            baseline = Some(means);
            continue;
        };
        for (place, every) in [1, 2].into_iter().enumerate() {
            let expected = change.expected[2 + place] - CHANGES[0].expected[2 + place];
            let measured = means[place] - base[place];
            let name = format!("{}: change under random loss, {}", change.name, acks(every));
            rows
                .push(CaseRow::predicted(name, "Mbit/s", Some(expected), Some(measured)).note(format!(
                "model; its runs were longer than the {RUNS} of 9 s here, which scatter by about 0.4"
            )));
        }
    }
    Ok(rows)
}

fn random_mean(change: &RuleChange, every: u32, workers: &Workers<'_>) -> Result<f64, CaseError> {
    Ok(spread(&change.variant(every, true).mbps_of_seeds(RUNS, workers)?).0)
}
