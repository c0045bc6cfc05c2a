//! `ackclock explain`: the background of a finding.

use std::process::ExitCode;

use ingest::diagnosis;

use crate::cli::ExplainArgs;
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let text = match &args.code {
        None => diagnosis::list(),
        Some(code) => diagnosis::explain(&with_letters(code)).map_err(|unknown| {
            let failure = Failure::new(unknown.to_string());
            match unknown.similar {
                Some(code) => failure
                    .hint(format!("did you mean {code}? All are listed by: ackclock explain")),
                None => failure,
            }
        })?,
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// `401` is `CC401`.
pub(super) fn with_letters(code: &str) -> String {
    let letters = if code.bytes().all(|byte| byte.is_ascii_digit()) { "CC" } else { "" };
    format!("{letters}{code}")
}
