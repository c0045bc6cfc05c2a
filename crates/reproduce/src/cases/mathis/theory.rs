//! The formulas of the document, and the constants of the paper.

use theory::Path;
use theory::mathis::{self, Constant};
use theory::sawtooth::{self, ExtraRtts};
use units::{Bytes, Duration, Ratio};

use super::world::PACKET;
use crate::cases::{CaseError, CaseRow};

/// The path of the experiment with this RTT and loss rate.
pub(super) fn path(rtt: Duration, per_loss: u32) -> Result<Path, CaseError> {
    let loss = Ratio::new(1, u64::from(per_loss)).ok_or_else(|| CaseError("no loss".into()))?;
    Path::new(Bytes(PACKET), rtt, loss).map_err(|unfit| CaseError(unfit.to_string()))
}

/// Result of the document's formula, with a receiver that acknowledges every n-th packet.
pub(super) fn expected(every: u32, path: &Path) -> f64 {
    let extra = match every {
        1 => ExtraRtts::EVERY_PACKET,
        _ => ExtraRtts::every_other_packet(Duration::from_millis(25), path),
    };
    sawtooth::estimate(path, extra).rate_bps / 1e6
}

pub(super) fn rows() -> Result<Vec<CaseRow>, CaseError> {
    let path = path(Duration::from_millis(2), 50)?;
    let near = |name: &str, published: f64, measured: f64| {
        CaseRow::band(
            name,
            "Mbit/s",
            published,
            Some(measured),
            published - 0.005,
            published + 0.005,
        )
    };
    let constant = |constant| mathis::estimate(&path, constant).rate_bps / 1e6;
    let mut rows = vec![
        near(
            "Mathis, periodic loss, every packet acknowledged",
            43.37,
            constant(Constant::Periodic),
        )
        .note("C = sqrt(3/2); the model of the paper, no time lost"),
        near("theory, ACK every packet", 36.50, expected(1, &path)).note("b = 2"),
        near("theory, ACK every other packet", 34.25, expected(2, &path)).note("b = 2.75"),
    ];
    for (name, published, which) in [
        ("Mathis, periodic loss, delayed ACKs", 30.67, Constant::PeriodicDelayed),
        ("Mathis, random loss", 46.39, Constant::Random),
        ("Mathis, random loss, delayed ACKs", 32.93, Constant::RandomDelayed),
    ] {
        let note = "C of the paper; the delayed ones hold for senders that count ACKs, not bytes";
        rows.push(
            CaseRow::predicted(name, "Mbit/s", Some(published), Some(constant(which))).note(note),
        );
    }
    Ok(rows)
}
