//! `ackclock kernel`: builds, lists and checks the kernels that hosts of scenarios can be.

use std::process::ExitCode;

use crate::cli::KernelCommand;
use crate::failure::Failure;

#[cfg(target_os = "linux")]
pub(super) mod linux;

#[cfg(target_os = "linux")]
pub(super) fn run(command: KernelCommand) -> Result<ExitCode, Failure> {
    match command {
        KernelCommand::Build(args) => linux::build(args),
        KernelCommand::List(args) => linux::list(&args),
        KernelCommand::Check(args) => linux::check(&args),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: KernelCommand) -> Result<ExitCode, Failure> {
    Err(Failure::new("`kernel` needs Linux: User-Mode Linux is a program of Linux"))
}
