//! The cures of what limited the worst connections of a report, tried in simulations of their transfers.

use core::convert::Infallible;
use core::num::NonZeroUsize;
use std::thread;

use ingest::diagnosis::{ConnectionReport, DiagnosisReport};
use ingest::inputs::CapturedConnection;
use runner::stop::NEVER;
use runner::workers::Workers;

use crate::try_cures;

/// Most bytes of captures whose packets are kept to try cures.
pub const MOST_CAPTURED: u64 = 256 << 20;
/// Most packets that are kept of a connection: more are not simulated.
pub const MOST_PACKETS: usize = 200_000;
/// Payload of the transfers that are simulated.
const TRANSFER: core::ops::RangeInclusive<u64> = 100_000..=200_000_000;
/// Most connections whose cures are tried, the worst first.
const MOST_CONNECTIONS: usize = 4;

/// Tries the cures of the worst connections of a report that kept [`MOST_PACKETS`], on all processors.
pub fn try_worst(report: &mut DiagnosisReport) {
    let is_tried = |one: &&mut ConnectionReport| {
        let packets = one.analysis().packets.len();
        !one.failed && TRANSFER.contains(&one.bytes) && (1..MOST_PACKETS).contains(&packets)
    };
    let connections = report.files.iter_mut().flat_map(|file| &mut file.connections);
    let connections: Vec<_> = connections
        .filter(|one| one.primary.is_some())
        .filter(is_tried)
        .take(MOST_CONNECTIONS)
        .collect();
    let tasks: Vec<_> =
        connections.iter().filter_map(|one| Some((&one.stream, one.primary?))).collect();
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let work = |&(stream, code): &(&CapturedConnection, &'static str)| {
        Ok::<_, Infallible>(try_cures(stream, code, &NEVER))
    };
    let Ok(tried) = Workers::new(threads, &NEVER).map(&tasks, work);
    for (one, cures) in connections.into_iter().zip(tried) {
        one.cures = cures;
    }
}
