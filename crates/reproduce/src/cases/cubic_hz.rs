//! Case `cubic-hz`: CUBIC's TCP-friendly window and the kernel's tick (review D46546 of FreeBSD).
//!
//! `world` is the one scenario of all rows. Groups of rows: `table` (the review's own figures),
//! `real` (the complete stack on the same path), `wan` (the change at longer RTTs), `friends`
//! (CUBIC and NewReno on one link), `ramp` (recovery of the window after one loss). `window`
//! computes the growth of the modelled window.

mod friends;
mod ramp;
mod real;
mod table;
mod wan;
mod window;
mod world;

use super::{CaseError, CaseInput, Measured, Workers, by, groups};

/// The scenario of the case.
pub(crate) const SCENARIO: &str = samples::text("cubic-hz");

/// Runs all groups of rows.
pub(super) fn measure(workers: &Workers<'_>) -> Result<Measured, CaseError> {
    let rows = groups(&[table::rows, real::rows, wan::rows, friends::rows, ramp::rows], workers)?;
    let rows = by("freebsd-main", rows);
    let exhibit = format!("{EXPLANATION}\n{}", window::table());
    Ok(Measured { knobs: knobs(), rows, exhibit })
}

/// The explanation below the table.
const EXPLANATION: &str = "\
Why a tick of 10 ms starves CUBIC in a LAN
  CUBIC's TCP-friendly window is the window that NewReno would have. FreeBSD modelled it from time:
  0.53 segments for each mean round trip since the last loss. Time advances by ticks of
  kern.hz, and the mean cannot fall below 7/32 of a tick, 2.2 ms at 100 Hz, in a LAN of some 100 us.
  At 1 % loss the next loss mostly comes before the next tick: no time has passed, the window does
  not grow, and every loss reduces it by 30 %. D46546 counts acknowledged bytes as NewReno does, and
  needs no clock.

The complete stack
  FreeBSD's own TCP of October 2024, compiled into a program and run over the declared path, gives
  the figures of the rows \"real stack\", which are asserted. The order that the review reports holds
  there under periodic loss: stock CUBIC below NewReno, D46546 at or above it, and only stock CUBIC
  depends on kern.hz. The published table could not be reproduced with it under any variant tried:
  periodic loss, random loss by packet and by TSO burst, round trips from 70 us to 1 ms, other link
  rates, lost-retransmission detection and PRR on and off. The review does not describe its path, so
  its table is printed for information only.

Why random loss is that much worse
  The test for a lost retransmission (tcp_sack_lost_retransmission) counts its bytes a second time in
  sack_bytes_rexmit and never subtracts them, and recover_fs, the flight less what was sacked, wraps
  below zero in 32 bits. PRR then allows nothing until the retransmission timer fires. In the
  complete stack 12 of 19 timeouts happen in that state; with both faults repaired the same losses
  give the published order (docs/freebsd-lost-retransmissions.md).
";

fn knobs() -> Vec<CaseInput> {
    vec![
        CaseInput::new("host.*.profile", "freebsd-main", "the review: main of September 2024"),
        CaseInput::new(
            "host.sender.cc",
            "newreno, cubic-usec (stock), cubic-d46546",
            "the review; stock is main just before it (cc_cubic.c 00d3b74406db)",
        ),
        CaseInput::new("kern.hz", "100, 1000, 10000, 100000", "the review"),
        CaseInput::new(
            "loss",
            "every 100th, every 50th data packet; lists of random losses",
            "declared: the review states 1 % and 2 % but not the loss process",
        ),
        CaseInput::new(
            "path delay",
            "45 us each way",
            "declared, as in golden/freebsd-closed/long-runs.csv",
        ),
        CaseInput::new(
            "path rate",
            "1 Gbit/s",
            "declared, as in golden/freebsd-closed/long-runs.csv",
        ),
        CaseInput::new("link buffer", "1 MB", "declared: packets are lost by the loss model only"),
        CaseInput::new("host.sender.tso", "on", "FreeBSD's default"),
        CaseInput::new("host.sink.lro", "off", "declared: the review does not state the NIC"),
        CaseInput::new(
            "duration",
            "10 s under periodic loss, else 5 s",
            "as in golden/freebsd-closed/long-runs.csv",
        ),
    ]
}
