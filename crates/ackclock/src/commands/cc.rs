//! `ackclock cc`: builds and describes congestion controllers in C.

use std::path::Path;
use std::process::ExitCode;

use foreign_cc::compile::{self, Build};
use foreign_cc::named;
use scenario::Files;

use crate::cli::{CcBuildArgs, CcCommand};
use crate::failure::Failure;
use crate::input::is_restricted;
use crate::output::print;
use crate::visible::ShownPath as _;

pub(super) fn run(command: CcCommand) -> Result<ExitCode, Failure> {
    match command {
        CcCommand::Build(args) => build(args)?,
        CcCommand::Show(args) => print(&description(&args.library)?)?,
        CcCommand::Header => print(foreign_cc::HEADER)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn build(args: CcBuildArgs) -> Result<(), Failure> {
    let CcBuildArgs { sources, output, hz, compiler } = args;
    let beside = || sources.first().map(|first| first.with_extension("so")).unwrap_or_default();
    let output = output.unwrap_or_else(beside);
    if named::library_file(&output.to_string_lossy()).is_none() {
        let message = format!("the name of a library ends in .so: {}", output.shown());
        return Err(Failure::new(message));
    }
    let wanted = Build { sources, output: output.clone(), hz, compiler };
    compile::build(&wanted).map_err(|error| {
        let failure = Failure::new(error.to_string());
        match error.to_string().contains("not provided") || error.to_string().contains("not mapped")
        {
            true => failure
                .hint("`ackclock cc header` and docs/adding-a-controller.md list what there is"),
            false => failure,
        }
    })?;
    print(&description(&output)?)
}

/// The controller in a library and its operations, in two lines.
fn description(library: &Path) -> Result<String, Failure> {
    let (name, operations) = named::describe(library).map_err(Failure::new)?;
    Ok(format!("{}: {name}\noperations: {}\n", library.shown(), operations.join(", ")))
}

/// The same files, with controllers in shared libraries beside them or where the program was started.
pub(super) fn with_libraries(files: Files, folder: &Path) -> Files {
    let folder = folder.to_owned();
    if is_restricted() {
        // A library is a program: a language model may not choose one.
        return files;
    }
    files.with_controllers(move |name| named::controller_with_bytes(name, &folder))
}
