//! `--jsonl`: `--columns` over time, one JSON object a line.

use std::path::Path;

use logs::series::Form;

use super::{Output, Results, Source, WriteError};
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

    fn source(&self, _: &RunArgs) -> Source {
        Source::Columns
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        if let Some(columns) = &mut results.columns {
            columns.write(Form::JsonLines, &mut out)?;
        }
        Ok(out)
    }
}
