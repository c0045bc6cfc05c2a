//! `--openmetrics`: the figures of all flows for Prometheus and what reads its format.

use std::io::Write as _;
use std::path::Path;

use runner::run_report::{RunReport, openmetrics};

use super::{Output, OutputSource, Results, WriteError};
use crate::cli::RunArgs;
use crate::output::OutFile;

pub(super) struct OpenMetrics;

impl Output for OpenMetrics {
    fn option(&self) -> &'static str {
        "--openmetrics"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.openmetrics.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Outcome
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        let report = RunReport::new(results.loaded, results.outcome);
        out.write_all(openmetrics(&report).as_bytes())?;
        Ok(out)
    }
}
