//! Case `reordering`: groups of packets arrive in reverse order, because FreeBSD's LRO sorts by an
//! invalid hash. Every group looks like a loss.
//!
//! `world` is the one scenario of all rows with its measurements. Groups of rows: `cause` (the
//! sort), `base` (FreeBSD's default stack), `ramp` (the cost of a threshold of five segments),
//! `rack` (its RACK stack, with its undos), `shorts` (many connections). `map` shows where each
//! stack enters a spurious recovery.

mod base;
mod cause;
pub(crate) mod map;
mod rack;
mod ramp;
mod shorts;
mod world;

use super::{CaseError, CaseInput, Measured, Workers, by, groups};

/// The scenario of the case.
pub(crate) const SCENARIO: &str = samples::text("reordering");

/// Runs all groups of rows.
pub(super) fn measure(workers: &Workers<'_>) -> Result<Measured, CaseError> {
    const DEFAULT: &str = "freebsd-14.3";
    let rows = groups(
        &[
            |workers| Ok(by(DEFAULT, cause::rows(workers)?)),
            |workers| Ok(by(DEFAULT, base::rows(workers)?)),
            |workers| Ok(by(DEFAULT, ramp::rows(workers)?)),
            rack::rows,
            shorts::rows,
        ],
        workers,
    )?;
    let exhibit = format!("{EXPLANATION}\n{}", map::table(workers)?);
    Ok(Measured { knobs: knobs(), rows, exhibit })
}

/// The explanation below the table.
const EXPLANATION: &str = "\
Why it stays slow
  LRO sorts the packets of an interrupt by the hash of the NIC. Where a driver marks garbage as
  valid, each packet has a key of its own, so none merge and the order is that of the garbage. A
  group of four in reverse order gives three duplicate ACKs with SACK and then one ACK for all four.
  The third duplicate is a loss to FreeBSD's default stack: ssthresh becomes half of the first ten
  segments, and the same happens as soon as the window allows four packets at once. Every recovery is
  spurious, since no packet is lost. Congestion avoidance alone would need about three minutes from
  five segments to the bandwidth-delay product of 1 Gbit/s and 45 ms.
  The ACK clock matters where groups are reversed one by one with no gap at all, as by a driver whose
  interrupts take fewer than five packets: the two duplicates before the third release a segment each
  (limited transmit), flights split into runs of three, and there is a spurious recovery every five
  round trips instead of two.
  RACK waits a quarter of the RTT for a passed packet, so only a longer gap causes a spurious
  recovery: in the first flight, and once more before the D-SACKs of its retransmissions have widened
  its window. That leaves a threshold of a few segments, and congestion avoidance for the rest.
  D53832 detects that a retransmission is acknowledged sooner than half an RTT allows, and restores
  the threshold. The reverts of 14.3 do not help with the first: new data is sent during recovery,
  and the D-SACKs arrive before its end, when they are counted but not evaluated.
";

fn knobs() -> Vec<CaseInput> {
    vec![
        CaseInput::new("host.sender.profile", "freebsd-14.3", "declared"),
        CaseInput::new(
            "host.*.cc",
            "newreno",
            "the article's windows: halved, then one segment per round trip",
        ),
        CaseInput::new("path delay", "22.5 ms each way", "the article: round trip of about 45 ms"),
        CaseInput::new("path rate", "1 Gbit/s", "the article: a network of 1,000 Mbit/s"),
        CaseInput::new(
            "host.sink.lro.rss_hash",
            "decreasing over 4 packets",
            "inferred from the arrivals: the value of the field is not stated",
        ),
        CaseInput::new(
            "host.sink.delay",
            "125 us; varied",
            "declared: 8,000 interrupts a second, the limit of FreeBSD's igb (MAX_INTS_PER_SEC)",
        ),
        CaseInput::new(
            "reorder.gap",
            "0 to 22.5 ms from the first packet of a group to the last",
            "not stated; the axis of the rows",
        ),
        CaseInput::new(
            "reorder.timeout",
            "500 us beyond the gap from one packet of a group to the next",
            "declared: a group without a further packet for this time is complete; less than the gap \
             would split groups that the reversal itself spreads",
        ),
        CaseInput::new(
            "net.inet.tcp.sendspace",
            "8 MiB, fixed",
            "declared: above the capacity of the path, below that of path and queue, so no packet is lost",
        ),
        CaseInput::new("net.inet.tcp.recvspace", "16 MiB", "declared: never the limit"),
        CaseInput::new(
            "net.inet.tcp.reass.maxqueuelen",
            "10,000",
            "declared: with FreeBSD's 100 the sink would drop out-of-order data; one row uses it",
        ),
        CaseInput::new(
            "rack.revert_unsent, rack.revert_duplicates",
            "off and on",
            "the kernel has no switch for the reverts of 14.3",
        ),
    ]
}
