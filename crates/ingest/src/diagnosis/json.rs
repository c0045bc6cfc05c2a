//! A diagnosis as JSON.

use std::io;

use diagnose::rules::{EvidenceItem, EvidenceValue, Finding, help_by_system};
use diagnose::{Analysis, Limiter};
use packet::Dir;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use units::Duration;

use super::beside::QuicBesideReport;
use super::both_ends::QuicPairReport;
use super::captured_quic::CapturedQuicJson;
use super::cures::CureJson;
use super::exchange::{ExchangeJson, ServerJson, servers};
use super::groups::{ConnectionGroup, groups};
use super::host::HostJson;
use super::joined::CapturePairReport;
use super::kernel::{KernelJson, kernel_json};
use super::negotiated::NegotiatedJson;
use super::quic::QuicJson;
use super::{ConnectionReport, DiagnosisReport, FileReport};
use crate::pasted::PastedReport;

/// Version of the JSON format; a new field does not change it, a changed or removed one does.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct FileJson<'a> {
    format: u32,
    ackclock: &'static str,
    file: &'a str,
    frames: u64,
    problems: &'a [String],
    /// Connections by server and cause; absent if nothing limited any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<ConnectionGroup>,
    /// Servers that answered requests; absent if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    servers: Vec<ServerJson>,
    connections: ConnectionsJson<'a>,
    /// What the counters of a host show; absent without counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<HostJson<'a>>,
    /// Connections of QUIC, from logs; absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quic: Vec<QuicJson<'a>>,
    /// QUIC connections of a capture; absent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    captured_quic: Vec<CapturedQuicJson>,
    /// Connections whose secrets were given although none of them is in the capture; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    unmatched_secrets: Option<u64>,
    /// Comparisons with other captures of the same transfers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    joined: Vec<&'a CapturePairReport>,
    /// Comparisons with the log of the other endpoint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    joined_quic: Vec<&'a QuicPairReport>,
    /// Comparisons of a log with a capture.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quic_beside: Vec<&'a QuicBesideReport>,
}

/// The documents of files, as a list.
#[derive(Serialize)]
#[serde(transparent)]
pub struct DocumentsJson<'a>(Vec<FileJson<'a>>);

/// The first connections of a file; each is diagnosed when it is written.
struct ConnectionsJson<'a> {
    report: &'a FileReport,
    limit: usize,
}

impl Serialize for ConnectionsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { report, limit } = *self;
        let shown = report.connections.iter().take(limit);
        serializer.collect_seq(shown.map(|one| connection_json(report, one)))
    }
}

#[derive(Serialize)]
struct ConnectionJson {
    id: u32,
    client: String,
    server: String,
    sender: &'static str,
    captured_at: &'static str,
    bytes: u64,
    captured_bytes: CapturedBytesJson,
    duration_s: f64,
    goodput_bps: f64,
    packets: u64,
    retransmitted_packets: u64,
    spurious_packets: u64,
    base_rtt_s: Option<f64>,
    mss_bytes: u64,
    negotiated: NegotiatedJson,
    time_budget: BudgetJson,
    /// Profiles that match the sender, the best first.
    profile_guess: Vec<GuessJson>,
    primary: Option<&'static str>,
    findings: Vec<FindingJson>,
    /// Cures of the primary finding; absent unless some were tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cures: Vec<CureJson>,
    /// Absent without data.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<ExchangeJson>,
    /// Absent if the other direction is no transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_direction: Option<OtherDirectionJson>,
    /// By the hosts' kernels; absent without an account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kernels: Vec<KernelJson>,
}

/// The direction with less data.
#[derive(Serialize)]
struct OtherDirectionJson {
    sender: &'static str,
    captured_at: &'static str,
    bytes: u64,
    time_budget: BudgetJson,
    primary: Option<&'static str>,
    findings: Vec<FindingJson>,
}

/// Distinct bytes captured from each host.
#[derive(Serialize)]
struct CapturedBytesJson {
    client: u64,
    server: u64,
}

#[derive(Serialize)]
struct GuessJson {
    profile: &'static str,
    cc: &'static str,
    fits: bool,
    misfit: f64,
    rounds: usize,
    slow_start_only: bool,
}

struct BudgetJson(diagnose::TimeBudget);

impl Serialize for BudgetJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Limiter::ALL.len()))?;
        for limiter in Limiter::ALL {
            let key = format!("{}_s", limiter.key());
            map.serialize_entry(&key, &self.0.of(limiter).as_secs_f64())?;
        }
        map.end()
    }
}

#[derive(Serialize)]
pub(super) struct FindingJson {
    code: &'static str,
    /// Absent where the code says all.
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    severity: &'static str,
    confidence: &'static str,
    title: String,
    cost_s: f64,
    interval_s: [f64; 2],
    frames: [u64; 2],
    /// A display filter of Wireshark; absent for logs.
    #[serde(skip_serializing_if = "String::is_empty")]
    filter: String,
    evidence: EvidenceJson,
    cause: String,
    help: HelpJson,
    /// The part of it that concerns the hosts.
    applicable_help: HelpJson,
    unseen: String,
}

struct EvidenceJson(Vec<EvidenceItem>);

impl Serialize for EvidenceJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for one in &self.0 {
            match &one.value {
                EvidenceValue::Number(value) => map.serialize_entry(one.key, value)?,
                EvidenceValue::Count(value) => map.serialize_entry(one.key, value)?,
                EvidenceValue::List(values) => map.serialize_entry(one.key, values)?,
            }
        }
        map.end()
    }
}

struct HelpJson(Vec<(&'static str, String)>);

impl Serialize for HelpJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (system, what) in &self.0 {
            map.serialize_entry(&system.to_ascii_lowercase(), what)?;
        }
        map.end()
    }
}

impl DiagnosisReport {
    /// Formats the report as JSON: see [`write_json`](Self::write_json).
    pub fn json(&self, limit: usize) -> String {
        let mut text = Vec::new();
        // Nothing fails in memory.
        let _ = self.write_json(limit, &mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    /// Writes the report as one JSON document, connection by connection: an object for one file, an
    /// array for several. `limit` is the most connections of each file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, limit: usize, mut out: impl io::Write) -> io::Result<()> {
        let DocumentsJson(files) = self.documents(limit);
        match files.as_slice() {
            [one] => serde_json::to_writer_pretty(&mut out, one)?,
            _ => serde_json::to_writer_pretty(&mut out, &files)?,
        }
        out.write_all(b"\n")
    }

    /// The list of its documents, one for each file with at most `limit` connections.
    pub fn documents(&self, limit: usize) -> DocumentsJson<'_> {
        let files = self
            .files
            .iter()
            .map(|file| {
                let of_file = |pair: &&CapturePairReport| pair.has(&file.file.name);
                FileJson {
                    joined: self.joined.iter().filter(of_file).collect(),
                    joined_quic: self
                        .both_ends
                        .iter()
                        .filter(|pair| pair.has(&file.file.name))
                        .collect(),
                    quic_beside: self
                        .beside
                        .iter()
                        .filter(|pair| pair.has(&file.file.name))
                        .collect(),
                    ..file_json(file, limit)
                }
            })
            .collect();
        DocumentsJson(files)
    }
}

/// A document of a recording or of a pasted text.
#[derive(Serialize)]
#[serde(untagged)]
enum DocumentJson<'a, T> {
    File(Box<FileJson<'a>>),
    Text(T),
}

/// Writes the documents of recordings, with at most `limit` connections each, and of pasted texts with
/// their names: of one file its own, of several a list.
///
/// # Errors
/// Those of `out`.
pub fn write_documents(
    report: Option<&DiagnosisReport>,
    texts: &[(String, PastedReport)],
    limit: usize,
    mut out: impl io::Write,
) -> io::Result<()> {
    let files = report.map_or_else(Vec::new, |report| report.documents(limit).0);
    let files = files.into_iter().map(|file| DocumentJson::File(Box::new(file)));
    let texts = texts.iter().map(|(name, text)| DocumentJson::Text(text.document(name)));
    let all: Vec<_> = files.chain(texts).collect();
    match all.as_slice() {
        [one] => serde_json::to_writer_pretty(&mut out, one)?,
        _ => serde_json::to_writer_pretty(&mut out, &all)?,
    }
    out.write_all(b"\n")
}

fn file_json(report: &FileReport, limit: usize) -> FileJson<'_> {
    FileJson {
        format: FORMAT,
        ackclock: env!("CARGO_PKG_VERSION"),
        file: &report.file.name,
        frames: report.file.frames,
        problems: &report.file.problems.first,
        groups: groups(report),
        servers: servers(report),
        connections: ConnectionsJson { report, limit },
        host: report.file.host_counters.as_deref().map(HostJson::of),
        quic: report.quic.iter().take(limit).map(super::QuicReport::json).collect(),
        captured_quic: report
            .captured_quic
            .iter()
            .take(limit)
            .map(|one| CapturedQuicJson::of(one, report))
            .collect(),
        unmatched_secrets: super::captured_quic::unmatched_secrets(report),
        joined: Vec::new(),
        joined_quic: Vec::new(),
        quic_beside: Vec::new(),
    }
}

fn connection_json(report: &FileReport, one: &ConnectionReport) -> ConnectionJson {
    let analysis = &*one.analysis();
    let (diagnosis, guesses) = report.explained(one, analysis);
    let flow = analysis.main();
    let [client, server] = one.ends(analysis);
    let counts = flow.map(|flow| flow.counts).unwrap_or_default();
    let captured = |dir: Dir| analysis.flows[dir as usize].as_ref().map_or(0, |flow| flow.captured);
    ConnectionJson {
        id: analysis.stream,
        client,
        server,
        sender: if analysis.main_dir() == Dir::Forward { "client" } else { "server" },
        captured_at: flow.map_or("unknown", |flow| flow.point.name()),
        bytes: analysis.bytes(),
        captured_bytes: CapturedBytesJson {
            client: captured(Dir::Forward),
            server: captured(Dir::Reverse),
        },
        duration_s: analysis.duration().as_secs_f64(),
        goodput_bps: analysis.goodput() * 8.0,
        packets: counts.new + counts.retransmitted,
        retransmitted_packets: counts.retransmitted,
        spurious_packets: counts.spurious,
        base_rtt_s: diagnosis.course.path.base_rtt.map(Duration::as_secs_f64),
        mss_bytes: flow.map_or(0, |flow| flow.mss),
        negotiated: NegotiatedJson::of(analysis),
        time_budget: BudgetJson(diagnosis.course.budget),
        profile_guess: guesses.iter().map(guess_json).collect(),
        primary: diagnosis.primary,
        findings: diagnosis
            .findings
            .into_iter()
            .map(|found| finding_json(found, analysis.stream))
            .collect(),
        cures: one.cures.iter().map(CureJson::of).collect(),
        exchange: ExchangeJson::of(analysis),
        other_direction: other_direction(report, one, analysis),
        kernels: kernel_json(analysis),
    }
}

fn other_direction(
    report: &FileReport,
    one: &ConnectionReport,
    analysis: &Analysis,
) -> Option<OtherDirectionJson> {
    let other = report.explained_other_direction(one, analysis)?;
    let dir = analysis.main_dir().reversed();
    let flow = analysis.flows[dir as usize].as_deref()?;
    let found = other.findings.into_iter();
    Some(OtherDirectionJson {
        sender: if dir == Dir::Forward { "client" } else { "server" },
        captured_at: flow.point.name(),
        bytes: flow.bytes,
        time_budget: BudgetJson(other.course.budget),
        primary: other.primary,
        findings: found.map(|found| finding_json(found, analysis.stream)).collect(),
    })
}

fn guess_json(guess: &fit::Guess) -> GuessJson {
    let &fit::Guess { profile, cc, misfit, rounds, slow_start_only } = guess;
    GuessJson { profile, cc, fits: guess.fits(), misfit, rounds, slow_start_only }
}

fn finding_json(found: Finding, stream: u32) -> FindingJson {
    let filter = found.filter(stream);
    FindingJson { filter, ..FindingJson::of_event(found) }
}

impl FindingJson {
    /// A finding without a filter; its frames are events of a log.
    pub(super) fn of_event(found: Finding) -> Self {
        let (from, to) = found.interval;
        Self {
            code: found.code,
            kind: found.kind,
            severity: found.severity.name(),
            confidence: found.confidence.name(),
            title: found.title,
            cost_s: found.cost.as_secs_f64(),
            interval_s: [from.as_secs_f64(), to.as_secs_f64()],
            frames: [found.frames.0, found.frames.1],
            filter: String::new(),
            evidence: EvidenceJson(found.evidence),
            cause: found.cause,
            help: HelpJson(help_by_system(found.help.all)),
            applicable_help: HelpJson(found.help.applicable_by_system()),
            unseen: found.unseen,
        }
    }
}
