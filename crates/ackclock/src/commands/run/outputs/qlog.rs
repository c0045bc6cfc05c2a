//! `--qlog`: the log of the sender as qlog.

use std::io;
use std::path::Path;

use export::qlog::Qlog;
use logs::qlog::QlogFormat;
use packet::Segment;
use record::{Event, EventSource, Recorder, SenderState};
use sim::Observer;
use units::Instant;

use super::{OpenOutput, Output, OutputSource, RunContext, RunLog};
use crate::cli::{QlogForm, RunArgs};
use crate::output::OutFile;

pub(super) struct QlogFile;

impl Output for QlogFile {
    fn option(&self) -> &'static str {
        "--qlog"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.qlog.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Events
    }

    fn logs_sender(&self) -> bool {
        true
    }

    fn begin<'s>(&self, run: &RunContext<'s>, out: OutFile) -> io::Result<OpenOutput<'s>> {
        let Some(sender) = run.sender else { return Ok(OpenOutput::Later(out)) };
        let form = match run.args.qlog_form {
            QlogForm::Current => QlogFormat::Current,
            QlogForm::Qvis => QlogFormat::Qvis,
        };
        let log = Qlog::new(run.scenario, sender, &run.loaded.sha256, form, out)?;
        Ok(OpenOutput::Log(Box::new(log)))
    }
}

impl RunLog for Qlog<OutFile> {
    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        Recorder::record(self, at, who, event, state);
    }

    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        Observer::tap(self, at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::QuicPacket) {
        Observer::datagram(self, at, tap, outbound, packet);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        Self::finish(*self)
    }
}
