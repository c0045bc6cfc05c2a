//! `ackclock packetdrill`: packet scripts in virtual time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use runner::packet_scripts::{
    Ending, Judged, Settings, Totals, check_profile, details, json, judge, table,
};
use scenario::{decode, nearest};

use crate::cli::PacketdrillArgs;
use crate::failure::{Failure, tell_in_colour};
use crate::input;
use crate::output::print;

/// Directories within directories: deeper is a loop of links.
const DEPTH: usize = 32;

pub(super) fn run(args: &PacketdrillArgs) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.profile {
        check_profile(name).map_err(|names| {
            let failure = Failure::new(format!("there is no profile {name:?}"));
            failure.hint(match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean {near:?}?"),
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
    let judged = files.iter().map(|path| one(path, args)).collect::<Result<Vec<_>, _>>()?;
    show(&judged, args, several)?;
    let totals = Totals::of(&judged);
    Ok(match totals {
        Totals { unreadable: 1.., .. } => ExitCode::from(2),
        Totals { failed: 1.., .. } => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

fn show(judged: &[Judged], args: &PacketdrillArgs, several: bool) -> Result<(), Failure> {
    if args.json {
        return print(&json(judged));
    }
    if several {
        print(&table(judged))?;
    } else if let [only] = judged
        && only.ending == Ending::Passed
    {
        let time = only.time.as_secs_f64();
        print(&format!("{}: passed, {} events in {time:.3} s\n", only.file, only.events))?;
    }
    tell_in_colour(|look| details(judged, look));
    Ok(())
}

/// The scripts that `path` stands for, in the order of their names.
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
        return Err(Failure::new(format!(
            "{}: too many directories within directories",
            path.display()
        )));
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
        return Err(Failure::new(format!("{}: no .pkt file in it or below", path.display())));
    }
    Ok(())
}

fn one(path: &Path, args: &PacketdrillArgs) -> Result<Judged, Failure> {
    let bytes = input::read(path)?;
    let name = path.display().to_string();
    let text = decode(&bytes, &name).map_err(Failure::Scenario)?;
    // Commands of a script name files from where the script lies.
    let beside = path.parent().unwrap_or(Path::new("."));
    let files = |file: &str| String::from_utf8(input::read_named(&beside.join(file)).ok()?).ok();
    let settings =
        Settings { profile: args.profile.as_deref(), relaxed_psh: args.relaxed_psh, files: &files };
    Ok(judge(&name, text, &settings))
}
