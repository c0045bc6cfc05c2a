//! `ackclock suite bbr`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use scenario::nearest;
use serde_json::json;
use suite::bbr::{BbrCase, BbrPath, BbrReference, BbrRequest, BbrVerdict, CASES, PATHS, read_log};

use super::{sender, with_knobs};
use crate::cli::BbrArgs;
use crate::failure::Failure;
use crate::input;
use crate::interrupt;
use crate::output::{OutFile, print};
use crate::progress::CountProgress;
use crate::visible::ShownPath as _;

pub(super) fn run(args: &BbrArgs) -> Result<ExitCode, Failure> {
    if args.list {
        print(&list())?;
        return Ok(ExitCode::SUCCESS);
    }
    let request = request(args)?;
    if let Some(file) = &args.check {
        return check(args, &request, file);
    }
    let (report, references) = results(args, &request)?;
    if interrupt::is_raised() {
        return Ok(interrupt::status());
    }
    if let Some(dir) = &args.reference {
        write(&references, dir)?;
    }
    print(&if args.json { report.to_json() } else { report.to_text(args.full) })?;
    Ok(ExitCode::from(u8::from(report.count(BbrVerdict::Fail) > 0)))
}

fn request(args: &BbrArgs) -> Result<BbrRequest, Failure> {
    let sender = with_knobs(sender(&args.cc)?, &args.knob)?;
    if !sender.cc.starts_with("bbr-") {
        let message =
            format!("`{}` is not BBR of the draft: its named state cannot be read", args.cc);
        return Err(Failure::new(message).hint(
            "bbr-draft and its dialects bbr-picoquic, bbr-quiche and bbr-s2n, of `rfc` and of profiles of QUIC",
        ));
    }
    let cases = chosen(&args.case, CASES.iter(), "case", |case: &&BbrCase| case.id)?;
    let paths = chosen(&args.path, PATHS.iter(), "path", |path: &&BbrPath| path.name)?;
    Ok(BbrRequest { sender, cases, paths, seed: args.seed })
}

/// The things with these names, or all of them.
fn chosen<T>(
    names: &[String],
    all: impl Iterator<Item = T> + Clone,
    kind: &str,
    name_of: impl Fn(&T) -> &'static str,
) -> Result<Vec<T>, Failure> {
    for name in names {
        if !all.clone().any(|one| name_of(&one) == name) {
            let known: Vec<&str> = all.map(|one| name_of(&one)).collect();
            let failure = Failure::new(format!("suite bbr has no {kind} `{name}`"));
            return Err(failure.hint(match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", known.join(", ")),
            }));
        }
    }
    let wanted = |one: &T| names.is_empty() || names.iter().any(|name| name == name_of(one));
    Ok(all.filter(wanted).collect())
}

fn list() -> String {
    let mut text = String::from("cases\n");
    for case in &CASES {
        text += &format!("  {:20}  {}\n", case.id, case.section);
    }
    text += "paths\n";
    for path in &PATHS {
        text += &format!("  {:9}  {} bit/s, {} ms\n", path.name, path.rate, path.rtt.as_millis());
    }
    text
}

fn results(
    args: &BbrArgs,
    request: &BbrRequest,
) -> Result<(suite::bbr::BbrReport, Vec<BbrReference>), Failure> {
    let threads = args.jobs.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, core::num::NonZeroUsize::get)
    });
    let stop = interrupt::orderly();
    let runs = request.runs() as u64;
    let progress = CountProgress::new(runs, "cases");
    let finished = |done: usize| progress.of(done as u64, runs);
    request.run(threads, stop, &finished).map_err(|error| Failure::new(error.to_string()))
}

fn write(references: &[BbrReference], dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| Failure::file("create", dir, &error))?;
    for reference in references {
        let qlog = reference.qlog().map_err(|error| Failure::file("write", dir, &error))?;
        let files = [
            ("toml", reference.scenario.clone().into_bytes()),
            ("csv", reference.csv().into_bytes()),
            ("sqlog", qlog),
        ];
        for (extension, bytes) in files {
            let path = dir.join(format!("{}.{extension}", reference.name()));
            let mut out = OutFile::create(&path)?;
            let written = out.write_all(&bytes);
            written.map_err(|error| Failure::file("write", &path, &error))?;
            out.commit()?;
        }
    }
    Ok(())
}

/// Judges the log of a stack.
fn check(args: &BbrArgs, request: &BbrRequest, file: &Path) -> Result<ExitCode, Failure> {
    let log = read_log(&input::read(file)?)
        .map_err(|error| Failure::new(format!("{}: {error}", file.shown())))?;
    let path = match (args.path.as_slice(), request.paths.as_slice()) {
        ([_], [path]) => Some(*path),
        _ => None,
    };
    let references = match (args.case.as_slice(), path) {
        ([_], Some(_)) => results(args, request)?.1,
        _ => Vec::new(),
    };
    let reference = references.first().map(|reference| &reference.course);
    let checks = log.judge(path, reference);
    let holds = checks.iter().all(|check| check.holds);
    if args.json {
        let answer = json!({ "holds": holds, "checks": checks, "unknown_states": log.unknown });
        print(&format!("{answer:#}\n"))?;
    } else {
        let mut text = String::new();
        for check in &checks {
            let mark = if check.holds { "holds" } else { "not" };
            text +=
                &format!("{mark}: {}: {}, wanted {}\n", check.what, check.measured, check.wanted);
        }
        print(&text)?;
    }
    Ok(ExitCode::from(u8::from(!holds)))
}
