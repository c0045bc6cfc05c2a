//! `ackclock scenario export` and `import`: paths as commands of tc/netem and dummynet.

use std::path::Path;

use export::emulator::{self, ImportError, TokenPosition};
use scenario::{ScenarioError, Stacks, decode};

use super::load_with;
use crate::cli::ExportArgs;
use crate::failure::Failure;
use crate::input;
use crate::visible::ShownPath as _;

/// Returns the commands for both directions of a path.
pub(super) fn export(args: ExportArgs) -> Result<String, Failure> {
    let (file, loaded) = load_with(args.scenario, true, Stacks::Modelled, true)?;
    let paths = &loaded.scenario.paths;
    let Some(path) = paths.get(args.path) else {
        return Err(Failure::new(format!(
            "--path {}: the scenario has {} paths",
            args.path,
            paths.len()
        )));
    };
    let Some((forward, reverse)) = args.devices.split_once(',') else {
        return Err(Failure::new("--devices: expected two names, such as eth0,eth1"));
    };
    if let Some(wrong) = [forward, reverse].iter().find(|name| !is_device(name)) {
        return Err(Failure::new(format!("--devices: `{wrong}` is no name of a device")));
    }
    let mut out = String::new();
    let directions =
        [("forward", &path.forward, forward, 1), ("return", &path.reverse, reverse, 2)];
    for (direction, elements, device, pipe) in directions {
        let command = match args.to.as_str() {
            "netem" => emulator::netem(elements, device),
            "tc" => emulator::qdiscs(elements, device),
            _ => emulator::dummynet(elements, device, pipe),
        };
        let command = command.map_err(|error| {
            Failure::new(format!("{}: path {}, {direction}: {error}", file.shown(), args.path))
        })?;
        out += &format!("# {direction}\n{command}\n");
    }
    Ok(out)
}

/// The text becomes part of a command of a shell.
fn is_device(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Returns a scenario with the path that commands describe.
pub(super) fn import(file: &Path) -> Result<String, Failure> {
    let bytes = input::read(file)?;
    let name =
        if file == Path::new("-") { "standard input".into() } else { file.to_string_lossy() };
    let text = decode(&bytes, &name).map_err(Failure::Scenario)?;
    emulator::import(text).map_err(|error| {
        let TokenPosition { line, column, width } = error.position;
        let source_line = text.lines().nth(line - 1).unwrap_or_default().to_owned();
        let file = name.clone().into_owned();
        let ImportError { message, hint, .. } = error;
        let (found, expected) = (None, None);
        let error = ScenarioError {
            file,
            line,
            column,
            width,
            source_line,
            message,
            found,
            expected,
            hint,
        };
        Failure::Scenario(vec![error])
    })
}
