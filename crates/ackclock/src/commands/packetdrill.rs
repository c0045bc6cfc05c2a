//! `ackclock packetdrill`: packet scripts in virtual time.

mod against;
mod capture;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use packet::IpVersion;
use runner::packet_scripts::real::Boot;
use runner::packet_scripts::{
    Ending, NonFatal, ScriptOverrides, ScriptResult, ScriptSettings, ScriptTotals, check_profile,
    details, json, junit, run_script, summary, table,
};
use scenario::{decode, not_modelled};
use units::Duration;

use crate::cli::PacketdrillArgs;
use crate::failure::{FAILED, Failure, print_error_in_colour};
use crate::file_kind::expect_kind;
use crate::input;
use crate::output::{OutFile, print};
use crate::visible::ShownPath as _;

/// Maximum directory depth: a deeper one is a symlink loop.
const DEPTH: usize = 32;

pub(super) fn run(args: &PacketdrillArgs) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.profile {
        check_profile(name).map_err(|names| {
            let failure = Failure::new(format!("unknown profile `{name}`"));
            let advice = not_modelled::profile(name, names);
            failure.hint(advice.unwrap_or_else(|| format!("profiles are {}", names.join(", "))))
        })?;
    }
    let mut files = Vec::new();
    let several = args.files.len() > 1 || args.files.iter().any(|path| path.is_dir());
    let mut failures = Vec::new();
    for path in &args.files {
        let known = match path.is_file() {
            true => expect_kind(path, "packetdrill", "a packet script"),
            false => Ok(()),
        };
        failures.extend(known.and_then(|()| collect(path, true, DEPTH, &mut files)).err());
    }
    if !several && let Some(failure) = failures.pop() {
        return Err(failure);
    }
    if args.pcap.is_some() && files.len() != 1 {
        let found = format!("`--pcap` takes one script, and there are {}", files.len());
        return Err(Failure::new(found));
    }
    let settings = CommonSettings::of(args)?;
    if let Some(kernel) = &args.against {
        return against::run(kernel, &files, args, settings);
    }
    let mut results = Vec::new();
    for path in &files {
        match one(path, args, &settings, None) {
            Ok(result) => results.push(result),
            Err(failure) if several => failures.push(failure),
            Err(failure) => return Err(failure),
        }
    }
    if let (Some(path), [only]) = (&args.pcap, &results[..]) {
        capture::write(path, &[("model", only)])?;
    }
    if !args.verbose {
        results.iter_mut().for_each(|one| one.packets.clear());
    }
    if let Some(path) = &args.junit {
        let mut out = OutFile::create(path)?;
        let written = out.write_all(junit(&results).as_bytes());
        written.map_err(|error| Failure::file("write", path, &error))?;
        out.commit()?;
    }
    if results.is_empty()
        && let Some(failure) = failures.pop()
    {
        report_all(failures);
        return Err(failure);
    }
    show(&results, args, several)?;
    if !failures.is_empty() {
        // The other scripts were run.
        report_all(failures);
        return Ok(ExitCode::from(FAILED));
    }
    Ok(ExitCode::from(status(&ScriptTotals::of(&results), args.allow_unsupported)))
}

fn report_all(failures: Vec<Failure>) {
    for failure in failures {
        failure.report();
    }
}

/// 0 if all scripts passed, 2 if one cannot be read, else 1. Scripts that were not run may be
/// allowed, but not if no script was run.
const fn status(totals: &ScriptTotals, allow_unsupported: bool) -> u8 {
    let nothing = totals.passed + totals.failed == 0;
    match totals {
        ScriptTotals { unreadable: 1.., .. } if !allow_unsupported => 2,
        ScriptTotals { failed: 1.., .. } => 1,
        ScriptTotals { unsupported: 1.., .. } if !allow_unsupported => 1,
        _ if nothing => 1,
        _ => 0,
    }
}

/// Settings of all scripts.
struct CommonSettings {
    profile: Option<String>,
    packets: bool,
    definitions: Vec<(String, String)>,
    overrides: ScriptOverrides,
}

impl CommonSettings {
    fn of(args: &PacketdrillArgs) -> Result<Self, Failure> {
        let definition = |text: &String| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (text.clone(), String::new()),
        };
        let ip = args.ip_version.as_deref().map(|version| match version {
            "ipv6" => IpVersion::V6,
            _ => IpVersion::V4,
        });
        let non_fatal = match &args.non_fatal {
            Some(text) => Some(NonFatal::parse(text).ok_or_else(|| {
                let failure = Failure::new(format!("`--non-fatal {text}` is not known"));
                failure.hint("use `packet`, `syscall` or both with a comma".to_owned())
            })?),
            None => None,
        };
        Ok(Self {
            profile: args.profile.clone(),
            packets: args.verbose || args.pcap.is_some(),
            definitions: args.define.iter().map(definition).collect(),
            overrides: ScriptOverrides {
                ip,
                tolerance: args.tolerance_usecs.map(|n| Duration::from_micros(u64::from(n))),
                mtu: args.mtu,
                hz: args.hz,
                non_fatal,
                holds_packets: false,
            },
        })
    }
}

fn show(results: &[ScriptResult], args: &PacketdrillArgs, several: bool) -> Result<(), Failure> {
    if args.json {
        return print(&json(results));
    }
    for one in results {
        if !one.packets.is_empty() {
            let indented: String =
                one.packets.iter().map(|packet| format!("  {packet}\n")).collect();
            print(&format!("{}:\n{indented}", one.file))?;
        }
    }
    if several {
        print(&(table(results) + &summary(results)))?;
    } else if let [only] = results
        && only.ending == Ending::Passed
    {
        let time = only.time.as_secs_f64();
        let mut text = format!("{}: passed, {} events in {time:.3} s\n", only.file, only.events);
        for note in &only.notes {
            text += &format!("note: {note}\n");
        }
        print(&text)?;
    }
    print_error_in_colour(|look| details(results, look));
    Ok(())
}

/// Collects the scripts of `path`, sorted by name.
fn collect(
    path: &Path,
    named: bool,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), Failure> {
    let failure = |error: &std::io::Error| Failure::file("read", path, error);
    if !path.is_dir() {
        if named || path.extension().is_some_and(|extension| extension == "pkt") {
            files.push(path.to_owned());
        }
        return Ok(());
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Failure::new(format!("{}: directories are nested too deeply", path.shown())));
    };
    let before = files.len();
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| failure(&error))? {
        entries.push(entry.map_err(|error| failure(&error))?.path());
    }
    entries.sort();
    for entry in entries {
        collect(&entry, false, depth, files)?;
    }
    if named && files.len() == before {
        return Err(Failure::new(format!(
            "{}: no .pkt file in this directory or below",
            path.shown()
        )));
    }
    Ok(())
}

fn one(
    path: &Path,
    args: &PacketdrillArgs,
    common: &CommonSettings,
    real: Option<Boot<'_>>,
) -> Result<ScriptResult, Failure> {
    let bytes = input::read(path)?;
    let name = path.shown();
    let text = decode(&bytes, &name).map_err(Failure::Scenario)?;
    // Commands of a script name files relative to the script's directory.
    let beside = path.parent().unwrap_or(Path::new("."));
    let files = |file: &str| String::from_utf8(input::read_named(&beside.join(file)).ok()?).ok();
    let settings = ScriptSettings {
        profile: common.profile.as_deref(),
        relaxed_psh: args.relaxed_psh,
        packets: common.packets,
        definitions: &common.definitions,
        overrides: common.overrides,
        files: &files,
        real,
    };
    Ok(run_script(&name, text, &settings))
}
