//! `--csv`: every event as a row, or with `--columns` these over time.

use std::io;
use std::path::Path;

use logs::csv::CsvRecorder;
use logs::series::Form;
use record::{Event, Recorder, SenderState, Who};
use units::Instant;

use super::{Begun, Output, Results, Run, RunLog, Source, WriteError};
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

    fn source(&self, args: &RunArgs) -> Source {
        if args.columns.is_some() { Source::Columns } else { Source::Events }
    }

    fn begin<'s>(&self, run: &Run<'s>, out: OutFile) -> io::Result<Begun<'s>> {
        Ok(match self.source(run.args) {
            Source::Columns => Begun::Later(out),
            _ => Begun::Log(Box::new(CsvRecorder::new(out))),
        })
    }

    fn write(&self, results: &mut Results<'_>, mut out: OutFile) -> Result<OutFile, WriteError> {
        if let Some(columns) = &mut results.columns {
            columns.write(Form::Csv, &mut out)?;
        }
        Ok(out)
    }
}

impl RunLog for CsvRecorder<OutFile> {
    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        Recorder::record(self, at, who, event, state);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        Self::finish(*self)
    }
}
