//! `ackclock diagnose`: why a transfer is slow.

mod against;
pub(super) mod key_logs;
mod live;
mod live_input;
mod selection;

use std::fs::Metadata;
use std::io::{self, IsTerminal, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ingest::diagnosis::{DiagnosisReport, FailOn, PACKETS_OF_PAGES, TextStyle, write_documents};
use ingest::inputs::{
    InputFile, InputKind, LiveInterval, LiveReporter, ReadError, ReadMode, Reason,
};
use ingest::pasted::PastedReport;
use runner::stop::NEVER;
use runner::workers::Workers;
use scenario::ReportStyle;

use super::pasted::{self, PastedText};
use crate::cli::DiagnoseArgs;
use crate::failure::{Failure, look_on};
use crate::file_kind::other_command;
use crate::folders;
use crate::input;
use crate::interrupt;
use crate::output::{self, OutFile};
use crate::progress::{ProgressReader, Spinner};
use crate::threads::threads;
use crate::visible::ShownPath as _;

/// Default number of connections shown in full.
const SHOWN: usize = 10;
/// Most files named in which nothing was judged.
const UNJUDGED: usize = 3;
/// Most files named that cannot be read.
const UNREADABLE: usize = 10;
/// Time without packets after which a connection of a capture without end is forgotten.
const FORGOTTEN: units::Duration = units::Duration::from_secs(300);
/// Bytes of JSON that are written at a time.
const JSON_BUFFER: usize = 64 * 1_024;

pub(super) fn run(args: &DiagnoseArgs) -> Result<ExitCode, Failure> {
    let workers = Workers::new(threads(args.jobs), &NEVER);
    if let Some(labels) = &args.against {
        let [folder] = args.files.as_slice() else {
            return Err(Failure::new(
                "--against: expected one folder with the captures of the list",
            ));
        };
        return against::run(labels, folder, args.json, &workers);
    }
    let fail_on = args.fail_on.as_deref().map(fail_on).transpose()?;
    let standard = args.files.iter().filter(|file| is_standard(file)).count();
    if standard > 1 {
        return Err(Failure::new("standard input can be read only once"));
    }
    let (pasted, before) = pasted_text(args)?;
    if let Some(text) = pasted.as_ref().filter(|text| !text.has_recording) {
        return report_pasted(text, args, &file_name(args));
    }
    let filter = selection::filter(args)?;
    let mut files = folders::expand(&args.files)?;
    let mut texts = Vec::new();
    if is_one_shot(args) && (files.len() > 1 || files != args.files) {
        texts = report_texts(&mut files, args)?;
        if files.is_empty() {
            let printed = if args.json { print_json(None, &texts, args) } else { Ok(()) };
            return printed.map(|()| ExitCode::SUCCESS);
        }
    }
    let unquoted = pasted.as_ref().and_then(|text| text.unquoted.clone());
    let closed = Arc::new(AtomicBool::new(false));
    let sources = files.iter().map(|file| match &args.every {
        Some(_) if is_standard(file) => live_source(&closed),
        None if unquoted.is_some() => {
            Ok(unquoted_source(file, unquoted.clone().unwrap_or_default()))
        }
        None if is_standard(file) => Ok(standard_after(before.clone())),
        _ => source(file),
    });
    let (sources, mut failures) = opened(sources.collect(), args)?;
    if args.every.is_some() && files.len() > 1 && !args.ring {
        return Err(Failure::new("--every: expected one capture, or with --ring its parts"));
    }
    if args.wireshark.is_some() && files.len() > 1 {
        return Err(Failure::new("--wireshark: expected one capture, as its frames are numbered"));
    }
    let outputs = outputs(args, &files)?;
    let tries_cures = !args.no_cures && args.every.is_none() && can_try_cures(&files);
    let packets = match (args.report.is_some(), tries_cures) {
        (true, _) => PACKETS_OF_PAGES,
        (false, true) => whatif::MOST_PACKETS,
        (false, false) => 0,
    };
    let mut printer = live::IntervalPrinter::new(args, SHOWN, &closed);
    let mut speak = |interval: &LiveInterval| printer.print(interval);
    let keys = key_logs::read(args.keylog.as_deref(), &files)?;
    let mut mode =
        ReadMode { is_ring: args.ring, keys, keeps_quic: tries_cures, ..ReadMode::default() };
    if let Some(every) = &args.every {
        let forget =
            args.forget.or_else(|| files.iter().any(|file| is_standard(file)).then_some(FORGOTTEN));
        let live = LiveReporter::new(live::every(every)?, &mut speak);
        mode.live = Some(live.forgetting(forget));
        // Ctrl-C ends the capture: the result follows.
        interrupt::orderly();
    }
    let mut unreadable = Vec::new();
    mode.unreadable = can_leave_out(args, files.len()).then_some(&mut unreadable);
    let report = DiagnosisReport::read_on(sources, packets, mode, &workers);
    if let Some(failure) = printer.failed {
        return Err(failure);
    }
    let mut report = report.map_err(|error| refused(&error, &files))?;
    // Before a selection: a file without a selected connection is no fault.
    let unjudged = fail_on.and_then(|_| unjudged(&report));
    if let Some(flow) = args.flow
        && !report.retain_flow(flow)
    {
        return Err(Failure::new(format!("there is no connection {flow}"))
            .hint("connections are numbered from 0, as tcp.stream in Wireshark; without --flow all are listed"));
    }
    selection::select(&mut report, filter.as_ref(), args.sort)?;
    // All connections are in these outputs, whatever the limit is.
    let is_shown = [&args.report, &args.sarif, &args.junit].iter().any(|path| path.is_some());
    if tries_cures && (is_shown || args.limit != Some(0)) {
        let _progress = Spinner::new("trying cures");
        whatif::try_worst(&mut report, &workers);
    }
    for (form, path, mut out) in outputs {
        let limit = args.limit.unwrap_or(SHOWN);
        let written = match form {
            OutputForm::Page => pages::diagnosis_page::page(&report).write(&mut out),
            OutputForm::Csv => report.write_csv(&mut out, args.csv_safe),
            OutputForm::Junit => out.write_all(report.junit(fail_on).as_bytes()),
            OutputForm::Sarif => out.write_all(report.sarif().as_bytes()),
            OutputForm::Markdown => out.write_all(report.markdown(limit).as_bytes()),
            OutputForm::OpenMetrics => out.write_all(report.openmetrics().as_bytes()),
            OutputForm::Wireshark => out.write_all(report.wireshark().as_bytes()),
        };
        written.map_err(|error| Failure::file("write", path, &error))?;
        out.commit()?;
    }
    if args.json && args.every.is_some() {
        output::print(&live::json_end(&report, args.limit.unwrap_or(usize::MAX)))?;
    } else if args.json {
        print_json(Some(&report), &texts, args)?;
    } else {
        let look = look_on(io::stdout().is_terminal());
        let text = report.text(TextStyle { limit: args.limit.unwrap_or(SHOWN), look });
        match look {
            ReportStyle::Plain => output::print(&text)?,
            ReportStyle::Coloured => output::print_in_colour(&text)?,
        }
        if let Some(beside) = pasted.as_ref().filter(|text| !text.report.sections.is_empty()) {
            output::print(&format!("\n{}", beside.report.text_beside(&file_name(args))))?;
        }
    }
    failures.extend(unreadable.iter().map(|error| refused(error, &files)));
    let left_out = report_unreadable(failures);
    let Some(on) = fail_on else { return Ok(left_out.unwrap_or(ExitCode::SUCCESS)) };
    if report.fails(on) {
        return Ok(ExitCode::from(1));
    }
    if let Some(status) = left_out {
        return Ok(status);
    }
    match unjudged {
        Some(failure) => Err(failure),
        None if report.judged_by(on) == 0 => {
            Err(nothing_judged("none of the selected connections can have such a finding"))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Whether files are read once, each for itself.
fn is_one_shot(args: &DiagnoseArgs) -> bool {
    args.every.is_none() && !args.ring
}

/// Reports the texts of other tools among several files, and leaves the recordings. With JSON nothing is
/// printed yet: the texts are returned.
fn report_texts(
    files: &mut Vec<PathBuf>,
    args: &DiagnoseArgs,
) -> Result<Vec<(String, PastedReport)>, Failure> {
    let (mut recordings, mut texts) = (Vec::new(), Vec::new());
    for file in core::mem::take(files) {
        match pasted::read(&file).filter(|text| !text.has_recording) {
            Some(text) if args.json => {
                refuse_outputs(args, &file.shown())?;
                texts.push((file.shown(), text.report));
            }
            Some(text) => {
                report_pasted(&text, args, &file.shown())?;
                output::print("\n")?;
            }
            None => recordings.push(file),
        }
    }
    *files = recordings;
    Ok(texts)
}

/// Prints the documents of JSON: of one file its own, of several a list.
fn print_json(
    report: Option<&DiagnosisReport>,
    texts: &[(String, PastedReport)],
    args: &DiagnoseArgs,
) -> Result<(), Failure> {
    let mut out = io::BufWriter::with_capacity(JSON_BUFFER, output::standard_output());
    let written = write_documents(report, texts, args.limit.unwrap_or(usize::MAX), &mut out);
    output::written(written.and_then(|()| out.flush()))
}

/// The text of other tools in the only file, and what was read of standard input to know it.
fn pasted_text(args: &DiagnoseArgs) -> Result<(Option<PastedText>, Vec<u8>), Failure> {
    match args.files.as_slice() {
        [file] if is_one_shot(args) => match is_standard(file) {
            true => pasted::read_standard()
                .map_err(|error| Failure::new(format!("cannot read standard input: {error}"))),
            false => Ok((pasted::read(file), Vec::new())),
        },
        _ => Ok((None, Vec::new())),
    }
}

/// Prints what a pasted text says; output files have connections.
fn report_pasted(text: &PastedText, args: &DiagnoseArgs, name: &str) -> Result<ExitCode, Failure> {
    refuse_outputs(args, name)?;
    output::print(&if args.json { text.report.json(name) } else { text.report.text(name) })?;
    Ok(ExitCode::SUCCESS)
}

/// Reports options that need connections, which a pasted text has not.
fn refuse_outputs(args: &DiagnoseArgs, name: &str) -> Result<(), Failure> {
    let outputs = [&args.report, &args.csv, &args.sarif, &args.junit, &args.markdown];
    let others = [&args.openmetrics, &args.wireshark];
    let is_requested = outputs.iter().chain(&others).any(|path| path.is_some());
    if is_requested || args.fail_on.is_some() {
        let failure =
            Failure::new(format!("{name}: pasted text has no connections, only a report"));
        return Err(failure.hint("without --fail-on and output files the report is printed"));
    }
    Ok(())
}

fn file_name(args: &DiagnoseArgs) -> String {
    match args.files.first() {
        Some(file) if is_standard(file) => "standard input".to_owned(),
        file => file.map(|file| file.shown()).unwrap_or_default(),
    }
}

/// Whether a file that cannot be read is reported, and the others are diagnosed.
fn can_leave_out(args: &DiagnoseArgs, files: usize) -> bool {
    files > 1 && !args.ring && args.every.is_none()
}

/// The files that could be opened, and the errors of the others.
fn opened(
    sources: Vec<Result<InputFile<'static>, Failure>>,
    args: &DiagnoseArgs,
) -> Result<(Vec<InputFile<'static>>, Vec<Failure>), Failure> {
    let may_fail = can_leave_out(args, sources.len());
    let (mut opened, mut failures) = (Vec::new(), Vec::new());
    for source in sources {
        match source {
            Ok(source) => opened.push(source),
            Err(failure) if may_fail => failures.push(failure),
            Err(failure) => return Err(failure),
        }
    }
    // Without any the first is the error.
    match opened.is_empty() && !failures.is_empty() {
        true => Err(failures.swap_remove(0)),
        false => Ok((opened, failures)),
    }
}

/// Reports the files that could not be read; the exit status, if there are any.
fn report_unreadable(failures: Vec<Failure>) -> Option<ExitCode> {
    let more = failures.len().saturating_sub(UNREADABLE);
    let mut status = None;
    for failure in failures.into_iter().take(UNREADABLE) {
        status = Some(failure.report());
    }
    if more > 0 {
        status = Some(Failure::new(format!("{more} more files cannot be read")).report());
    }
    status
}

/// The error of a gate that some files would pass unjudged.
fn unjudged(report: &DiagnosisReport) -> Option<Failure> {
    let all: Vec<_> = report.unjudged().collect();
    let named: Vec<_> =
        all.iter().take(UNJUDGED).map(|(file, reason)| format!("{file}: {reason}")).collect();
    let more = match all.len() - named.len() {
        0 => String::new(),
        left => format!("; and {left} more"),
    };
    (!all.is_empty()).then(|| nothing_judged(&format!("{}{more}", named.join("; "))))
}

fn nothing_judged(reason: &str) -> Failure {
    Failure::new(format!("--fail-on: nothing was judged: {reason}"))
        .hint("without a connection that can be judged the exit status is 2: check the capture's filter, interface and port")
}

/// The error of a file that cannot be read.
fn refused(error: &ReadError, files: &[PathBuf]) -> Failure {
    let failure = Failure::new(format!("cannot diagnose {error}"));
    let is_explained = matches!(
        error.reason,
        Reason::Convertible { .. }
            | Reason::NoIntervals { .. }
            | Reason::Nothing { kind: InputKind::Iperf3, problem: Some(_) }
    );
    if is_explained {
        return failure;
    }
    let other = files.iter().find_map(|file| other_command(file, "diagnose"));
    failure.hint(other.unwrap_or_else(|| {
        "captures are those of tcpdump and Wireshark; text is that of tcpdump".to_owned()
    }))
}

/// Formats of output files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputForm {
    Page,
    Csv,
    Junit,
    Sarif,
    Markdown,
    OpenMetrics,
    Wireshark,
}

/// Creates the requested files; none may be an input file, or the file of another output.
fn outputs<'a>(
    args: &'a DiagnoseArgs,
    files: &[PathBuf],
) -> Result<Vec<(OutputForm, &'a Path, OutFile)>, Failure> {
    let requested = [
        (OutputForm::Page, &args.report),
        (OutputForm::Csv, &args.csv),
        (OutputForm::Junit, &args.junit),
        (OutputForm::Sarif, &args.sarif),
        (OutputForm::Markdown, &args.markdown),
        (OutputForm::OpenMetrics, &args.openmetrics),
        (OutputForm::Wireshark, &args.wireshark),
    ];
    let mut created: Vec<(OutputForm, &Path, OutFile)> = Vec::new();
    for (form, path) in requested {
        let Some(path) = path.as_deref() else { continue };
        let out = OutFile::create(path)?;
        if files.iter().any(|file| out.is(file)) {
            return Err(Failure::new(format!("{} is an input file", path.shown())));
        }
        if created.iter().any(|(_, _, other)| other.is(path)) {
            return Err(Failure::new(format!("two outputs write {}", path.shown())));
        }
        created.push((form, path, out));
    }
    Ok(created)
}

fn fail_on(name: &str) -> Result<FailOn, Failure> {
    FailOn::from_name(name).ok_or_else(|| {
        Failure::new(format!("--fail-on {name}: neither a severity nor the code of a finding"))
            .hint("severities are note, warning and error; codes are listed by: ackclock explain")
    })
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Standard input, until a signal or until `closed` is set.
fn live_source(closed: &Arc<AtomicBool>) -> Result<InputFile<'static>, Failure> {
    let input = live_input::LiveInput::new(Arc::clone(closed))
        .map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
    Ok(InputFile { name: "standard input".into(), bytes: Box::new(input) })
}

/// Standard input, of which `before` was read.
fn standard_after(before: Vec<u8>) -> InputFile<'static> {
    let all = io::Cursor::new(before).chain(io::stdin().lock());
    InputFile { name: "standard input".into(), bytes: Box::new(ProgressReader::new(all, None)) }
}

/// The recording of a text whose lines were quoted.
fn unquoted_source(path: &Path, bytes: Vec<u8>) -> InputFile<'static> {
    let name = if is_standard(path) { "standard input".into() } else { path.shown() };
    InputFile { name, bytes: Box::new(ProgressReader::new(io::Cursor::new(bytes), None)) }
}

/// Opens a file or standard input.
pub(super) fn source(path: &Path) -> Result<InputFile<'static>, Failure> {
    if is_standard(path) {
        let bytes = Box::new(ProgressReader::new(io::stdin().lock(), None));
        return Ok(InputFile { name: "standard input".into(), bytes });
    }
    let file = input::open(path)?;
    let size = file.metadata().ok().filter(Metadata::is_file).map(|metadata| metadata.len());
    Ok(InputFile { name: path.shown(), bytes: Box::new(ProgressReader::new(file, size)) })
}

/// Whether all files are small enough to keep their packets.
fn can_try_cures(files: &[PathBuf]) -> bool {
    let sizes = files.iter().map(|file| {
        let metadata = file.metadata().ok().filter(Metadata::is_file)?;
        Some(metadata.len())
    });
    sizes.sum::<Option<u64>>().is_some_and(|sum| sum <= whatif::MOST_CAPTURED)
}
