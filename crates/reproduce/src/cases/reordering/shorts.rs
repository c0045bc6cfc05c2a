//! Many short connections in sequence, and the effect of the host cache on them.

use units::Bytes;

use super::rack::{BASE, MAIN, NONE, StackVariant, gap};
use super::world::{Order, ReorderingRun, run_order};
use crate::cases::{CaseError, CaseRow, Workers};

/// Number of connections, and the size of each.
const CONNECTIONS: u32 = 20;
const SIZE: &str = "flow.0.requests.response=1MB";
/// `t_maxseg` of the path, and the bytes that tcp_discardcb adds for the headers.
const MAXSEG: u64 = 1_460;
const HEADERS: u64 = 40;

/// The threshold that tcp_discardcb stores, if it was below half of the send buffer (8 MiB here):
/// whole segments, rounded, with their headers.
fn stored(ssthresh: Bytes) -> Option<u64> {
    let segments = ((ssthresh.get() + MAXSEG / 2) / MAXSEG).max(2);
    (ssthresh.get() < (8 << 20) / 2).then_some(segments * (MAXSEG + HEADERS))
}

/// One connection that starts with this threshold in the cache.
fn one(
    order: Order,
    stack: StackVariant,
    cached: Option<u64>,
    workers: &Workers<'_>,
) -> Result<ReorderingRun, CaseError> {
    let knob = cached.map(|bytes| format!("host.sender.knobs.\"hostcache.ssthresh\"=\"{bytes}B\""));
    let set: Vec<&str> = stack.set.iter().copied().chain([SIZE]).chain(knob.as_deref()).collect();
    run_order(order, &set, workers)
}

/// Goodput over all connections in Mbit/s, and the threshold in the cache at the end.
fn run(
    stack: StackVariant,
    cache: bool,
    workers: &Workers<'_>,
) -> Result<(f64, Option<u64>), CaseError> {
    let mut cached: Option<u64> = None;
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for _ in 0..CONNECTIONS {
        let seen = one(gap(15_000), stack, cached, workers)?;
        bytes += seen.bytes.get() as f64;
        seconds += seen.duration.as_secs_f64();
        // tcp_hc_update: the mean of the cached and the new value.
        let new = seen.ssthresh.and_then(stored).filter(|_| cache);
        cached = match (cached, new) {
            (Some(old), Some(new)) => Some(u64::midpoint(old, new)),
            (old, new) => new.or(old),
        };
    }
    Ok((bytes * 8.0 / seconds / 1e6, cached))
}

pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    let variants: Vec<(StackVariant, bool)> =
        [BASE, NONE, MAIN].into_iter().flat_map(|stack| [(stack, false), (stack, true)]).collect();
    let rows = workers.map(&variants, |&(stack, cache)| {
        let (goodput, cached) = run(stack, cache, workers)?;
        let with = if cache { "with" } else { "without" };
        let name = format!("{}, gap 15 ms: {CONNECTIONS} x 1 MB {with} the host cache", stack.name);
        let note = match cached {
            Some(bytes) => format!("the cache holds {bytes} B at the end"),
            None if cache => "the cache holds no threshold: none was set at the end".to_owned(),
            None => "published: \"each time ... it would start a new TCP connection, once again \
                     hitting the same issues\""
                .to_owned(),
        };
        let row = CaseRow::predicted(name, "Mbit/s", None, Some(goodput)).note(note);
        let mut rows = vec![row.by(stack.profile())];
        if cached.is_some() {
            let seen = one(Order::Kept, stack, cached, workers)?;
            let fresh = one(Order::Kept, stack, None, workers)?;
            rows.push(
                CaseRow::predicted(
                    format!("{}, then 1 MB in order: with that cache / without", stack.name),
                    "%",
                    None,
                    Some(100.0 * seen.goodput() / fresh.goodput()),
                )
                .note(AFTERWARDS)
                .by(stack.profile()),
            );
        }
        Ok::<_, CaseError>(rows)
    })?;
    Ok(rows.concat())
}

/// The effect that remains after the driver is fixed.
const AFTERWARDS: &str = "\
after the driver is fixed: the base stack starts in congestion avoidance at the cached threshold (kept \
up to an hour); RACK raises a cached threshold to the peer's window (rack_cc_conn_init)";
