//! `ackclock FILE`: the command for the file.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;
use ingest::inputs::InputKind;

use crate::cli::Cli;
use crate::commands::pasted;
use crate::failure::{Failure, print_error};
use crate::file_kind::FileKind;
use crate::folders;
use crate::input;
use crate::presets;
use crate::visible::ShownPath as _;

/// Files of a folder that are looked at for a scenario.
const MOST_SEARCHED: usize = 200;

const READS: &str = "it reads captures, logs of kernels and of QUIC, scenarios, packet scripts and \
                     sweeps; see: ackclock --help";

/// The arguments of the program. If the first is a file and not a command, the command for files of
/// its kind is inserted before it.
pub(crate) fn arguments() -> Result<Vec<OsString>, Failure> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let Some(first) = arguments.get(1) else { return Ok(arguments) };
    let is_option = first.as_encoded_bytes().starts_with(b"-");
    let cli = Cli::command();
    let is_command = first == "help" || cli.get_subcommands().any(|one| one.get_name() == first);
    let path = Path::new(first);
    if presets::is_named(path) {
        arguments.insert(1, "run".into());
        return Ok(arguments);
    }
    if is_option || is_command || !(path.exists() || looks_like_a_file(path)) {
        return Ok(arguments);
    }
    if input::is_own(path) {
        // A pipe of the shell, `<(...)`, has no kind before it is read.
        arguments.insert(1, "diagnose".into());
        return Ok(arguments);
    }
    let kind = FileKind::of(path).map_err(|error| Failure::file("read", path, &error))?;
    let name = path.shown();
    // Counters and JSON may be parts of a text.
    let may_be_text = matches!(
        kind,
        None | Some(FileKind::Recording(InputKind::Nstat | InputKind::Iperf3 | InputKind::Qlog))
    );
    let is_text = || pasted::read(path).is_some_and(|text| !text.has_recording);
    if may_be_text && path.is_file() && is_text() {
        print_error(&format!("{name} is pasted text: ackclock diagnose {name}\n"));
        arguments.insert(1, "diagnose".into());
        return Ok(arguments);
    }
    let Some(kind) = kind else {
        let message = format!("{name} is nothing that Ackclock knows");
        let scenario = |file: &Path| {
            let kind = FileKind::of(file).ok().flatten();
            kind == Some(FileKind::Scenario) && file.extension().is_some_and(|end| end == "toml")
        };
        let inside = path.is_dir().then(|| folders::find(path, MOST_SEARCHED, scenario)).flatten();
        return Err(Failure::new(message).hint(match inside {
            Some(file) => {
                format!("a scenario in it is run by: ackclock run {}", file.shown())
            }
            None => READS.to_owned(),
        }));
    };
    print_error(&format!("{name} is {}: ackclock {} {name}\n", kind.name(), kind.command()));
    arguments.insert(1, kind.command().into());
    Ok(arguments)
}

/// A name with a directory or an ending is no misspelt command.
fn looks_like_a_file(path: &Path) -> bool {
    path.extension().is_some() || path.components().count() > 1
}
