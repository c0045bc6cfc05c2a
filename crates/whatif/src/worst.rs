//! The cures of what limited the worst connections of a report, tried in simulations of their transfers.

use core::convert::Infallible;

use ingest::diagnosis::{ConnectionReport, DiagnosisReport};
use ingest::inputs::CapturedConnection;
use runner::workers::Workers;

use crate::tried::untried;
use crate::{TriedCures, TriedFinding, try_cures, try_quic_cures};

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

/// Tries the cures of the worst connections of a report that kept [`MOST_PACKETS`], on the threads of
/// `workers`; the result is the same for any number of them. Their findings have the costs that the simulations show
/// from then on.
pub fn try_worst(report: &mut DiagnosisReport, workers: &Workers<'_>) {
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
    let others = connections.split_off(number.min(connections.len()));
    others.into_iter().for_each(|place| leave_out(report, place, MANY));
    leave_out_large(report);
    let tasks: Vec<_> =
        connections.into_iter().map(|(file, number)| task(report, file, number)).collect();
    let work = |task: &CureTask<'_>| {
        Ok::<_, Infallible>(try_cures(task.stream, &task.others, &task.findings, workers))
    };
    let Ok(tried) = workers.map(&tasks, work);
    let places: Vec<_> = tasks.iter().map(|task| (task.file, task.number)).collect();
    for ((file, number), TriedCures { cures, proof }) in places.into_iter().zip(tried) {
        report.files[file].set_cures(number, cures, proof);
    }
    try_quic(report, workers);
}

/// Tries the cures of the worst logs of QUIC, whose data were kept.
fn try_quic(report: &mut DiagnosisReport, workers: &Workers<'_>) {
    let mut connections: Vec<_> = (0..report.files.len())
        .flat_map(|file| (0..report.files[file].quic.len()).map(move |one| (file, one)))
        .filter_map(|(file, number)| {
            let one = &report.files[file].quic[number];
            let primary = one.diagnosis.primary?;
            let found = one.diagnosis.findings.iter().find(|found| found.code == primary)?;
            let finding = TriedFinding { code: primary, kind: found.kind };
            let bytes = one.connection.analysis.bytes();
            TRANSFER.contains(&bytes).then_some((file, number, finding, one.diagnosis.cost()))
        })
        .collect();
    connections.sort_by_key(|&(.., cost)| core::cmp::Reverse(cost));
    connections.truncate(MOST_CONNECTIONS);
    let work = |&(file, number, finding, _): &(usize, usize, TriedFinding, _)| {
        let connection = &report.files[file].quic[number].connection;
        Ok::<_, Infallible>(try_quic_cures(connection, finding, workers))
    };
    let Ok(tried) = workers.map(&connections, work);
    for (&(file, number, ..), cures) in connections.iter().zip(tried) {
        report.files[file].quic[number].cures = cures;
    }
}

/// Why cures were not tried.
const MANY: &str = "not tried: only those of the 64 worst connections are, of 100 MB together; --flow N tries those of one";
const LARGE: &str = "not tried: transfers above 200 MB or 200,000 packets are not simulated";

/// Says of a connection why its cures were not tried.
fn leave_out(report: &mut DiagnosisReport, (file, number): (usize, usize), why: &str) {
    let one = &mut report.files[file].connections[number];
    one.cures.extend(one.primary.and_then(|code| untried(code, why)));
}

/// Says so of connections that are larger than what is simulated.
fn leave_out_large(report: &mut DiagnosisReport) {
    for file in 0..report.files.len() {
        for number in 0..report.files[file].connections.len() {
            let one = &report.files[file].connections[number];
            let is_large =
                one.bytes > *TRANSFER.end() || one.analysis().packets.len() >= MOST_PACKETS;
            if is_large && !one.failed {
                leave_out(report, (file, number), LARGE);
            }
        }
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
