//! `ackclock compare`: the same scenario with models, with real kernels, and on the wire.

use std::process::ExitCode;

use crate::cli::GradesArgs;
use crate::failure::Failure;

#[cfg(target_os = "linux")]
mod formats;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod page;
#[cfg(target_os = "linux")]
mod stacks;

#[cfg(target_os = "linux")]
pub(super) use linux::{kernel_name, linux_hosts};

#[cfg(target_os = "linux")]
pub(super) fn run(args: GradesArgs) -> Result<ExitCode, Failure> {
    linux::run(args)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: GradesArgs) -> Result<ExitCode, Failure> {
    Err(Failure::new("`compare` needs Linux: User-Mode Linux is a program of Linux"))
}
