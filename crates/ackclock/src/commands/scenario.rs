//! `ackclock scenario`: check, show, keys, profiles, schema.

use std::process::ExitCode;

use quic::profile::controller_note;
use scenario::{Loaded, Stacks, reference, schema};
use serde_json::json;

use super::{load_with, load_with_kernels};
use crate::cli::{CheckArgs, ScenarioCommand};
use crate::failure::Failure;
use crate::output::print;
use crate::visible::ShownPath as _;

pub(super) fn run(command: ScenarioCommand) -> Result<ExitCode, Failure> {
    match command {
        ScenarioCommand::Check(args) => return check(args),
        ScenarioCommand::Profiles(args) => return super::profiles::run(&args),
        ScenarioCommand::New(args) => return super::new::run(args),
        ScenarioCommand::From(args) => return super::whatif::from(&args),
        ScenarioCommand::Export(args) => print(&super::emulator::export(args)?)?,
        ScenarioCommand::Import(args) => print(&super::emulator::import(&args.file)?)?,
        ScenarioCommand::Show(args) => print(&load_with_kernels(args, Stacks::Modelled)?.1.text)?,
        ScenarioCommand::Keys => print(&reference())?,
        ScenarioCommand::Schema => print(&schema())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check(args: CheckArgs) -> Result<ExitCode, Failure> {
    let as_json = args.json;
    // As JSON the errors have positions, whatever the file is.
    match load_with(args.scenario, true, Stacks::Modelled, !as_json) {
        Ok((file, loaded)) if !as_json => {
            let notes = notes(&loaded).into_iter().map(|note| format!("note: {note}\n"));
            let notes: String = notes.collect();
            print(&format!("{}: ok, {}\n{notes}", file.shown(), summary(&loaded)))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok((_, loaded)) => {
            let notes = notes(&loaded);
            let answer = json!({ "errors": [], "notes": notes, "scenario_sha256": loaded.sha256 });
            print(&format!("{answer:#}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(Failure::Scenario(errors)) if as_json => {
            print(&format!("{:#}\n", json!({ "errors": errors })))?;
            Ok(ExitCode::from(2))
        }
        Err(failure) => Err(failure),
    }
}

/// Hosts whose stack has another congestion controller than the one modelled under its name.
fn notes(loaded: &Loaded) -> Vec<String> {
    let hosts = loaded.scenario.hosts.iter();
    let note = |host: &sim::scenario::HostSpec| {
        let quic = host.stack.quic()?;
        let (profile, cc) = (quic.profile.name, quic.cc);
        let note = controller_note(profile, cc)?;
        let (name, cc) = (&host.name, cc.name());
        Some(format!(
            "host `{name}`: `cc = \"{cc}\"` with `{profile}` is not that of the stack: {note}"
        ))
    };
    hosts.filter_map(note).collect()
}

/// A summary such as `2 hosts, 1 path, 1 flow, 0 taps, sha256 ...`.
fn summary(loaded: &Loaded) -> String {
    let scenario = &loaded.scenario;
    let counts = [
        (scenario.hosts.len(), "host"),
        (scenario.paths.len(), "path"),
        (scenario.flows.len(), "flow"),
        (scenario.taps.len(), "tap"),
    ];
    let counts = counts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    format!("{}, sha256 {}", counts.join(", "), loaded.sha256)
}
