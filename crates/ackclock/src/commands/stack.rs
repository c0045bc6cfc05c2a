//! `ackclock stack`: builds, lists and checks the real QUIC stacks that hosts of scenarios can be.

use std::path::PathBuf;
use std::process::ExitCode;

use scenario::Stacks;

use crate::cli::StackCommand;
use crate::failure::Failure;

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(super) fn run(command: StackCommand) -> Result<ExitCode, Failure> {
    match command {
        StackCommand::Build(args) => linux::build(&args),
        StackCommand::List => linux::list(),
        StackCommand::Check(args) => linux::check(&args),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: StackCommand) -> Result<ExitCode, Failure> {
    Err(Failure::new("`stack` needs Linux"))
}

/// The stacks of the cache, as hosts of scenarios; each end of a connection writes its own log into the directory `logs`.
#[cfg(target_os = "linux")]
pub(super) fn programs(logs: Option<PathBuf>) -> Stacks {
    Stacks::programs(move |name| linux::find_program(name, logs.as_deref()))
}

/// No stack runs here: hosts that are stacks are an error.
#[cfg(not(target_os = "linux"))]
pub(super) fn programs(_: Option<PathBuf>) -> Stacks {
    Stacks::Refused
}
