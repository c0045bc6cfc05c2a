//! The change at longer RTTs: the review expects little effect above 10 ms.

use super::world::{LanSender, Loss, PATCHED, STOCK, delay, rate, sender, transfer};
use crate::cases::{CaseError, CaseRow, Workers};

/// RTTs in milliseconds.
const RTTS: [u64; 5] = [10, 20, 50, 100, 200];
/// Loss in percent.
const LOSS: [&str; 3] = ["0.01", "0.1", "1"];

/// Goodput of D46546 in percent of stock, at 100 Hz.
pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let paths: Vec<(u64, &str)> =
        RTTS.into_iter().flat_map(|rtt| LOSS.map(|loss| (rtt, loss))).collect();
    workers.map(&paths, |&(rtt, loss)| {
        let mbits = |cc| -> Result<f64, CaseError> {
            let mut set = sender(LanSender { hz: 100, cc }, Loss::Random(loss));
            set.extend(delay(rtt as f64 * 500.0));
            set.extend(rate(0.1));
            set.push("duration=20s".into());
            Ok(transfer(2, &set, workers)?.mbits)
        };
        let (stock, patched) = (mbits(STOCK)?, mbits(PATCHED)?);
        let name = format!("{rtt} ms, {loss} % loss, 100 Mbit/s: D46546 of stock");
        Ok(CaseRow::predicted(name, "%", None, Some(100.0 * patched / stock))
            .note(format!("{patched:.2} of {stock:.2} Mbit/s at hz 100")))
    })
}
