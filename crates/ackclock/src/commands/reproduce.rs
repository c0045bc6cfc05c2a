//! `ackclock reproduce`: published figures beside what Ackclock measures.

use std::process::ExitCode;

use crate::cli::ReproduceArgs;
use crate::failure::Failure;

pub(super) fn run(args: &ReproduceArgs) -> Result<ExitCode, Failure> {
    let _ = args;
    Err(Failure::new("no published case is built in"))
}
