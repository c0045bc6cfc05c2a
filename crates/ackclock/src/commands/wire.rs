//! `ackclock wire`: scenarios in real time, with this machine's own TCP as some of the hosts.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
pub(super) use self::{
    compare::with_writes,
    real::{RealTimeRun, prepare},
};
use crate::cli::WireCommand;
use crate::failure::Failure;

#[cfg(target_os = "linux")]
mod compare;
#[cfg(target_os = "linux")]
mod end;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod real;

#[cfg(target_os = "linux")]
pub(super) fn run(command: WireCommand) -> Result<ExitCode, Failure> {
    match command {
        WireCommand::Send(args) => end::run(args, true),
        WireCommand::Receive(args) => end::run(args, false),
        WireCommand::Link(args) => link::run(args),
        WireCommand::Compare(args) => compare::run(args),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: WireCommand) -> Result<ExitCode, Failure> {
    Err(Failure::new("`wire` needs Linux: its namespaces and TUN devices"))
}
