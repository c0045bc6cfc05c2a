//! Case `cubic-hz`: CUBIC's TCP-friendly window and the kernel's tick (review D46546 of FreeBSD).
//!
//! `world` is the one scenario of all rows. Groups of rows: `table` (the review's own figures),
//! `wan` (the change at longer round trips), `friends` (CUBIC beside NewReno on one line), `ramp`
//! (back to the old window after one loss). `window` computes what the modelled window gains.
//! [`calibrate`] is the search that chose round trip and line rate.

pub mod calibrate;
mod friends;
mod ramp;
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

What is not explained
  The review does not tell how packets are dropped. If each is lost with a chance of 1 or 2 %, this
  model of the default stack has a retransmission timeout every second or oftener. Its test for a lost
  retransmission (tcp_sack_lost_retransmission) looks at the first hole left: where two packets of one
  window are lost, new data that left between their two retransmissions and arrives proves the second
  one lost, which it is not. The bytes stay counted as under way (sack_bytes_rexmit), the threshold
  falls again, and recover_fs, the flight less what it was, wraps below zero in 32 bits: PRR then lets
  nothing go until the timer fires; later recoveries begin without room for their first segment.
  NewReno then has 348 and 134 Mbit/s, and 464 and 146 at the best point of the whole search. With
  FreeBSD's RACK stack, which repairs such losses in time and spreads its bursts, random loss gives
  NewReno and D46546 800 Mbit/s at 1 % and 627 at 2 %, but stock CUBIC 724 and 526 at 100 Hz, too.
  If every hundredth or fiftieth packet is lost, no retransmission is, and NewReno and D46546 are met,
  but stock CUBIC stays near six segments: each recovery ends with the window at the threshold, which
  is still slow start and adds two.
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
            "every 100th, every 50th data packet; at random for comparison",
            "the review tells 1 % and 2 %; that it is periodic is inferred: lost at random, no line \
             and no round trip give NewReno's figures (`cargo xtask calibrate`)",
        ),
        Knob::new(
            "path delay",
            calibrate::DELAY,
            "fitted to NewReno's two figures (`cargo xtask calibrate`)",
        ),
        Knob::new(
            "path rate",
            calibrate::RATE,
            "fitted to NewReno's two figures (`cargo xtask calibrate`)",
        ),
        Knob::new("buffer of the line", "1 MB", "declared: no packet is lost but by chance"),
        Knob::new("host.sender.tso", "on", "FreeBSD's default"),
        Knob::new("host.sink.lro", "off", "declared: the review does not tell the card"),
        Knob::new("duration", "5 s", "declared; iperf runs 10 s by itself"),
    ]
}
