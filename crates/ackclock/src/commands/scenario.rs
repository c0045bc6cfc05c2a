//! `ackclock scenario`: check, show, keys, profiles, schema.

use std::process::ExitCode;

use scenario::{Loaded, reference, schema};
use serde_json::json;

use super::{load_with, load_with_kernels};
use crate::cli::{CheckArgs, ScenarioCommand};
use crate::failure::Failure;
use crate::output::print;

pub(super) fn run(command: ScenarioCommand) -> Result<ExitCode, Failure> {
    match command {
        ScenarioCommand::Check(args) => return check(args),
        ScenarioCommand::Profiles(args) => return super::profiles::run(&args),
        ScenarioCommand::From(args) => return super::whatif::from(&args),
        ScenarioCommand::Export(args) => print(&super::emulator::export(args)?)?,
        ScenarioCommand::Import(args) => print(&super::emulator::import(&args.file)?)?,
        ScenarioCommand::Show(args) => print(&load_with_kernels(args)?.1.text)?,
        ScenarioCommand::Keys => print(&reference())?,
        ScenarioCommand::Schema => print(&schema())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check(args: CheckArgs) -> Result<ExitCode, Failure> {
    let as_json = args.json;
    // As JSON the errors have positions, whatever the file is.
    match load_with(args.scenario, true, !as_json) {
        Ok((file, loaded)) if !as_json => {
            print(&format!("{}: ok, {}\n", file.display(), summary(&loaded)))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok((_, loaded)) => {
            let answer = json!({ "errors": [], "scenario_sha256": loaded.sha256 });
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
