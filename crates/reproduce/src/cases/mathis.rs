//! Case `mathis`: QUIC NewReno on a lossy link, compared with the formula of Mathis, and the effect
//! of two extra round trips per cycle.
//!
//! `world` is the one scenario of all rows with its measurements. Groups of rows: `theory`
//! (the formulas), `headline` (the table of the document), `cycle` (the limit cycles, round trip by
//! round trip), `scaling` (RTT and loss rate), `delayed` (the three quarters of the document),
//! `sensitivity` (one rule of the sender at a time).

mod cycle;
mod delayed;
mod headline;
mod scaling;
mod sensitivity;
mod theory;
mod world;

use super::{CaseError, CaseInput, Measured, Workers, by, groups};

/// The scenario of the case.
pub(crate) const SCENARIO: &str = samples::text("mathis");

/// The path of the document: 2 ms, one packet in 50 lost.
pub(crate) fn document_path() -> Result<::theory::Path, CaseError> {
    theory::path(units::Duration::from_millis(2), 50)
}

/// Runs all groups of rows.
pub(super) fn measure(workers: &Workers<'_>) -> Result<Measured, CaseError> {
    let rows = groups(
        &[headline::rows, cycle::rows, scaling::rows, delayed::rows, sensitivity::rows],
        workers,
    )?;
    let mut all = theory::rows()?;
    all.extend(by("quic-inet-2025-02", rows));
    let rows = all;
    let exhibit = format!("{}\n{EXPLANATION}", scaling::grid(workers)?);
    Ok(Measured { knobs: knobs(), rows, exhibit })
}

/// The explanation below the table.
const EXPLANATION: &str = "\
Why the formula is too high, and random loss gives more than periodic loss
  The formula's sawtooth halves and grows at once. A real sender detects the loss after one round
  trip, and then waits another one for the first packet sent after that: b = 2. A receiver that
  acknowledges every second packet delays the last ACK of an odd flight by a round trip, which delays
  an increase in some cycles. The window consists of whole packets: periodic loss locks into a
  cycle of exactly 50 delivered packets in 7 or 8 round trips, a little below the formula. Random
  loss has long cycles as well as short ones, and a long cycle sends more than its share.
";

fn knobs() -> Vec<CaseInput> {
    let inet = "INET 58f2b31929, the commit that has this example";
    vec![
        CaseInput::new("host.*.profile", "quic-inet-2025-02", inet),
        CaseInput::new("host.*.mtu", "1280 B", "the document; 1252 B per QUIC packet"),
        CaseInput::new("path", "100 Gbit/s, 200 packets, 1 ms each way", "the document"),
        CaseInput::new(
            "loss",
            "50 pass and the 51st is lost, or 2 % at random; ACKs are not lost",
            "the document; applied in the sender's UDP socket, before the link",
        ),
        CaseInput::new("numReceivedAckElicitingsBeforeAck", "1 or 2", "the document"),
        CaseInput::new(
            "accurateIncreaseInNewRenoCongestionAvoidance",
            "true, as in the profile",
            "the document",
        ),
        CaseInput::new(
            "bundleAckForNonAckElicitingPackets",
            "false, as in the profile",
            "the document",
        ),
        CaseInput::new(
            "max_ack_ranges",
            "16; INET reports all gaps of the connection",
            "declared: a loss is detected within three packets, older ranges add nothing",
        ),
        CaseInput::new("sendQueueLimit", "50 MB", "the document"),
        CaseInput::new("flow.start", "2 s", inet),
        CaseInput::new(
            "measured",
            "bytes of QUIC packets at the server over 9 s, from 1 s after the start",
            "inferred from INET's scripts for its sister examples; any later start gives the same",
        ),
        CaseInput::new("PPP header", "left out: 7 B of 1287", "0.6 ns at this rate"),
    ]
}
