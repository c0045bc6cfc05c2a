//! `--csv`: every event as a row, or with `--columns` these columns over time.

use std::io;
use std::path::Path;

use logs::csv::CsvRecorder;
use logs::series::SeriesFormat;
use record::{Event, EventSource, Recorder, SenderState};
use units::Instant;

use super::{OpenOutput, Output, OutputSource, Results, RunContext, RunLog, WriteError};
use crate::cli::RunArgs;
use crate::output::OutFile;

pub(super) struct Csv;

impl Output for Csv {
    fn option(&self) -> &'static str {
        "--csv"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.csv.as_deref()
    }

    fn source(&self, args: &RunArgs) -> OutputSource {
        if args.columns.is_some() { OutputSource::Columns } else { OutputSource::Events }
    }

    fn begin<'s>(&self, run: &RunContext<'s>, out: OutFile) -> io::Result<OpenOutput<'s>> {
        Ok(match self.source(run.args) {
            OutputSource::Columns => OpenOutput::Later(out),
            _ => OpenOutput::Log(Box::new(CsvRecorder::new(out))),
        })
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        if let Some(columns) = &mut results.columns {
            columns.write(SeriesFormat::Csv, &mut out)?;
        }
        Ok(out)
    }
}

impl RunLog for CsvRecorder<OutFile> {
    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        Recorder::record(self, at, who, event, state);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        Self::finish(*self)
    }
}
