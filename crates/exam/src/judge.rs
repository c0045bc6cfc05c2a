//! What the program says of a case, and whether it is right.

use diagnose::rules::{Finding, Severity};
use diagnose::{AnalysisSettings, Diagnosis};
use ingest::diagnosis::DiagnosisReport;
use ingest::inputs::{self, InputFile, ReadMode};
use units::Duration;
use whatif::WhatIf;

use crate::capture::CapturePoint;
use crate::case::{RunCase, Truth};
use crate::draft::DataDirection;

/// The answer about a case.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Code of the finding that limited the connection.
    pub primary: Option<&'static str>,
    /// Codes above a note, as ranked.
    pub above_note: Vec<&'static str>,
    /// One of them is an error.
    pub has_error: bool,
    /// Codes of notes.
    pub notes: Vec<&'static str>,
    /// Cost of the primary finding.
    pub cost: Duration,
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
    /// The predicted time; without one, why.
    pub prediction: Result<Duration, String>,
    /// The program says that the fit is good enough.
    pub licensed: bool,
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

/// Asks the program about a case.
///
/// # Errors
/// A capture that cannot be read, as text.
pub fn judge(case: &RunCase) -> Result<Answer, String> {
    let settings = &case.case.settings;
    // The client has number 0, the server 1.
    let sender = u32::from(case.case.world.direction == DataDirection::Download);
    let hosts = match settings.point {
        CapturePoint::Sender => vec![sender],
        CapturePoint::Receiver => vec![1 - sender],
        CapturePoint::Both => vec![sender, 1 - sender],
    };
    let files = hosts.iter().map(|&host| case.capture.pcap(host, settings));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let sources = files.iter().enumerate().map(|(number, file)| InputFile {
        name: format!("{number}.pcap"),
        bytes: Box::new(&file[..]),
    });
    let settings = AnalysisSettings { turns: whatif::MAX_EVENTS, packets: 0 };
    let reading = inputs::read_with(sources.collect(), settings, ReadMode::default())
        .map_err(|error| error.to_string())?;
    let streams = reading.streams.clone();
    let report = DiagnosisReport::of(reading);
    let file = report.files.first().ok_or("no file")?;
    // The transfer's client has the first port of the first flow.
    let is_transfer = |port: u16| port == 49_152;
    let connection = file.connections.iter().find(|one| {
        let ends = one.stream.ends();
        is_transfer(ends.src.port()) || is_transfer(ends.dst.port())
    });
    let connection = connection.ok_or("the capture has no connection of the transfer")?;
    let diagnosis = file.diagnosis(connection);
    let rate = case.case.world.rate;
    let duration = connection.duration;
    let broken_laws = broken_laws(&diagnosis, duration, connection.bytes, rate);
    let stream = connection.stream.stream();
    let captured = streams.iter().find(|one| one.file == 0 && one.stream() == stream);
    let cures = case.truth.cures.iter().map(|cure| {
        let answer = captured
            .ok_or("the capture has no connection".to_owned())
            .and_then(|one| WhatIf::of(one, &cure.request).map_err(|error| error.to_string()));
        let licensed = answer.as_ref().is_ok_and(|answer| answer.licensed);
        let prediction = answer.and_then(|answer| {
            let one = answer.alternatives.first().ok_or("no alternative")?;
            Ok(Duration::from_nanos((one.course.time_s * 1e9) as u64))
        });
        PredictedCure { name: cure.name, truth: cure.duration, prediction, licensed }
    });
    let cures = cures.collect();
    let of = |is_note: bool| {
        let findings = diagnosis.findings.iter();
        let findings = findings.filter(|found| (found.severity == Severity::Note) == is_note);
        findings.map(|found| found.code).collect::<Vec<_>>()
    };
    let (above_note, notes) = (of(false), of(true));
    let verdict = verdict(&case.truth, diagnosis.primary, &above_note, &notes);
    Ok(Answer {
        primary: diagnosis.primary,
        has_error: diagnosis.findings.iter().any(|found| found.severity == Severity::Error),
        above_note,
        notes,
        cost: diagnosis.primary_cost(),
        verdict,
        broken_laws,
        cures,
    })
}

fn verdict(
    truth: &Truth,
    primary: Option<&'static str>,
    above_note: &[&'static str],
    notes: &[&'static str],
) -> Verdict {
    let causes = truth.causes();
    if causes.is_empty() {
        return if above_note.is_empty() { Verdict::Right } else { Verdict::FalseAlarm };
    }
    let names = |code: &&'static str| causes.iter().any(|cause| cause.codes().contains(code));
    let is_primary = primary.as_ref().is_some_and(names);
    match () {
        () if is_primary => Verdict::Right,
        () if above_note.iter().any(|code| names(code)) => Verdict::Buried,
        () if !above_note.is_empty() => Verdict::Wrong,
        () if notes.iter().any(|code| names(code)) => Verdict::Noted,
        () => Verdict::Silent,
    }
}

/// Laws of cost: 0 ≤ cost ≤ the interval of the finding ≤ the connection; no finding costs more than what
/// the transfer took beyond its bytes at the rate of the path.
fn broken_laws(diagnosis: &Diagnosis, duration: Duration, bytes: u64, kbits: u64) -> Vec<String> {
    // Reports round to the microsecond.
    let rounding = Duration::from_micros(1);
    let ideal = Duration::from_nanos(bytes.saturating_mul(8_000_000) / kbits.max(1));
    let spare = duration.saturating_sub(ideal);
    let law = |found: &Finding| {
        let interval = found.interval.1.since(found.interval.0);
        let mut broken = Vec::new();
        if found.cost > interval + rounding {
            broken.push(format!("{}: cost {} > interval {interval}", found.code, found.cost));
        }
        if interval > duration + rounding {
            broken.push(format!("{}: interval {interval} > connection {duration}", found.code));
        }
        // A dozen round trips of the opening and the end are no transfer at the rate: the law is the
        // issue's, on time above what the bytes need.
        if found.cost > spare + rounding {
            broken.push(format!(
                "{}: cost {} > duration - bytes / rate {spare}",
                found.code, found.cost
            ));
        }
        broken
    };
    diagnosis.findings.iter().flat_map(law).collect()
}
