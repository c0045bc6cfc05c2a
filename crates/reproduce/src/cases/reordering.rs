//! Case `reordering`: groups of packets arrive last first, because FreeBSD's LRO sorts by a hash
//! that is none. Every group looks like a loss.
//!
//! `world` is the one scenario of all rows and what is watched in it. Groups of rows: `cause` (the
//! sort), `base` (FreeBSD's default stack), `ramp` (what a threshold of five segments costs), `rack`
//! (its RACK stack, with its undos), `shorts` (many connections). `map` tells where each is fooled.

mod base;
mod cause;
pub(crate) mod map;
mod rack;
mod ramp;
mod shorts;
mod world;

use super::{CaseError, Knob, Measured, Stop};

/// The scenario of the case.
pub(crate) const SCENARIO: &str = include_str!("../../../../scenarios/reordering.toml");

/// Runs all groups of rows.
pub(super) fn measure(stop: Stop<'_>) -> Result<Measured, CaseError> {
    let mut rows = cause::rows(stop)?;
    rows.extend(base::rows(stop)?);
    rows.extend(ramp::rows(stop)?);
    rows.extend(rack::rows(stop)?);
    rows.extend(shorts::rows(stop)?);
    let exhibit = format!("{EXPLANATION}\n{}", map::table(stop)?);
    Ok(Measured { knobs: knobs(), rows, exhibit })
}

/// What happens.
const EXPLANATION: &str = "\
Why it stays slow
  LRO sorts the packets of an interrupt by the hash of the card. Where a driver marks garbage as
  valid, each packet has a key of its own, so none merge and the order is that of the garbage. A
  group of four that arrives last first gives three duplicate ACKs with SACK and then one ACK for all
  four. The third duplicate is a loss to FreeBSD's default stack: ssthresh becomes half of the first
  ten segments, and as soon as the window lets four packets go together the same happens again. All
  of it is false, for no packet is lost. Congestion avoidance alone would need about three minutes
  from five segments to what 1 Gbit/s hold in 45 ms.
  The ACK clock matters where groups are reversed one by one with no gap at all, as by a driver whose
  interrupts take fewer than five packets: the two duplicates before the third release a segment each
  (limited transmit), flights fall apart into runs of three, and a false recovery comes every five
  round trips in place of two.
  RACK waits a quarter of the round trip for what was passed, so only a longer gap fools it: in the
  first flight, and once more before the D-SACKs of what it sent again have widened its window. That
  leaves a threshold of a few segments, and congestion avoidance for the rest. D53832 sees
  that what was sent again is acknowledged sooner than half a round trip allows, and restores the
  threshold. The reverts of 14.3 do not help with the first: new data leaves in the recovery, and the
  D-SACKs come before it ends, when they are counted but not judged.
";

fn knobs() -> Vec<Knob> {
    vec![
        Knob::new("host.sender.profile", "freebsd-14.3", "declared"),
        Knob::new(
            "host.*.cc",
            "newreno",
            "the article's windows: halved, then one segment a round trip",
        ),
        Knob::new("path delay", "22.5 ms each way", "the article: round trip of about 45 ms"),
        Knob::new("path rate", "1 Gbit/s", "the article: a network of 1,000 Mbit/s"),
        Knob::new(
            "host.sink.lro.rss_hash",
            "decreasing over 4 packets",
            "inferred from the arrivals: what stood in the field is not told",
        ),
        Knob::new(
            "host.sink.delay",
            "125 us; varied",
            "declared: 8,000 interrupts a second, the limit of FreeBSD's igb (MAX_INTS_PER_SEC)",
        ),
        Knob::new(
            "reorder.gap",
            "0 to 22.5 ms from the first packet of a group to the last",
            "not stated; the axis of the rows",
        ),
        Knob::new(
            "reorder.timeout",
            "500 us beyond the gap from one packet of a group to the next",
            "declared: a group that gets no further packet for so long is complete; less than the gap \
             would take apart what the reversal itself spreads",
        ),
        Knob::new(
            "net.inet.tcp.sendspace",
            "8 MiB, fixed",
            "declared: more than the path holds, less than path and queue hold, so no packet is lost",
        ),
        Knob::new("net.inet.tcp.recvspace", "16 MiB", "declared: never the limit"),
        Knob::new(
            "net.inet.tcp.reass.maxqueuelen",
            "10,000",
            "declared: FreeBSD's 100 would drop at the sink what arrives out of order; a row has it",
        ),
        Knob::new(
            "rack.revert_unsent, rack.revert_duplicates",
            "off and on",
            "the kernel has no switch for the reverts of 14.3",
        ),
    ]
}
