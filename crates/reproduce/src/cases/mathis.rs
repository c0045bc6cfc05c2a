//! Case `mathis`: QUIC NewReno on a link that loses packets, against the formula of Mathis and what
//! two round trips a cycle do to it.
//!
//! `world` is the one scenario of all rows and what is measured in it. Groups of rows: `theory`
//! (the formulas), `headline` (the table of the document), `cycle` (the limit cycles, round trip by
//! round trip), `scaling` (the round trip and the loss), `delayed` (the seed's three quarters),
//! `sensitivity` (one rule of the sender at a time).

mod cycle;
mod delayed;
mod headline;
mod scaling;
mod sensitivity;
mod theory;
mod world;

use super::{CaseError, Knob, Measured, Stop};

/// The scenario of the case.
pub(crate) const SCENARIO: &str = include_str!("../../../../scenarios/mathis.toml");

/// The path of the document: 2 ms, one packet in 50 lost.
pub(crate) fn document_path() -> Result<::theory::Path, CaseError> {
    theory::path(units::Duration::from_millis(2), 50)
}

/// Runs all groups of rows.
pub(super) fn measure(stop: Stop<'_>) -> Result<Measured, CaseError> {
    let mut rows = theory::rows()?;
    rows.extend(headline::rows(stop)?);
    rows.extend(cycle::rows(stop)?);
    rows.extend(scaling::rows(stop)?);
    rows.extend(delayed::rows(stop)?);
    rows.extend(sensitivity::rows(stop)?);
    let exhibit = format!("{}\n{EXPLANATION}", scaling::grid(stop)?);
    Ok(Measured { knobs: knobs(), rows, exhibit })
}

/// What happens.
const EXPLANATION: &str = "\
Why the formula is too high, and random loss faster than periodic loss
  The formula's sawtooth halves and grows again at once. A sender must first hear of the loss, one
  round trip, and then waits for the first packet it sent after that, another one: b = 2. A receiver
  that acknowledges every second packet holds the last of an odd flight back for a round trip, which
  delays an increase in some cycles. The window is made of whole packets: periodic loss locks into a
  cycle of exactly 50 delivered packets in 7 or 8 round trips, a little below the formula. Random
  loss has long cycles as well as short ones, and a long cycle sends more than its share.
";

fn knobs() -> Vec<Knob> {
    let inet = "INET 58f2b31929, the commit that has this example";
    vec![
        Knob::new("host.*.profile", "quic-inet-2025-02", inet),
        Knob::new("host.*.mtu", "1280 B", "the document; 1252 B per QUIC packet"),
        Knob::new("path", "100 Gbit/s, 200 packets, 1 ms each way", "the document"),
        Knob::new(
            "loss",
            "50 pass and the 51st is lost, or 2 % at random; ACKs are spared",
            "the document; applied in the sender's UDP socket, so before the line",
        ),
        Knob::new("numReceivedAckElicitingsBeforeAck", "1 or 2", "the document"),
        Knob::new(
            "accurateIncreaseInNewRenoCongestionAvoidance",
            "true, as in the profile",
            "the document",
        ),
        Knob::new("bundleAckForNonAckElicitingPackets", "false, as in the profile", "the document"),
        Knob::new(
            "max_ack_ranges",
            "16; INET tells of all gaps there ever were",
            "declared: a loss is found within three packets, older ranges say nothing new",
        ),
        Knob::new("sendQueueLimit", "50 MB", "the document"),
        Knob::new("flow.start", "2 s", inet),
        Knob::new(
            "measured",
            "bytes of QUIC packets at the server over 9 s, from 1 s after the start",
            "inferred from INET's scripts for its sister examples; any later start gives the same",
        ),
        Knob::new("PPP header", "left out: 7 B of 1287", "0.6 ns at this rate"),
    ]
}
