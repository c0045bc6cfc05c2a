//! The answer before everything else: what limits the worst connection, and its best cure, in one line.

use diagnose::Diagnosis;
use diagnose::rules::{Finding, Severity, many, time, time_percent};
use units::Duration;

use super::captured_quic::findings as findings_of_captured;
use super::cures::{TriedCure, best_cure};
use super::host::host_answer;
use super::kernel::kernel_limit;
use super::limits::{limit_of, named};
use super::{ConnectionReport, DiagnosisReport, FileReport, QuicReport};
use crate::inputs::CapturedQuicConnection;

/// A connection of any protocol.
#[derive(Clone, Copy)]
enum AnyConnection<'a> {
    Tcp(&'a ConnectionReport),
    Quic(&'a QuicReport),
    CapturedQuic(&'a CapturedQuicConnection),
}

/// Findings of a connection, of which the primary one limited it.
struct AnswerFindings<'a> {
    findings: &'a [Finding],
    primary: Option<&'static str>,
    /// Active time.
    active: Duration,
}

impl DiagnosisReport {
    /// What limits the worst connection, with its best cure, in one line.
    pub fn answer(&self) -> String {
        // Two files of one transfer have no worst connection.
        let is_one =
            !(self.joined.is_empty() && self.both_ends.is_empty() && self.beside.is_empty());
        answer_of(&self.files, is_one)
    }
}

/// What is said of a connection.
enum Answer {
    /// What limits it.
    Limited(String),
    /// How it failed.
    Failed(String),
    /// What limits it by the account of its kernel.
    Kernel(&'static str),
    /// Nothing limits it; the rest of the sentence.
    NoFault(String),
    /// Why it is not judged.
    Unjudged(&'static str),
}

impl Answer {
    /// The answer for the only connection.
    fn alone(self) -> String {
        match self {
            Self::Limited(text) => text,
            Self::Failed(title) => format!("failed: {title}"),
            Self::Kernel(limit) => format!("by the account of its kernel: {limit}"),
            Self::NoFault(rest) => format!("no fault found{rest}"),
            Self::Unjudged(reason) => format!("not judged: {reason}"),
        }
    }
}

impl FileReport {
    /// What limits a connection of TCP, with its cost, in one line; its cures are said elsewhere.
    pub fn tcp_answer(&self, one: &ConnectionReport) -> String {
        tcp_answer(self, one, false).alone()
    }

    /// As [`FileReport::tcp_answer`], of a QUIC connection.
    pub fn quic_answer(&self, one: &QuicReport) -> String {
        quic_answer(one, false).alone()
    }
}

/// The answer for the connections of these files; `is_one`: they are of one transfer.
pub(super) fn answer_of(files: &[FileReport], is_one: bool) -> String {
    let all: Vec<_> =
        files.iter().flat_map(|file| of_file(file).map(move |one| (file, one))).collect();
    // The first of equals.
    let worst = all.iter().rev().max_by_key(|(file, one)| one.rank(file));
    let Some((file, one)) = worst else {
        let counters = files.iter().find_map(|file| file.file.host_counters.as_deref());
        return counters.map_or_else(|| "no connection to judge".to_owned(), host_answer);
    };
    let answer = one.answer(file);
    if all.len() == 1 {
        return answer.alone();
    }
    let of_file = if files.len() > 1 { format!(" of {}", file.file.name) } else { String::new() };
    let name = one.name() + &of_file;
    match answer {
        Answer::Failed(title) if is_one => format!("{name}, failed: {title}"),
        Answer::Failed(title) => format!("the worst connection, {name}, failed: {title}"),
        Answer::Limited(text) if is_one => format!("{name}: {text}"),
        Answer::Limited(text) => format!("the worst connection, {name}: {text}"),
        Answer::Kernel(limit) => format!("{name}, by the account of its kernel: {limit}"),
        Answer::Unjudged(_) if files.iter().all(|file| file.unjudged.is_some()) => {
            format!("none of {} can be judged", many(all.len() as u64, "connection"))
        }
        Answer::NoFault(_) | Answer::Unjudged(_) => {
            format!("no fault found in {}", many(all.len() as u64, "connection"))
        }
    }
}

fn of_file(file: &FileReport) -> impl Iterator<Item = AnyConnection<'_>> {
    let tcp = file.connections.iter().map(AnyConnection::Tcp);
    let quic = file.quic.iter().map(AnyConnection::Quic);
    tcp.chain(quic).chain(file.captured_quic.iter().map(AnyConnection::CapturedQuic))
}

impl AnyConnection<'_> {
    /// Order of connections, the worst highest, as [`ConnectionReport::rank`].
    fn rank(self, file: &FileReport) -> (bool, Duration, Duration) {
        match self {
            Self::Tcp(one) => one.rank(),
            Self::Quic(one) => {
                let QuicReport { diagnosis, .. } = one;
                let primary = primary(&diagnosis.findings, diagnosis.primary);
                let cost = primary.map_or(Duration::ZERO, |found| found.cost);
                (diagnosis.failed(), cost, diagnosis.cost())
            }
            Self::CapturedQuic(one) => {
                let findings = findings_of_captured(one, file);
                let cost = limit(&findings).map_or(Duration::ZERO, |found| found.cost);
                (false, cost, Duration::ZERO)
            }
        }
    }

    fn name(self) -> String {
        match self {
            Self::Tcp(one) => format!("flow {}", one.number()),
            Self::Quic(one) => format!("connection {}", one.connection.number),
            Self::CapturedQuic(one) => format!("QUIC connection {}", one.number),
        }
    }

    fn answer(self, file: &FileReport) -> Answer {
        match self {
            Self::Tcp(one) => tcp_answer(file, one, true),
            Self::Quic(one) => quic_answer(one, true),
            Self::CapturedQuic(one) => {
                let findings = findings_of_captured(one, file);
                let primary = limit(&findings).map(|found| found.code);
                let active = Duration::from_nanos(one.analysis.duration());
                if primary.is_none() {
                    return Answer::NoFault(" that a capture of QUIC shows".to_owned());
                }
                AnswerFindings { findings: &findings, primary, active }.answer()
            }
        }
    }
}

fn quic_answer(one: &QuicReport, has_cure: bool) -> Answer {
    let QuicReport { connection, diagnosis, cures } = one;
    let active = Duration::from_nanos(connection.analysis.budget.active());
    let primary = diagnosis.primary;
    let answer = AnswerFindings { findings: &diagnosis.findings, primary, active }.answer();
    match if has_cure { with_cure(answer, cures, primary) } else { answer } {
        Answer::NoFault(_) if connection.analysis.is_limit_unknown() => {
            let rest = ": the log does not show what limits it most of the time";
            Answer::NoFault(rest.to_owned())
        }
        answer => answer,
    }
}

fn tcp_answer(file: &FileReport, one: &ConnectionReport, has_cure: bool) -> Answer {
    let analysis = &*one.analysis();
    let Diagnosis { course, findings, primary } = file.diagnosis_of(one, analysis);
    if primary.is_none() {
        if let Some(limit) = kernel_limit(analysis) {
            return Answer::Kernel(limit.meaning());
        }
        if let Some(reason) = one.unjudged() {
            return Answer::Unjudged(reason);
        }
    }
    let active = course.budget.active();
    let answer = AnswerFindings { findings: &findings, primary, active }.answer();
    if has_cure { with_cure(answer, &one.cures, primary) } else { answer }
}

/// An answer with the cure of its finding that gains most.
fn with_cure(answer: Answer, cures: &[TriedCure], primary: Option<&str>) -> Answer {
    match (answer, best_cure(cures, primary)) {
        (Answer::Limited(text), Some(cure)) => {
            Answer::Limited(format!("{text}; {}", cure.short_text()))
        }
        (answer, _) => answer,
    }
}

/// The finding that limited a captured connection of QUIC.
fn limit(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|found| found.severity > Severity::Note)
}

fn primary<'a>(findings: &'a [Finding], code: Option<&'static str>) -> Option<&'a Finding> {
    findings.iter().find(|found| Some(found.code) == code)
}

impl AnswerFindings<'_> {
    fn answer(&self) -> Answer {
        let &Self { findings, active, .. } = self;
        let Some(found) = primary(findings, self.primary) else {
            let costliest = findings.iter().max_by_key(|found| found.cost);
            let note = costliest.filter(|found| !found.cost.is_zero());
            let note = note.map(|note| format!("; a note: {}", note.title));
            return Answer::NoFault(note.unwrap_or_default());
        };
        if found.is_failure {
            return Answer::Failed(named(found.code, &found.title, found.kind));
        }
        if found.severity == Severity::Note {
            return Answer::NoFault(format!(": {}", found.title));
        }
        let Some(limit) = limit_of(found.code, found.kind) else {
            return Answer::Limited(found.title.clone());
        };
        let cost = match found.cost {
            Duration::ZERO => String::new(),
            // Waits longer than a timeout are no time at work.
            cost if cost > active => format!(" at a cost of {}", time(cost)),
            cost => format!(" at a cost of {} of the time at work", time_percent(cost, active)),
        };
        Answer::Limited(format!("limited by {limit}{cost}"))
    }
}
