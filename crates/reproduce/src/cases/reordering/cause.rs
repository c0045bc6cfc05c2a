//! The cause: LRO sorts by a hash that the driver wrongly marks as valid.

use super::world::{Order, ReorderingRun, run_order};
use crate::cases::{CaseError, CaseRow, Workers};

/// The first burst as passed to the sink's stack: `P4 P3 P2 P1`; `P1-P10` is one aggregate.
fn order(seen: &ReorderingRun) -> Option<String> {
    let first = seen.handed.iter().map(|&(seq, _)| seq).min()?;
    let name = |&(seq, packets): &(u32, u16)| {
        let number = (seq - first) / MSS + 1;
        match packets {
            1 => format!("P{number}"),
            _ => format!("P{number}-P{}", number + u32::from(packets) - 1),
        }
    };
    Some(seen.handed.iter().map(name).collect::<Vec<_>>().join(" "))
}

/// Payload of a full segment with timestamps.
const MSS: u32 = 1_448;

/// Only the first burst.
const BURST: [&str; 3] = [
    "flow.0.requests.response=14480B",
    "duration=130ms",
    "tap=[{ host = \"sink\", at = \"stack\" }]",
];

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let burst = |set: &[&str]| {
        let seen = run_order(Order::LRO, &[&BURST, set].concat(), workers)?;
        Ok::<_, CaseError>(order(&seen))
    };
    let hash = |hash: &str| format!("host.sink.lro.rss_hash={hash}");
    let constant = hash("{ constant = 0 }");
    let good = hash("\"flow\"");
    Ok(vec![
        CaseRow::text(
            "first burst through LRO, hash counting down over four",
            "P4 P3 P2 P1 P8 P7 P6 P5 P10 P9",
            burst(&[])?,
        )
        .note("the sort of tcp_lro_flush_all over one interrupt's packets; nothing merges"),
        CaseRow::predicted_text("the same, the hash always 0", burst(&[&constant])?)
            .note("a constant value is harmless: one aggregate, as with a valid hash"),
        CaseRow::predicted_text("the same, a good hash", burst(&[&good])?)
            .note("a constant value is harmless: one aggregate, as with a valid hash"),
    ])
}
