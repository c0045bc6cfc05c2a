//! `--qlog`: the log of the sender's stack as qlog.

use std::io;
use std::path::Path;

use export::qlog::Qlog;
use logs::qlog::Form;
use packet::Segment;
use record::{Event, Recorder, SenderState, Who};
use sim::Observer;
use units::Instant;

use super::{Begun, Output, Run, RunLog, Source};
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

    fn source(&self, _: &RunArgs) -> Source {
        Source::Events
    }

    fn logs_sender(&self) -> bool {
        true
    }

    fn begin<'s>(&self, run: &Run<'s>, out: OutFile) -> io::Result<Begun<'s>> {
        let Some(sender) = run.sender else { return Ok(Begun::Later(out)) };
        let form = match run.args.qlog_form {
            QlogForm::Current => Form::Current,
            QlogForm::Qvis => Form::Qvis,
        };
        let log = Qlog::new(run.scenario, sender, &run.loaded.sha256, form, out)?;
        Ok(Begun::Log(Box::new(log)))
    }
}

impl RunLog for Qlog<OutFile> {
    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        Recorder::record(self, at, who, event, state);
    }

    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        Observer::tap(self, at, tap, outbound, segment);
    }

    fn datagram(&mut self, at: Instant, tap: usize, outbound: bool, packet: &quic::Packet) {
        Observer::datagram(self, at, tap, outbound, packet);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        Self::finish(*self)
    }
}
