//! `--jsonl`: `--columns` over time, one JSON object per line.

use std::path::Path;

use logs::series::SeriesFormat;

use super::{Output, OutputSource, Results, WriteError};
use crate::cli::RunArgs;
use crate::output::OutFile;

pub(super) struct Jsonl;

impl Output for Jsonl {
    fn option(&self) -> &'static str {
        "--jsonl"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.jsonl.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Columns
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        if let Some(columns) = &mut results.columns {
            columns.write(SeriesFormat::JsonLines, &mut out)?;
        }
        Ok(out)
    }
}
