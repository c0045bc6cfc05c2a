//! `ackclock watch`: what limits the connections of this machine now.

use std::process::ExitCode;

use crate::cli::WatchArgs;
use crate::failure::Failure;

#[cfg(target_os = "linux")]
mod forms;
#[cfg(target_os = "linux")]
mod polls;
#[cfg(target_os = "linux")]
mod tracker;

#[cfg(target_os = "linux")]
pub(super) fn run(args: &WatchArgs) -> Result<ExitCode, Failure> {
    polls::run(args)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_: &WatchArgs) -> Result<ExitCode, Failure> {
    Err(Failure::new("`watch` needs Linux: its sock_diag")
        .hint("on other systems capture packets: tcpdump -w - | ackclock diagnose - --every 10s"))
}
