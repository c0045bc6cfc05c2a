//! What TCP and QUIC connections have in common, for formats of other programs.

use diagnose::quic::rules::quic_rule;
use diagnose::rules::{Finding, Severity, rule};
use diagnose::socket::SocketLimit;
use diagnose::{Limiter, quic::QuicLimiter};
use units::Duration;

use super::captured_quic::findings as findings_of_captured;
use super::kernel::kernel_limit;
use super::{DiagnosisReport, FailOn, TriedCure};
use crate::inputs::CapturedQuicConnection;

/// A diagnosed connection.
#[derive(Debug)]
pub(super) struct ConnectionVerdict<'a> {
    /// Its file.
    pub(super) file: &'a str,
    /// Its number: Wireshark's `tcp.stream`, or the number of its trace in a qlog.
    pub(super) number: u32,
    /// Whether it is a QUIC connection.
    pub(super) is_quic: bool,
    /// Sender and receiver of the data, or the name of its trace.
    pub(super) transfer: String,
    /// Payload of the main direction.
    pub(super) bytes: u64,
    /// From the first to the last packet, in ns.
    pub(super) duration: Duration,
    /// Bytes per second.
    pub(super) goodput: f64,
    /// Smallest round trip, in ns.
    pub(super) round_trip: Option<Duration>,
    /// Time by limiter, in ns, with the names of the JSON.
    pub(super) budget: Vec<(&'static str, Duration)>,
    /// Code of the finding that limited it.
    pub(super) primary: Option<&'static str>,
    /// What limited it by the account of a kernel.
    pub(super) kernel: Option<SocketLimit>,
    /// Findings: failures first, then the costliest.
    pub(super) findings: Vec<Finding>,
    /// Findings of the direction with less data.
    pub(super) other_findings: Vec<Finding>,
    /// Cures of the primary finding that were tried.
    pub(super) cures: &'a [TriedCure],
    /// Why a condition cannot judge it; `None` if it can.
    pub(super) unjudged: Option<&'static str>,
}

impl ConnectionVerdict<'_> {
    /// Whether `finding` is the one that limited the connection.
    pub(super) fn is_primary(&self, finding: &Finding) -> bool {
        self.primary == Some(finding.code)
    }

    /// The cures of `finding` that were tried.
    pub(super) fn cures_of(&self, finding: &Finding) -> impl Iterator<Item = &TriedCure> {
        self.cures.iter().filter(move |cure| cure.finding == finding.code)
    }

    /// Code and name of the finding that limited it, else what did by the account of a kernel.
    pub(super) fn limited_by(&self) -> Option<String> {
        let Some(code) = self.primary else {
            return self.kernel.map(|limit| format!("kernel: {}", limit.name()));
        };
        let name = rule(code).map(|rule| rule.name);
        let name = name.or_else(|| quic_rule(code).map(|rule| rule.name)).unwrap_or_default();
        Some(format!("{code} {name}"))
    }
}

/// The connections of all files for a tool that fails on them: those of TCP and of QUIC in logs, in
/// the order of the text, then those of QUIC in captures.
pub(super) fn judged_verdicts(report: &DiagnosisReport, on: FailOn) -> Vec<ConnectionVerdict<'_>> {
    let mut all = verdicts_on(report, usize::MAX, Some(on));
    for file in &report.files {
        for one in &file.captured_quic {
            let analysis = &one.analysis;
            let findings = findings_of_captured(one, file);
            let limit = findings.iter().find(|found| found.severity > Severity::Note);
            let bytes = analysis.directions[analysis.main_dir() as usize].bytes;
            let duration = Duration::from_nanos(analysis.duration());
            all.push(ConnectionVerdict {
                file: &file.file.name,
                number: one.number,
                is_quic: true,
                transfer: format!("QUIC {} > {}", one.ends.src, one.ends.dst),
                bytes,
                duration,
                goodput: if duration.is_zero() {
                    0.0
                } else {
                    bytes as f64 / duration.as_secs_f64()
                },
                round_trip: None,
                budget: Vec::new(),
                primary: limit.map(|found| found.code),
                kernel: None,
                findings,
                other_findings: Vec::new(),
                cures: &[],
                unjudged: CapturedQuicConnection::unjudged_by(on),
            });
        }
    }
    all
}

/// The connections of all files, in the order of the text; at most `limit` of each file.
pub(super) fn verdicts(report: &DiagnosisReport, limit: usize) -> Vec<ConnectionVerdict<'_>> {
    verdicts_on(report, limit, None)
}

fn verdicts_on(
    report: &DiagnosisReport,
    limit: usize,
    on: Option<FailOn>,
) -> Vec<ConnectionVerdict<'_>> {
    let mut all = Vec::new();
    for file in &report.files {
        for one in file.connections.iter().take(limit) {
            let analysis = one.analysis();
            let (diagnosis, _) = file.explained(one, &analysis);
            let budget = diagnosis.course.budget;
            let other = file.explained_other_direction(one, &analysis);
            all.push(ConnectionVerdict {
                file: &file.file.name,
                number: analysis.stream,
                is_quic: false,
                transfer: one.transfer(&analysis),
                bytes: one.bytes,
                duration: one.duration,
                goodput: analysis.goodput(),
                round_trip: diagnosis.course.path.base_rtt,
                budget: Limiter::ALL.iter().map(|&of| (of.key(), budget.of(of))).collect(),
                primary: diagnosis.primary,
                kernel: kernel_limit(&analysis),
                findings: diagnosis.findings,
                other_findings: other.map_or_else(Vec::new, |other| other.findings),
                cures: &one.cures,
                unjudged: on.and_then(|on| one.unjudged_by(on)),
            });
        }
        for one in file.quic.iter().take(limit) {
            let analysis = &one.connection.analysis;
            let budget = &analysis.budget;
            all.push(ConnectionVerdict {
                file: &file.file.name,
                number: one.connection.number,
                is_quic: true,
                transfer: one.name(),
                bytes: analysis.bytes(),
                duration: Duration::from_nanos(analysis.duration()),
                goodput: analysis.goodput(),
                round_trip: analysis.round_trips.map(|[min, ..]| Duration::from_nanos(min)),
                budget: QuicLimiter::ALL
                    .iter()
                    .map(|&of| (of.key(), Duration::from_nanos(budget.of(of).ns)))
                    .collect(),
                primary: one.diagnosis.primary,
                kernel: None,
                findings: one.diagnosis.findings.clone(),
                other_findings: Vec::new(),
                cures: &one.cures,
                unjudged: on.and_then(|on| one.unjudged_by(on)),
            });
        }
    }
    all
}
