//! Rows of CUBIC's window functions: [`cc::cubic::fixed`].

use cc::cubic::fixed::{cubic_cwnd, cubic_k, cubic_k_from, tf_cwnd};

use super::rows::{GoldenError, GoldenRows, GoldenTally};

/// Replays all rows, each on its own.
pub(super) fn replay(rows: &mut GoldenRows, tally: &mut GoldenTally) -> Result<(), GoldenError> {
    let [version, func, hz, smss] = rows.columns(["version", "func", "hz", "smss"])?;
    let [wmax, time, k, rtt, result] =
        rows.columns(["wmax", "arg_time_or_epoch", "K_fp8", "rtt", "result"])?;
    while let Some(row) = rows.next()? {
        let in_ticks = matches!(row.text(version), "13.0" | "main202207_ticks");
        let from_epoch = row.text(version) == "rfc9438";
        let got = match row.text(func) {
            "cubic_k" if from_epoch => cubic_k_from(row.number(wmax)?, row.number(time)?) as u64,
            "cubic_k" => cubic_k(row.number(wmax)?) as u64,
            "cubic_cwnd" => {
                let hz: i64 = row.number(hz)?;
                let unit = if in_ticks { hz } else { hz * (1_000_000 / hz.max(1)) };
                if unit <= 0 {
                    return Err(row.garbled(version, "no ticks"));
                }
                let (time, wmax, smss) = (row.number(time)?, row.number(wmax)?, row.number(smss)?);
                let window = cubic_cwnd(time, wmax, smss, row.number(k)?, unit);
                if from_epoch { u64::from(window as u32) } else { window }
            }
            "tf_cwnd" => {
                let (time, rtt) = (row.number(time)?, row.number(rtt)?);
                tf_cwnd(time, rtt, row.number(wmax)?, row.number(smss)?)
            }
            other => return Err(row.garbled(func, &format!("{other:?} is not known"))),
        };
        tally.row();
        row.compare(tally, result, got);
    }
    Ok(())
}
