//! `--bblog`: the log of the sender as FreeBSD's Black Box Log.

use std::io;
use std::path::Path;

use export::kernel_log::{BlackBox, LoggedEndpoint};
use packet::Segment;
use record::{Event, EventSource, Recorder, SenderState};
use scenario::Loaded;
use sim::Observer;
use sim::scenario::Scenario;
use units::Instant;

use super::{OpenOutput, Output, OutputSource, RunContext, RunLog};
use crate::cli::RunArgs;
use crate::commands::run::has_tcp;
use crate::failure::Failure;
use crate::output::OutFile;

pub(super) struct Bblog;

impl Output for Bblog {
    fn option(&self) -> &'static str {
        "--bblog"
    }

    fn path<'a>(&self, args: &'a RunArgs) -> Option<&'a Path> {
        args.bblog.as_deref()
    }

    fn source(&self, _: &RunArgs) -> OutputSource {
        OutputSource::Events
    }

    fn logs_sender(&self) -> bool {
        true
    }

    fn prepare(
        &self,
        _: &Loaded,
        scenario: &mut Scenario,
        sender: Option<LoggedEndpoint>,
    ) -> Result<(), Failure> {
        let hosts = sender.map(|side| &scenario.hosts[usize::from(side.host.0)]);
        let why = "--bblog logs a TCP sender";
        hosts.map_or(Ok(()), |host| has_tcp(host, why))
    }

    fn begin<'s>(&self, run: &RunContext<'s>, out: OutFile) -> io::Result<OpenOutput<'s>> {
        let Some(sender) = run.sender else { return Ok(OpenOutput::Later(out)) };
        Ok(OpenOutput::Log(Box::new(BlackBox::new(run.scenario, sender, run.comment, out)?)))
    }
}

impl RunLog for BlackBox<OutFile> {
    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        Recorder::record(self, at, who, event, state);
    }

    fn tap(&mut self, at: Instant, tap: usize, outbound: bool, segment: &Segment) {
        Observer::tap(self, at, tap, outbound, segment);
    }

    fn finish(self: Box<Self>) -> io::Result<OutFile> {
        Self::finish(*self)
    }
}
