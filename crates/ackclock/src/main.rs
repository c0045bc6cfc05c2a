//! The command line: one file for each command, text and files at the edge, all else in `lab`.
//!
//! Exit status: 0 all is well; 1 findings, or rows that should hold and do not; 2 a mistake in
//! the arguments or in what they name; 130 interrupted.

mod cli;
mod commands;
mod failure;
mod output;
#[cfg(feature = "png")]
mod png;
mod progress;
mod store;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
