//! `--flent`: the flows as a data file of flent.

use std::io::{self, Write as _};
use std::path::Path;

use export::flent::FlentRecorder;
use flate2::Compression;
use flate2::write::GzEncoder;
use record::{Event, EventSource, Recorder, SenderState};
use units::Instant;

use super::{OpenOutput, Output, OutputSource, RunContext, RunLog};
use crate::cli::RunArgs;
use crate::output::OutFile;

pub(super) struct Flent;

impl Output for Flent {
    fn option(&self) -> &'static str {
        "--flent"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.flent.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Events
    }

    fn begin<'s>(&self, run: &RunContext<'s>, out: OutFile) -> io::Result<OpenOutput<'s>> {
        let note = format!("simulated by Ackclock {}\n{}", env!("CARGO_PKG_VERSION"), run.comment);
        let recorder = FlentRecorder::new(run.scenario, &note);
        let is_packed =
            run.args.flent.as_deref().is_some_and(|path| {
                path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz"))
            });
        Ok(OpenOutput::Log(Box::new(FlentLog { recorder, out, is_packed })))
    }
}

/// The file, which is written at the end of the run.
struct FlentLog {
    recorder: FlentRecorder,
    out: OutFile,
    is_packed: bool,
}

impl RunLog for FlentLog {
    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        self.recorder.record(at, who, event, state);
    }

    fn finish(mut self: Box<Self>) -> io::Result<OutFile> {
        let text = self.recorder.to_json();
        if !self.is_packed {
            self.out.write_all(text.as_bytes())?;
            return Ok(self.out);
        }
        let mut packer = GzEncoder::new(self.out, Compression::default());
        packer.write_all(text.as_bytes())?;
        packer.finish()
    }
}
