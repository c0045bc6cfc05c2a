//! Other RTTs and loss rates.

use std::fmt::Write as _;

use units::Duration;

use super::headline::acks;
use super::theory::{expected, path};
use super::world::{Loss, MathisVariant, spread};
use crate::cases::{CaseError, CaseRow, Workers};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let mut rows = Vec::new();
    let thin = [(2, 185.484), (4, 92.746), (8, 46.3746), (20, 18.550), (100, 3.710)];
    for (rtt, published) in thin {
        // Eighty cycles of 27 round trips.
        let variant = MathisVariant::new(1, Loss::Periodic(1_000)).rtt(ms(rtt)).settled(2_160);
        let name = format!("periodic loss of 0.1 %, ACK every packet, RTT {rtt} ms");
        let mbps = variant.mbps(workers)?;
        let (low, high) = (published * 0.999, published * 1.001);
        let row = CaseRow::band(name, "Mbit/s", published, Some(mbps), low, high);
        rows.push(row.note("INET's data file mathis_validation.npy"));
    }
    for (rtt, periodic, random) in
        [(10, 31.30, 36.6), (25, 31.30, 36.7), (50, 31.30, 37.3), (100, 33.39, 38.3)]
    {
        let scale = rtt as f64 / 2.0;
        let name = |loss: &str| {
            format!("{loss} loss, ACK every other packet, RTT {rtt} ms, times RTT / 2 ms")
        };
        let variant = |loss| MathisVariant::new(2, loss).rtt(ms(rtt));
        let mbps = variant(Loss::Periodic(50)).settled(2_240).mbps(workers)? * scale;
        rows.push(
            CaseRow::predicted(name("periodic"), "Mbit/s", Some(periodic), Some(mbps))
                .note("independent model; the delay of ACKs is 25 ms"),
        );
        let runs = variant(Loss::Random(50)).settled(2_250).mbps_of_seeds(8, workers)?;
        let (mean, deviation) = spread(&runs);
        let theory = expected(2, &path(ms(rtt), 50)?) * scale;
        rows.push(
            CaseRow::predicted(name("random"), "Mbit/s", Some(random), Some(mean * scale)).note(
                format!(
                    "independent model; 8 runs of 2250 RTT scatter by {:.2}; theory {theory:.2}",
                    deviation * scale
                ),
            ),
        );
    }
    Ok(rows)
}

/// Theory, simulation and ratio by loss rate and RTT: random loss, 2 runs of 2,000 RTTs.
pub(super) fn grid(workers: &Workers<'_>) -> Result<String, CaseError> {
    let mut text = String::from(
        "Random loss, Mbit/s: theory, simulation (mean of 2 runs of 2000 RTT), simulation / theory\n",
    );
    for every in [1, 2] {
        let _ = write!(text, "  {:<24}", acks(every));
        for rtt in [2, 20, 100] {
            let _ = write!(text, "{:>26}", format!("RTT {rtt} ms"));
        }
        text.push('\n');
        for (per_loss, share) in [(20, "5 %"), (50, "2 %"), (100, "1 %"), (500, "0.2 %")] {
            let _ = write!(text, "    p = {share:<18}");
            for rtt in [2, 20, 100] {
                let theory = expected(every, &path(ms(rtt), per_loss)?);
                let variant = MathisVariant::new(every, Loss::Random(per_loss));
                let variant = variant.rtt(ms(rtt)).settled(2_000);
                let (mean, _) = spread(&variant.mbps_of_seeds(2, workers)?);
                let cell = format!("{theory:.2} {mean:.2} {:.2}", mean / theory);
                let _ = write!(text, "{cell:>26}");
            }
            text.push('\n');
        }
    }
    Ok(text)
}
