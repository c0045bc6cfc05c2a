//! The command line: one module per command, which handles text and files; the libraries do the
//! work.
//!
//! Exit status: 0 success; 1 findings, or rows that should hold and do not; 2 an error in the
//! arguments or in the files they name, or output that could not be written; 130 interrupted
//! (SIGTERM: 143, SIGHUP: 129).

mod budget;
mod cli;
mod commands;
mod failure;
mod file_kind;
mod folders;
mod input;
mod interrupt;
mod output;
#[cfg(feature = "png")]
mod png;
#[cfg(not(feature = "png"))]
#[path = "png_absent.rs"]
mod png;
mod presets;
mod progress;
mod shortcut;
mod store;
mod threads;
mod visible;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

use failure::Failure;

fn main() -> ExitCode {
    let parsed = shortcut::arguments().map(cli::Cli::try_parse_from);
    let done = parsed.and_then(|parsed| match parsed {
        Ok(cli) => {
            failure::choose_colours(cli.color);
            budget::apply(&cli)?;
            input::allow_paths(&cli.allow_path)?;
            commands::run(cli)
        }
        Err(error) => answer(&error),
    });
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// Prints the help, the version, or the error in the arguments.
fn answer(error: &clap::Error) -> Result<ExitCode, Failure> {
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    if !error.use_stderr() {
        output::written(printed)?;
    }
    Ok(ExitCode::from(error.exit_code() as u8))
}
