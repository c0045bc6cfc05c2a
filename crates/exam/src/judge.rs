//! What the program says of a case, and whether it is right.

use diagnose::AnalysisSettings;
use diagnose::rules::{Finding, Severity};
use ingest::diagnosis::{DiagnosisReport, Prediction};
use ingest::inputs::{self, InputFile, ReadMode};
use runner::workers::Workers;
use units::Duration;
use whatif::{WhatIf, WhatIfError, WhatIfRequest};

use crate::capture::{CapturePoint, RunCapture};
use crate::case::RunCase;
use crate::draft::DataDirection;
use crate::faults::FaultKind;
use crate::world::Transport;

/// The answer about a case.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Code of the finding that limited the connection.
    pub primary: Option<&'static str>,
    /// Its kind; empty where the code says all.
    pub kind: &'static str,
    /// Codes above a note, as ranked.
    pub above_note: Vec<&'static str>,
    /// One of them is an error.
    pub has_error: bool,
    /// Codes of notes.
    pub notes: Vec<&'static str>,
    /// Cost of the primary finding.
    pub cost: Duration,
    /// Rate of the bottleneck that it states of a log of QUIC, in bytes per second.
    pub path_rate: Option<f64>,
    /// The answer, judged.
    pub verdict: Verdict,
    /// Laws that findings break, in words.
    pub broken_laws: Vec<String>,
    /// The predicted time of each cure, or why there is none.
    pub cures: Vec<PredictedCure>,
}

/// A cure as the program predicts it.
#[derive(Debug, Clone)]
pub struct PredictedCure {
    /// Its name.
    pub name: &'static str,
    /// The time that it takes in truth.
    pub truth: Duration,
    /// The predicted time, and what the program says that it is worth; without one, why.
    pub prediction: Result<(Duration, Prediction), String>,
}

/// How an answer compares with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The verdict names the cause, or nothing is above a note where nothing is wrong.
    Right,
    /// A finding above a note names the cause, but another is the verdict.
    Buried,
    /// Only a note names the cause.
    Noted,
    /// Nothing above a note, and no note names the cause.
    Silent,
    /// Findings above a note name something else.
    Wrong,
    /// A finding above a note where nothing is wrong.
    FalseAlarm,
}

impl Verdict {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Buried => "buried",
            Self::Noted => "noted",
            Self::Silent => "silent",
            Self::Wrong => "wrong",
            Self::FalseAlarm => "false alarm",
        }
    }
}

/// Packets that are kept of a connection: more than any draw has.
const MOST_PACKETS: usize = 1_000_000;

/// Asks the program about a case.
///
/// # Errors
/// A capture or log that cannot be read, as text.
pub fn judge(case: &RunCase) -> Result<Answer, String> {
    match &case.capture {
        RunCapture::Packets(_) => judge_captures(case),
        RunCapture::Qlog(log) => judge_log(case, log),
    }
}

/// Asks about the log of a QUIC sender.
fn judge_log(case: &RunCase, log: &[u8]) -> Result<Answer, String> {
    let source = InputFile { name: "sender.sqlog".to_owned(), bytes: Box::new(log) };
    let mode = ReadMode { keeps_quic: true, ..ReadMode::default() };
    let reading = inputs::read_with(vec![source], AnalysisSettings::default(), mode)
        .map_err(|error| error.to_string())?;
    let connection = reading.quic.first().cloned().ok_or("the log has no connection")?;
    let report = DiagnosisReport::of(reading);
    let file = report.files.first().ok_or("no file")?;
    let diagnosis = &file.quic.first().ok_or("the log has no connection")?.diagnosis;
    // The log ends with the last acknowledgment, the transfer before it.
    let analysis = &connection.analysis;
    let duration = Duration::from_nanos(analysis.duration());
    let broken_laws =
        laws(&diagnosis.findings, duration, analysis.spare().map(Duration::from_nanos));
    let cures = predicted(case, |request| WhatIf::of_quic(&connection, request));
    let answer = answer(case, diagnosis.primary, &diagnosis.findings, broken_laws, cures);
    Ok(Answer { path_rate: analysis.bottleneck, ..answer })
}

/// Asks about captures.
fn judge_captures(case: &RunCase) -> Result<Answer, String> {
    let settings = &case.case.settings;
    // The client has number 0, the server 1.
    let sender = u32::from(case.case.world.direction == DataDirection::Download);
    let hosts = match settings.point {
        CapturePoint::Sender => vec![sender],
        CapturePoint::Receiver => vec![1 - sender],
        CapturePoint::Middle => vec![2],
        CapturePoint::Both => vec![sender, 1 - sender],
    };
    let files = hosts.iter().map(|&host| case.capture.pcap(host, settings));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let sources = files.iter().enumerate().map(|(number, file)| InputFile {
        name: format!("{number}.pcap"),
        bytes: Box::new(&file[..]),
    });
    let settings = AnalysisSettings { turns: whatif::MAX_EVENTS, packets: MOST_PACKETS };
    let reading = inputs::read_with(sources.collect(), settings, ReadMode::default())
        .map_err(|error| error.to_string())?;
    let streams = reading.streams.clone();
    let mut report = DiagnosisReport::of(reading);
    // As `ackclock diagnose` does: the costs of its findings are those that simulations show.
    whatif::try_worst(&mut report, &Workers::one());
    let report = report;
    // The transfer's client has the first port of the first flow.
    let is_transfer = |port: u16| port == 49_152;
    let views = report.files.iter().filter_map(|file| {
        let connection = file.connections.iter().find(|one| {
            let ends = one.stream.ends();
            is_transfer(ends.src.port()) || is_transfer(ends.dst.port())
        })?;
        Some((file, connection, file.diagnosis(connection)))
    });
    // Of the views from both ends a user reads the one with a failure, or that of the sender.
    let views: Vec<_> = views.collect();
    let chosen = views.iter().find(|(.., diagnosis)| diagnosis.failed()).or(views.first());
    let (_, connection, diagnosis) =
        chosen.ok_or("the capture has no connection of the transfer")?;
    // What the transfer took beyond its bytes at the rate that the program itself states.
    let ideal = diagnosis.course.path.rate.map(|rate| connection.bytes as f64 / rate.max(1.0));
    let duration = connection.duration;
    let spare =
        ideal.map(|ideal| duration.saturating_sub(Duration::from_nanos((ideal * 1e9) as u64)));
    let laws = laws(&diagnosis.findings, duration, spare);
    let stream = connection.stream.stream();
    let captured = streams.iter().find(|one| one.file == 0 && one.stream() == stream);
    let cures = match captured {
        Some(one) => {
            let others: Vec<_> = streams.iter().filter(|other| other.file == 0).collect();
            predicted(case, |request| WhatIf::beside(one, &others, request))
        }
        None => return Err("the capture has no connection".to_owned()),
    };
    Ok(answer(case, diagnosis.primary, &diagnosis.findings, laws, cures))
}

/// The program's prediction of each cure.
fn predicted(
    case: &RunCase,
    ask: impl Fn(&WhatIfRequest) -> Result<WhatIf, WhatIfError>,
) -> Vec<PredictedCure> {
    let cures = case.truth.cures.iter().map(|cure| {
        let answer = ask(&cure.request).map_err(|error| error.to_string());
        let outside = answer.as_ref().map(|answer| outside(case, answer)).unwrap_or_default();
        let prediction = answer.and_then(|answer| {
            let one = answer.alternatives.into_iter().next().ok_or("no alternative")?;
            Ok((Duration::from_nanos((one.course.time_s * 1e9) as u64), one.prediction))
        });
        let truth = cure.duration.saturating_sub(outside);
        PredictedCure { name: cure.name, truth, prediction }
    });
    cures.collect()
}

/// Time of the transfer that is not part of the time that `whatif` states, which counts from the first packet at the
/// capture point to the last delivery there: at most two round trips, for the request and the way of both.
fn outside(case: &RunCase, answer: &WhatIf) -> Duration {
    let stated = Duration::from_nanos((answer.recorded.time_s * 1e9) as u64);
    let most = Duration::from_micros(2 * case.case.world.round_trip());
    Some(case.truth.duration.saturating_sub(stated))
        .filter(|&rest| rest <= most)
        .unwrap_or_default()
}

/// The judged answer of these findings.
fn answer(
    case: &RunCase,
    primary: Option<&'static str>,
    findings: &[Finding],
    broken_laws: Vec<String>,
    cures: Vec<PredictedCure>,
) -> Answer {
    let of = |is_note: bool| {
        let of = findings.iter().filter(|found| (found.severity == Severity::Note) == is_note);
        of.map(|found| found.code).collect::<Vec<_>>()
    };
    let (above_note, notes) = (of(false), of(true));
    let limit = findings.iter().find(|found| Some(found.code) == primary);
    Answer {
        primary,
        kind: limit.map_or("", |found| found.kind),
        has_error: findings.iter().any(|found| found.severity == Severity::Error),
        verdict: verdict(case, primary, &above_note, &notes),
        above_note,
        notes,
        cost: limit.map_or(Duration::ZERO, |found| found.cost),
        path_rate: None,
        broken_laws,
        cures,
    }
}

/// The codes of a cause in this case.
pub(crate) fn codes_of(case: &RunCase, cause: FaultKind) -> &'static [&'static str] {
    match case.case.world.transport {
        Transport::Tcp => cause.codes(),
        // A sender that never meets a limit sees only that the other side answers late.
        Transport::Quic if cause == FaultKind::SlowReader && case.has_ample_window => &["CC831"],
        // Without frames nothing shows the peer's limits: the sender had nothing to send, or was not allowed to.
        Transport::Quic
            if !case.has_frames
                && matches!(cause, FaultKind::SlowReader | FaultKind::SmallReceiveBuffer) =>
        {
            &["CC831", "CC821", "CC822"]
        }
        // Nor does anything show that packets declared lost arrive.
        Transport::Quic if !case.has_frames && cause == FaultKind::Reordering => {
            &["CC811", "CC812"]
        }
        Transport::Quic => cause.quic_codes().unwrap_or_default(),
    }
}

fn verdict(
    case: &RunCase,
    primary: Option<&'static str>,
    above_note: &[&'static str],
    notes: &[&'static str],
) -> Verdict {
    let truth = &case.truth;
    let causes = truth.causes();
    if causes.is_empty() {
        let is_true = above_note.iter().all(|code| truth.allowed.contains(code));
        return if is_true { Verdict::Right } else { Verdict::FalseAlarm };
    }
    let codes = |cause: &FaultKind| codes_of(case, *cause);
    let names = |code: &&'static str| {
        causes.iter().any(|cause| codes(cause).contains(code)) || truth.allowed.contains(code)
    };
    let is_primary = primary.as_ref().is_some_and(names);
    match () {
        () if is_primary => Verdict::Right,
        () if above_note.iter().any(&names) => Verdict::Buried,
        () if !above_note.is_empty() => Verdict::Wrong,
        () if notes.iter().any(names) => Verdict::Noted,
        () => Verdict::Silent,
    }
}

/// The laws that the findings of a connection break, each and together.
fn laws(findings: &[Finding], duration: Duration, spare: Option<Duration>) -> Vec<String> {
    let laws = findings.iter().flat_map(|found| broken_laws(found, duration, spare));
    let mut laws: Vec<String> = laws.collect();
    let is_slow = |found: &&Finding| found.severity > Severity::Note && !found.is_failure;
    let together: Duration = findings.iter().filter(is_slow).map(|found| found.cost).sum();
    if let Some(spare) = spare.filter(|&spare| together > spare + Duration::from_micros(1)) {
        laws.push(format!("costs together {together} > duration - bytes / rate {spare}"));
    }
    laws
}

/// Laws of cost: 0 ≤ cost ≤ the interval of the finding ≤ the connection; and no finding costs more than
/// what could be saved, if that is known.
fn broken_laws(found: &Finding, duration: Duration, spare: Option<Duration>) -> Vec<String> {
    // Reports round to the microsecond.
    let rounding = Duration::from_micros(1);
    let Finding { code, cost, .. } = found;
    let interval = found.interval.1.since(found.interval.0);
    let mut broken = Vec::new();
    if *cost > interval + rounding {
        broken.push(format!("{code}: cost {cost} > interval {interval}"));
    }
    if interval > duration + rounding {
        broken.push(format!("{code}: interval {interval} > connection {duration}"));
    }
    if let Some(spare) = spare.filter(|&spare| *cost > spare + rounding) {
        broken.push(format!("{code}: cost {cost} > duration - bytes / rate {spare}"));
    }
    broken
}
