//! Case `cubic-hz`: CUBIC's TCP-friendly window and the kernel's tick (review D46546 of FreeBSD).
//!
//! `world` is the one scenario of all rows. Groups of rows: `table` (the review's own figures), `real` (the
//! complete stack on the same path), `wan` (the change at longer round trips), `friends` (CUBIC beside NewReno on one line), `ramp`
//! (back to the old window after one loss). `window` computes what the modelled window gains.

mod friends;
mod ramp;
mod real;
mod table;
mod wan;
mod window;
mod world;

use super::{CaseError, Knob, Measured, Stop};

/// The scenario of the case.
pub(crate) const SCENARIO: &str = include_str!("../../../../scenarios/cubic-hz.toml");

/// Runs all groups of rows.
pub(super) fn measure(stop: Stop<'_>) -> Result<Measured, CaseError> {
    let mut rows = table::rows(stop)?;
    rows.extend(real::rows(stop)?);
    rows.extend(wan::rows(stop)?);
    rows.extend(friends::rows(stop)?);
    rows.extend(ramp::rows(stop)?);
    let exhibit = format!("{EXPLANATION}\n{}", window::table());
    Ok(Measured { knobs: knobs(), rows, exhibit })
}

/// What happens.
const EXPLANATION: &str = "\
Why a tick of 10 ms starves CUBIC in a LAN
  CUBIC's TCP-friendly window is the one that NewReno would have by now. FreeBSD modelled it from
  time: 0.53 segments for each mean round trip since the last loss. Time advances by ticks of
  kern.hz, and the mean cannot fall below 7/32 of a tick, 2.2 ms at 100 Hz, in a LAN of some 100 us.
  At 1 % loss the next loss mostly comes before the next tick: no time has passed, the window does
  not grow, and every loss takes 30 % of it. D46546 counts acknowledged bytes as NewReno does, and
  needs no clock.

What the complete stack does with it
  FreeBSD's own TCP of October 2024, compiled into a program and run over the declared path, gives
  the figures of the rows \"real stack\", which are asserted. The order that the review reports holds
  there under periodic loss: stock CUBIC below NewReno, D46546 at or above it, and only stock CUBIC
  moves with kern.hz. The table that the review published does not come out of it, whatever was
  tried: periodic loss, random loss by packet and by TSO burst, round trips from 70 us to 1 ms, other
  line rates, lost-retransmission detection and PRR on and off. The review does not tell its path, so
  its table is printed for information only.

Why random loss is so much worse
  The test for a lost retransmission (tcp_sack_lost_retransmission) counts its bytes a second time in
  sack_bytes_rexmit and never takes them back, and recover_fs, the flight less what was sacked, wraps
  below zero in 32 bits. PRR then allows nothing until the retransmission timer fires. In the
  complete stack 12 of 19 timeouts happen in that state; with both faults repaired the same losses
  give the published order (docs/freebsd-lost-retransmissions.md).
";

fn knobs() -> Vec<Knob> {
    vec![
        Knob::new("host.*.profile", "freebsd-main", "the review: main of September 2024"),
        Knob::new(
            "host.sender.cc",
            "newreno, cubic-usec (stock), cubic-d46546",
            "the review; stock is main just before it (cc_cubic.c 00d3b74406db)",
        ),
        Knob::new("kern.hz", "100, 1000, 10000, 100000", "the review"),
        Knob::new(
            "loss",
            "every 100th, every 50th data packet; lists of random losses",
            "declared: the review tells 1 % and 2 % and nothing of the process",
        ),
        Knob::new(
            "path delay",
            "45 us each way",
            "declared, as in golden/freebsd-closed/long-runs.csv",
        ),
        Knob::new("path rate", "1 Gbit/s", "declared, as in golden/freebsd-closed/long-runs.csv"),
        Knob::new("buffer of the line", "1 MB", "declared: no packet is lost but by chance"),
        Knob::new("host.sender.tso", "on", "FreeBSD's default"),
        Knob::new("host.sink.lro", "off", "declared: the review does not tell the card"),
        Knob::new(
            "duration",
            "10 s under periodic loss, 5 s else",
            "as in golden/freebsd-closed/long-runs.csv",
        ),
    ]
}
