//! `--parquet`: every event as a Parquet table, or with `--columns` these columns over time.

use std::io;
use std::path::Path;

use export::columns::{EventColumns, write_series};
use record::{Event, EventSource, Recorder, SenderState};
use units::Instant;

use super::{OpenOutput, Output, OutputSource, Results, RunContext, RunLog, WriteError};
use crate::cli::RunArgs;
use crate::output::OutFile;

pub(super) struct Parquet;

impl Output for Parquet {
    fn option(&self) -> &'static str {
        "--parquet"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.parquet.as_deref()
    }

    fn source(&self, args: &RunArgs) -> OutputSource {
        if args.columns.is_some() { OutputSource::Columns } else { OutputSource::Events }
    }

    fn begin<'s>(&self, run: &RunContext<'s>, out: OutFile) -> io::Result<OpenOutput<'s>> {
        if self.source(run.args) == OutputSource::Columns {
            return Ok(OpenOutput::Later(out));
        }
        let table = EventColumns::new(run.scenario, &run.loaded.sha256, out)?;
        Ok(OpenOutput::Log(Box::new(table)))
    }

    fn write(&self, results: &mut Results<'_>, out: OutFile) -> Result<OutFile, WriteError> {
        let Some(columns) = &mut results.columns else { return Ok(out) };
        let loaded = results.loaded;
        Ok(write_series(columns, &loaded.scenario, &loaded.sha256, out)?)
    }
}

impl RunLog for EventColumns<OutFile> {
    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        Recorder::record(self, at, who, event, state);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        Self::finish(*self)
    }
}
