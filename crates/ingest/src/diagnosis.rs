//! Diagnosed connections with their findings, worst first.
//!
//! [`DiagnosisReport::of`] diagnoses what [`crate::inputs::read`] returned;
//! [`DiagnosisReport::answer`] names in one line what limits the worst of them;
//! [`DiagnosisReport::text`] formats all like compiler diagnostics, [`DiagnosisReport::json`] for
//! programs, [`DiagnosisReport::junit`], [`DiagnosisReport::sarif`],
//! [`DiagnosisReport::markdown`] and [`DiagnosisReport::openmetrics`] in the formats of other tools;
//! [`explain`] gives the background of a code.

mod answer;
mod beside;
mod both_ends;
mod captured_quic;
mod csv_table;
mod cures;
mod exchange;
mod explain;
mod filter_expression;
mod groups;
mod help;
mod host;
mod joined;
mod json;
mod judged;
mod junit;
mod kernel;
mod limits;
mod markdown;
mod metrics;
mod negotiated;
mod not_read;
mod quic;
mod sarif;
mod selection;
mod text;
mod verdict_line;
mod verdicts;
mod wireshark;

use core::convert::Infallible;
use std::borrow::Cow;

use diagnose::quic::rules::quic_rule;
use diagnose::rules::{Finding, Neighbours, Proof, Severity, is_judged, rule};
use diagnose::{Analysis, AnalysisSettings, Diagnosis};
use packet::Dir;
use packet::wire::Endpoints;
use runner::workers::Workers;

use crate::inputs::{
    self, CapturedConnection, CapturedQuicConnection, File, InputFile, QuicPair, ReadError,
    ReadMode, Reading,
};

pub use filter_expression::{FilterError, FilterExpression};
pub use selection::{ConnectionFilter, ConnectionOrder};

pub use cures::{Prediction, TriedCure, Validity};

pub use captured_quic::{UNSEEN as UNSEEN_IN_CAPTURES_OF_QUIC, text as captured_quic_text};
pub use exchange::exchange_lines;
pub use explain::{UnknownCode, explain, list};
pub use json::{DocumentsJson, write_documents};
pub use kernel::{SocketVerdictJson, kernel_limit, kernel_text};
pub use quic::{QuicReport, quic_limiter_letter};
pub use sarif::{path_uri, sarif_log};
pub use text::{TextStyle, finding_text, guess_text, limiter_letter};

use beside::QuicBesideReport;
use both_ends::QuicPairReport;
use exchange::{ExchangeSummary, Exchanges};
use help::choose_help;
use joined::CapturePairReport;
use selection::code_bit;
use units::Duration;

/// Most packets of a connection that are kept for the graphs of a page.
pub const PACKETS_OF_PAGES: usize = 1_000_000;

/// Connections that are diagnosed at once: their diagnoses are in memory together.
const BATCH: usize = 4_096;

/// Diagnosed connections by file.
#[derive(Debug)]
pub struct DiagnosisReport {
    /// The files, in the order given.
    pub files: Vec<FileReport>,
    /// Connections present in two captures.
    joined: Vec<CapturePairReport>,
    /// QUIC connections in the logs of both endpoints.
    both_ends: Vec<QuicPairReport>,
    /// QUIC connections in a log and a capture.
    beside: Vec<QuicBesideReport>,
}

/// The connections of a file.
#[derive(Debug)]
pub struct FileReport {
    /// The file.
    pub file: File,
    /// Its connections, worst first: those that failed, then by the cost of the finding that limited
    /// each, in seconds; those without one by the cost of their notes.
    pub connections: Vec<ConnectionReport>,
    /// Its connections that a selection left out: they may share the path of one that is shown.
    pub left_out: Vec<CapturedConnection>,
    /// Its QUIC connections, worst first.
    pub quic: Vec<QuicReport>,
    /// QUIC connections of a capture, those with most bytes first.
    pub captured_quic: Vec<CapturedQuicConnection>,
    /// Its connections by capture point: another point may have captured the same ones.
    neighbours: Vec<Neighbours>,
    /// Why none of its connections was judged; `None` if one was.
    unjudged: Option<String>,
    /// What the time of the connections with data was spent on, by their numbers. Most connections of a
    /// scan have none.
    exchanges: Exchanges,
}

/// A connection with the summary of its diagnosis: of many connections, few are shown in full.
#[derive(Debug)]
pub struct ConnectionReport {
    /// The connection.
    pub stream: CapturedConnection,
    /// Code of the finding that limited it.
    pub primary: Option<&'static str>,
    /// Its kind; empty where the code says all.
    pub kind: &'static str,
    /// Whether it failed: see [`Diagnosis::failed`].
    pub failed: bool,
    /// Cost of the primary finding; 0 without one.
    pub cost: Duration,
    /// Cost of the costliest finding, also if it is a note.
    pub noted: Duration,
    /// Payload of the main direction.
    pub bytes: u64,
    /// From its first packet to its last: see [`Analysis::duration`].
    pub duration: Duration,
    /// Goodput of the main direction, in bits per second.
    pub goodput_bps: u64,
    /// Cures of its findings that were tried; empty unless they were.
    pub cures: Vec<TriedCure>,
    /// What the simulations of these show.
    proof: Proof,
    /// Codes of its findings: see [`has_finding`](Self::has_finding).
    codes: u64,
    /// Whether its packets allow a verdict: see [`is_judged`].
    is_judged: bool,
}

impl FileReport {
    /// Keeps the connections that meet a condition.
    fn keep(&mut self, is_kept: impl Fn(&ConnectionReport, &Exchanges) -> bool) {
        let Self { connections, exchanges, left_out, .. } = self;
        let others = connections.extract_if(.., |one| !is_kept(one, exchanges));
        left_out.extend(others.map(|one| one.stream));
    }

    /// Diagnoses one of its connections in full.
    pub fn diagnosis(&self, judged: &ConnectionReport) -> Diagnosis {
        self.diagnosis_of(judged, &judged.analysis())
    }

    /// Diagnoses the direction with less data, if those are a transfer too.
    pub fn diagnosis_of_other_direction(
        &self,
        judged: &ConnectionReport,
        analysis: &Analysis,
    ) -> Option<Diagnosis> {
        let beside = neighbours_at_point(&self.neighbours, &judged.stream);
        Diagnosis::of_other_direction(analysis, beside)
    }

    /// Diagnoses a connection in full, with the help that concerns its hosts, and the senders that match
    /// it.
    pub fn explained(
        &self,
        judged: &ConnectionReport,
        analysis: &Analysis,
    ) -> (Diagnosis, Vec<fit::Guess>) {
        let mut diagnosis = self.diagnosis_of(judged, analysis);
        let guesses = fit::guesses(analysis);
        choose_help(&mut diagnosis.findings, analysis, analysis.main_dir(), &guesses);
        (diagnosis, guesses)
    }

    /// Diagnoses the direction with less data, with the help that concerns the hosts.
    fn explained_other_direction(
        &self,
        judged: &ConnectionReport,
        analysis: &Analysis,
    ) -> Option<Diagnosis> {
        let mut other = self.diagnosis_of_other_direction(judged, analysis)?;
        choose_help(&mut other.findings, analysis, analysis.main_dir().reversed(), &[]);
        Some(other)
    }

    /// Diagnoses a connection that has this [analysis](ConnectionReport::analysis).
    pub fn diagnosis_of(&self, judged: &ConnectionReport, analysis: &Analysis) -> Diagnosis {
        let beside = neighbours_at_point(&self.neighbours, &judged.stream);
        let mut diagnosis = Diagnosis::of(analysis, beside);
        diagnosis.prove(analysis, beside, &judged.proof);
        diagnosis
    }

    /// Sets the cures that were tried for the findings of a connection, with the costs that they show; its verdict is
    /// that of these costs from now on. `number` is its index among the connections.
    pub fn set_cures(&mut self, number: usize, cures: Vec<TriedCure>, proof: Proof) {
        let Some(one) = self.connections.get_mut(number) else { return };
        (one.cures, one.proof) = (cures, proof);
        let one = &self.connections[number];
        let diagnosis = self.diagnosis(one);
        let (primary, kind) = (diagnosis.primary, diagnosis.primary_kind());
        let (cost, noted) = (diagnosis.primary_cost(), diagnosis.cost());
        let one = &mut self.connections[number];
        (one.primary, one.kind, one.cost, one.noted) = (primary, kind, cost, noted);
        one.cures.retain(|cure| Some(cure.finding) == primary);
    }
}

/// Condition that makes the command fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// A finding of at least this severity.
    Severity(Severity),
    /// A finding with this code.
    Code(&'static str),
}

impl FailOn {
    /// Whether a finding meets the condition.
    pub fn is_met_by(self, found: &Finding) -> bool {
        match self {
            Self::Severity(severity) => found.severity >= severity,
            Self::Code(code) => found.code == code,
        }
    }

    /// Parses the name of a severity or a code.
    pub fn from_name(name: &str) -> Option<Self> {
        let severity = Severity::from_name(&name.to_ascii_lowercase()).map(Self::Severity);
        let code = rule(name).map(|rule| rule.code);
        let code = code.or_else(|| quic_rule(name).map(|rule| rule.code));
        severity.or(code.map(Self::Code))
    }
}

/// A [`ConnectionReport`] without its connection.
struct JudgedConnection {
    primary: Option<&'static str>,
    kind: &'static str,
    failed: bool,
    cost: Duration,
    noted: Duration,
    bytes: u64,
    duration: Duration,
    goodput_bps: u64,
    codes: u64,
    is_judged: bool,
    /// What its time was spent on.
    exchange: Option<ExchangeSummary>,
}

impl JudgedConnection {
    /// Diagnoses a connection among the `neighbours` of its file.
    fn of(stream: &CapturedConnection, neighbours: &[Neighbours]) -> Self {
        let beside = neighbours_at_point(neighbours, stream);
        let analysis = stream.analysis();
        let diagnosis = Diagnosis::of(&analysis, beside);
        let other = Diagnosis::of_other_direction(&analysis, beside);
        let findings = diagnosis.findings.iter();
        let findings = findings.chain(other.iter().flat_map(|other| &other.findings));
        Self {
            primary: diagnosis.primary,
            kind: diagnosis.primary_kind(),
            failed: diagnosis.failed(),
            cost: diagnosis.primary_cost(),
            noted: diagnosis.cost(),
            bytes: analysis.bytes(),
            duration: analysis.duration(),
            goodput_bps: (analysis.goodput() * 8.0) as u64,
            codes: findings.fold(0, |set, found| set | code_bit(found.code)),
            is_judged: is_judged(&analysis),
            exchange: ExchangeSummary::of(&analysis),
        }
    }

    /// The report of its connection.
    fn report(self, stream: CapturedConnection) -> ConnectionReport {
        ConnectionReport {
            stream,
            primary: self.primary,
            kind: self.kind,
            failed: self.failed,
            cost: self.cost,
            noted: self.noted,
            bytes: self.bytes,
            duration: self.duration,
            goodput_bps: self.goodput_bps,
            cures: Vec::new(),
            proof: Proof::default(),
            codes: self.codes,
            is_judged: self.is_judged,
        }
    }
}

impl DiagnosisReport {
    /// Reads files of any kind and diagnoses their connections.
    ///
    /// `graphs`: keep packets for the graphs of a page, and data of QUIC to try cures.
    ///
    /// # Errors
    /// The first file that cannot be read, or has nothing usable.
    pub fn read(sources: Vec<InputFile<'_>>, graphs: bool) -> Result<Self, ReadError> {
        let packets = if graphs { PACKETS_OF_PAGES } else { 0 };
        let mode = ReadMode { keeps_quic: graphs, ..ReadMode::default() };
        Self::read_with(sources, packets, mode)
    }

    /// Reads files as [`read`](Self::read) does. `packets`: how many are kept of a connection; `mode`: parts of
    /// one capture, reports while reading.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with(
        sources: Vec<InputFile<'_>>,
        packets: usize,
        mode: ReadMode<'_>,
    ) -> Result<Self, ReadError> {
        Self::read_on(sources, packets, mode, &Workers::one())
    }

    /// Reads files as [`read_with`](Self::read_with) does, and diagnoses their connections on the threads of `workers`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_on(
        sources: Vec<InputFile<'_>>,
        packets: usize,
        mode: ReadMode<'_>,
        workers: &Workers<'_>,
    ) -> Result<Self, ReadError> {
        let settings = AnalysisSettings { turns: fit::MAX_EVENTS, packets };
        Ok(Self::on(inputs::read_with(sources, settings, mode)?, workers))
    }

    /// Diagnoses all connections that were read.
    pub fn of(reading: Reading) -> Self {
        Self::on(reading, &Workers::one())
    }

    /// Diagnoses all connections that were read, on the threads of `workers`: the report is the same for any number of
    /// them.
    pub fn on(mut reading: Reading, workers: &Workers<'_>) -> Self {
        for (log, view) in reading.quic_pairs.iter().flat_map(QuicPair::views) {
            if let Some(connection) = reading.quic.get_mut(log) {
                connection.analysis.add_peer_view(view);
            }
        }
        let names: Vec<_> = reading.files.iter().map(|file| file.name.clone()).collect();
        let joined = reading.pairs.iter();
        let joined = joined
            .filter_map(|pair| CapturePairReport::of(pair, &reading.streams, &names))
            .collect();
        let both_ends = reading.quic_pairs.iter();
        let both_ends =
            both_ends.filter_map(|pair| QuicPairReport::of(pair, &reading.quic, &names)).collect();
        let beside = reading.quic_beside.iter();
        let beside = beside.filter_map(|one| QuicBesideReport::of(one, &reading, &names)).collect();
        let mut files: Vec<_> = reading
            .files
            .into_iter()
            .map(|file| FileReport {
                file,
                connections: Vec::new(),
                left_out: Vec::new(),
                quic: Vec::new(),
                captured_quic: Vec::new(),
                neighbours: Vec::new(),
                unjudged: None,
                exchanges: Exchanges::default(),
            })
            .collect();
        // By file; the last file's connections leave the list first.
        let mut streams = reading.streams;
        for (number, file) in files.iter_mut().enumerate().rev() {
            let streams = streams.split_off(streams.partition_point(|one| one.file < number));
            let neighbours = neighbours(&streams);
            let mut exchanges = Exchanges::default();
            let mut streams = streams.into_iter();
            loop {
                let batch: Vec<_> = streams.by_ref().take(BATCH).collect();
                if batch.is_empty() {
                    break;
                }
                let judge = |stream: &CapturedConnection| {
                    Ok::<_, Infallible>(JudgedConnection::of(stream, &neighbours))
                };
                let Ok(judged) = workers.map(&batch, judge);
                for (stream, judged) in batch.into_iter().zip(judged) {
                    exchanges.add(stream.stream(), judged.exchange);
                    file.connections.push(judged.report(stream));
                }
            }
            file.connections.sort_by_key(|one| core::cmp::Reverse(one.rank()));
            exchanges.sort();
            file.exchanges = exchanges;
            file.neighbours = neighbours;
        }
        for connection in reading.quic {
            if let Some(file) = files.get_mut(connection.file) {
                file.quic.push(QuicReport::of(connection));
            }
        }
        for connection in reading.captured_quic {
            if let Some(file) = files.get_mut(connection.file) {
                file.captured_quic.push(connection);
            }
        }
        let is_joined = files.len() > 1;
        for file in &mut files {
            file.unjudged = file.reason_unjudged(is_joined);
            file.captured_quic.sort_by_key(|one| core::cmp::Reverse(one.analysis.bytes()));
            file.quic.sort_by_key(|one| {
                core::cmp::Reverse((one.diagnosis.failed(), one.diagnosis.cost()))
            });
        }
        Self { files, joined, both_ends, beside }
    }

    /// Keeps only the connections with this stream index; false if there is none.
    pub fn retain_flow(&mut self, number: u32) -> bool {
        let mut found = false;
        for file in &mut self.files {
            file.keep(|one, _| one.stream.stream() == number);
            file.quic.retain(|one| one.connection.number == number);
            file.captured_quic.retain(|one| one.number == number);
            let rest = [file.connections.len(), file.quic.len(), file.captured_quic.len()];
            found |= rest.iter().any(|&left| left > 0);
        }
        let files = &self.files;
        self.joined.retain(|pair| files.iter().any(|file| pair.concerns(&file.file.name, number)));
        self.both_ends
            .retain(|pair| files.iter().any(|file| pair.concerns(&file.file.name, number)));
        self.beside.retain(|pair| files.iter().any(|file| pair.concerns(&file.file.name, number)));
        found
    }

    /// Whether a finding meets the condition.
    pub fn fails(&self, on: FailOn) -> bool {
        let bad = |found: &Finding| on.is_met_by(found);
        self.files.iter().any(|file| {
            let of_quic = |one: &QuicReport| one.diagnosis.findings.iter().any(bad);
            let of_tcp = |one: &ConnectionReport| {
                let analysis = &*one.analysis();
                let other = file.diagnosis_of_other_direction(one, analysis);
                file.diagnosis_of(one, analysis).findings.iter().any(bad)
                    || other.is_some_and(|other| other.findings.iter().any(bad))
            };
            let captured = |one: &CapturedQuicConnection| one.findings().iter().any(bad);
            file.quic.iter().any(of_quic)
                || file.captured_quic.iter().any(captured)
                || file.connections.iter().any(of_tcp)
        })
    }
}

/// The connections of a file, by capture point.
fn neighbours(streams: &[CapturedConnection]) -> Vec<Neighbours> {
    let mut points: Vec<Neighbours> = Vec::new();
    for stream in streams {
        if points.len() <= stream.interface {
            points.resize_with(stream.interface + 1, Neighbours::default);
        }
        points[stream.interface].add(&stream.analysis());
    }
    points.iter_mut().for_each(Neighbours::sort);
    points
}

/// The connections captured at the same point as `stream`.
fn neighbours_at_point<'a>(
    neighbours: &'a [Neighbours],
    stream: &CapturedConnection,
) -> &'a Neighbours {
    const NONE: &Neighbours = &Neighbours::new();
    neighbours.get(stream.interface).unwrap_or(NONE)
}

impl ConnectionReport {
    /// Its analysis; may be computed from the packets, so keep it.
    pub fn analysis(&self) -> Cow<'_, Analysis> {
        self.stream.analysis()
    }

    /// Order of connections, the worst highest: failed, lost time, and that of notes.
    pub const fn rank(&self) -> (bool, Duration, Duration) {
        (self.failed, self.cost, self.noted)
    }

    /// Its number in the file: Wireshark's `tcp.stream`.
    pub fn number(&self) -> u32 {
        self.stream.stream()
    }

    /// Names of the client and the server, with ports.
    fn ends(&self, analysis: &Analysis) -> [String; 2] {
        let Endpoints { src, dst } = analysis.ends;
        let names = self.stream.names.as_deref().cloned();
        names.unwrap_or_else(|| [src.to_string(), dst.to_string()])
    }

    /// Sender and receiver of the data.
    pub fn transfer(&self, analysis: &Analysis) -> String {
        let [client, server] = self.ends(analysis);
        match analysis.main_dir() {
            Dir::Forward => format!("{client} > {server}"),
            Dir::Reverse => format!("{server} > {client}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_and_codes_fail_a_diagnosis() {
        assert_eq!(FailOn::from_name("Warning"), Some(FailOn::Severity(Severity::Warning)));
        assert_eq!(FailOn::from_name("cc201"), Some(FailOn::Code("CC201")));
        assert_eq!(FailOn::from_name("CC999"), None);
    }
}
