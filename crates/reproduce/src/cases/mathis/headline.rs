//! The table of the document.

use super::world::{Loss, MathisVariant, spread};
use crate::cases::{CaseError, CaseRow, Workers};

/// Seeds of the runs with random loss.
const SEEDS: u64 = 20;

/// Description of a receiver that acknowledges every n-th packet.
pub(super) const fn acks(every: u32) -> &'static str {
    match every {
        1 => "ACK every packet",
        _ => "ACK every other packet",
    }
}

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let mut rows = Vec::new();
    for (every, published) in [(1, 35.77), (2, 31.30)] {
        let mbps = MathisVariant::new(every, Loss::Periodic(50)).mbps(workers)?;
        let name = format!("periodic loss, {}", acks(every));
        let row = CaseRow::band(
            name,
            "Mbit/s",
            published,
            Some(mbps),
            published - 0.02,
            published + 0.02,
        );
        rows.push(row.note("50 packets delivered in 7 or 8 round trips"));
    }
    for (every, single, model, theory) in [(1, 41.13, 41.0, 36.5), (2, 36.40, 36.0, 34.25)] {
        let variant = MathisVariant::new(every, Loss::Random(50));
        let (mean, deviation) = spread(&variant.mbps_of_seeds(SEEDS, workers)?);
        let name = format!("random loss, {}: mean of {SEEDS} runs", acks(every));
        let row = CaseRow::band(name, "Mbit/s", model, Some(mean), model - 0.7, model + 0.7);
        rows.push(row.note(format!(
            "the published {single:.2} is one run; runs of 9 s scatter by {deviation:.2}, so it is \
             {:+.1} standard deviations from this mean",
            (single - mean) / deviation.max(1e-9)
        )));
        let name = format!("random loss, {}: standard deviation", acks(every));
        let expected = if every == 1 { 0.89 } else { 1.00 };
        rows.push(
            CaseRow::predicted(name, "Mbit/s", Some(expected), Some(deviation))
                .note("expected from an independent model"),
        );
        let name = format!("random loss, {}: above the theory", acks(every));
        rows.push(CaseRow::at_least(name, "Mbit/s", theory, Some(mean)));
    }
    Ok(rows)
}
