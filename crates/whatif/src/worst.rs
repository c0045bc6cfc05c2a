//! The cures of what limited the worst connections of a report, tried in simulations of their transfers.

use core::convert::Infallible;
use core::num::NonZeroUsize;
use std::thread;

use ingest::diagnosis::{ConnectionReport, DiagnosisReport};
use ingest::inputs::CapturedConnection;
use runner::stop::NEVER;
use runner::workers::Workers;

use crate::{TriedCures, TriedFinding, try_cures};

/// Most bytes of captures whose packets are kept to try cures.
pub const MOST_CAPTURED: u64 = 256 << 20;
/// Most packets that are kept of a connection: more are not simulated.
pub const MOST_PACKETS: usize = 200_000;
/// Payload of the transfers that are simulated.
const TRANSFER: core::ops::RangeInclusive<u64> = 20_000..=200_000_000;
/// Most connections whose cures are tried, the worst first, and bytes of all of them: at least [`FEWEST_CONNECTIONS`] are.
const MOST_CONNECTIONS: usize = 64;
const MOST_BYTES: u64 = 100_000_000;
const FEWEST_CONNECTIONS: usize = 4;

/// Most findings of a connection whose cost is simulated.
const MOST_FINDINGS: usize = 4;
/// A finding that costs less than this part of the duration is not simulated: one of this number.
const LEAST_PART: u32 = 50;

/// A connection whose cures are tried.
struct CureTask<'a> {
    file: usize,
    number: usize,
    stream: &'a CapturedConnection,
    others: Vec<&'a CapturedConnection>,
    findings: Vec<TriedFinding>,
}

/// Tries the cures of the worst connections of a report that kept [`MOST_PACKETS`], on all processors. Their findings
/// have the costs that the simulations show from then on.
pub fn try_worst(report: &mut DiagnosisReport) {
    let mut connections: Vec<_> = (0..report.files.len())
        .flat_map(|file| (0..report.files[file].connections.len()).map(move |one| (file, one)))
        .filter(|&(file, number)| is_tried(&report.files[file].connections[number]))
        .collect();
    // Files, and connections in another order, have the worst anywhere.
    connections.sort_by_key(|&(file, number)| {
        core::cmp::Reverse(report.files[file].connections[number].rank())
    });
    let mut bytes = 0_u64;
    let within = connections.iter().take_while(|&&(file, number)| {
        bytes = bytes.saturating_add(report.files[file].connections[number].bytes);
        bytes <= MOST_BYTES
    });
    let number = within.count().clamp(FEWEST_CONNECTIONS, MOST_CONNECTIONS);
    connections.truncate(number);
    let tasks: Vec<_> =
        connections.into_iter().map(|(file, number)| task(report, file, number)).collect();
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let work = |task: &CureTask<'_>| {
        Ok::<_, Infallible>(try_cures(task.stream, &task.others, &task.findings, &NEVER))
    };
    let Ok(tried) = Workers::new(threads, &NEVER).map(&tasks, work);
    let places: Vec<_> = tasks.iter().map(|task| (task.file, task.number)).collect();
    for ((file, number), TriedCures { cures, proof }) in places.into_iter().zip(tried) {
        report.files[file].set_cures(number, cures, proof);
    }
}

/// Whether the cures of a connection are tried: it did not fail, and its packets were kept.
fn is_tried(one: &ConnectionReport) -> bool {
    let packets = one.analysis().packets.len();
    !one.failed && TRANSFER.contains(&one.bytes) && (1..MOST_PACKETS).contains(&packets)
}

/// The findings of a connection that may have limited it, the primary one first.
fn task(report: &DiagnosisReport, file: usize, number: usize) -> CureTask<'_> {
    let of_file = &report.files[file];
    let one = &of_file.connections[number];
    let diagnosis = of_file.diagnosis(one);
    let mut findings = diagnosis.findings;
    findings.retain(|found| {
        let is_primary = Some(found.code) == diagnosis.primary;
        is_primary || !found.is_failure && found.cost * u64::from(LEAST_PART) >= one.duration
    });
    findings.sort_by_key(|found| Some(found.code) != diagnosis.primary);
    findings.truncate(MOST_FINDINGS);
    let findings = findings.iter().map(|found| TriedFinding { code: found.code, kind: found.kind });
    let at_point = |other: &&CapturedConnection| {
        other.interface == one.stream.interface && other.stream() != one.stream.stream()
    };
    let shown = of_file.connections.iter().map(|one| &one.stream);
    let others = shown.chain(&of_file.left_out).filter(at_point).collect();
    CureTask { file, number, stream: &one.stream, others, findings: findings.collect() }
}
