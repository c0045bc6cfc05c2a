//! Rows of `tcp_xmit_timer`: [`recovery::RttFreeBsd`].

use recovery::RttFreeBsd;

use super::rows::{GoldenError, GoldenRows, GoldenTally};

/// Replays all sequences of samples; each starts without a sample.
pub(super) fn replay(rows: &mut GoldenRows, tally: &mut GoldenTally) -> Result<(), GoldenError> {
    let [seq, hz, ms, ticks, shift] =
        rows.columns(["seq", "hz", "ts_ms_diff", "rtt_ticks_arg", "rxtshift_before"])?;
    let [t_srtt, t_rttvar, t_rxtcur, updated, srtt_us] = rows.columns([
        "t_srtt_fp",
        "t_rttvar_fp",
        "rxtcur_ticks",
        "rttupdated",
        "srtt_usec_for_cubic",
    ])?;
    let mut running: Option<((u32, u32), RttFreeBsd)> = None;
    while let Some(row) = rows.next()? {
        let key = (row.number(seq)?, row.number(hz)?);
        if key.1 == 0 {
            return Err(row.garbled(hz, "no ticks"));
        }
        let rtt = match &mut running {
            Some((same, rtt)) if *same == key => rtt,
            other => &mut other.insert((key, RttFreeBsd::new(key.1))).1,
        };
        let sample = rtt.ticks_of_echo(row.number(ms)?);
        rtt.on_ticks(row.number(ticks)?, row.number(shift)?);
        tally.row();
        row.compare(tally, ticks, sample);
        row.compare(tally, t_srtt, rtt.t_srtt());
        row.compare(tally, t_rttvar, rtt.t_rttvar());
        row.compare(tally, t_rxtcur, rtt.t_rxtcur());
        // The recorded kernel has an eight-bit counter.
        row.compare(tally, updated, rtt.t_rttupdated().min(255));
        row.compare(tally, srtt_us, rtt.srtt_micros());
    }
    Ok(())
}
