//! `ackclock packetdrill`: packet scripts in virtual time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use runner::packet_scripts::{
    Ending, ScriptResult, ScriptSettings, ScriptTotals, check_profile, details, json, run_script,
    table,
};
use scenario::{decode, nearest};

use crate::cli::PacketdrillArgs;
use crate::failure::{Failure, print_error_in_colour};
use crate::input;
use crate::output::print;

/// Maximum directory depth: a deeper one is a symlink loop.
const DEPTH: usize = 32;

pub(super) fn run(args: &PacketdrillArgs) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.profile {
        check_profile(name).map_err(|names| {
            let failure = Failure::new(format!("unknown profile `{name}`"));
            failure.hint(match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("profiles are {}", names.join(", ")),
            })
        })?;
    }
    let mut files = Vec::new();
    let mut several = args.files.len() > 1;
    for path in &args.files {
        several |= path.is_dir();
        collect(path, true, DEPTH, &mut files)?;
    }
    let results = files.iter().map(|path| one(path, args)).collect::<Result<Vec<_>, _>>()?;
    show(&results, args, several)?;
    let totals = ScriptTotals::of(&results);
    Ok(match totals {
        ScriptTotals { unreadable: 1.., .. } => ExitCode::from(2),
        ScriptTotals { failed: 1.., .. } => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

fn show(results: &[ScriptResult], args: &PacketdrillArgs, several: bool) -> Result<(), Failure> {
    if args.json {
        return print(&json(results));
    }
    if several {
        print(&table(results))?;
    } else if let [only] = results
        && only.ending == Ending::Passed
    {
        let time = only.time.as_secs_f64();
        print(&format!("{}: passed, {} events in {time:.3} s\n", only.file, only.events))?;
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
        return Err(Failure::new(format!("{}: directories are nested too deeply", path.display())));
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
            path.display()
        )));
    }
    Ok(())
}

fn one(path: &Path, args: &PacketdrillArgs) -> Result<ScriptResult, Failure> {
    let bytes = input::read(path)?;
    let name = path.display().to_string();
    let text = decode(&bytes, &name).map_err(Failure::Scenario)?;
    // Commands of a script name files relative to the script's directory.
    let beside = path.parent().unwrap_or(Path::new("."));
    let files = |file: &str| String::from_utf8(input::read_named(&beside.join(file)).ok()?).ok();
    let settings = ScriptSettings {
        profile: args.profile.as_deref(),
        relaxed_psh: args.relaxed_psh,
        files: &files,
    };
    Ok(run_script(&name, text, &settings))
}
