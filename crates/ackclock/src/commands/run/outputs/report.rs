//! `--report`: a page of plots and tables for a browser.

use std::path::Path;

use super::{Output, OutputSource, Results, WriteError};
use crate::cli::RunArgs;
use crate::output::OutFile;

pub(super) struct ReportOutput;

impl Output for ReportOutput {
    fn option(&self) -> &'static str {
        "--report"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.report.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Page
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        let Results { loaded, outcome, name, sharing, story, .. } = results;
        if let Some(story) = story.take() {
            story.page(loaded, outcome, name, *sharing).write(&mut out)?;
        }
        Ok(out)
    }
}
