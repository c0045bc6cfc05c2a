//! Digests of fixed runs by the current build.

use std::process::ExitCode;

pub(crate) fn run() -> ExitCode {
    match simtest::digests::lines() {
        Ok(lines) => {
            lines.iter().for_each(|line| println!("{line}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
